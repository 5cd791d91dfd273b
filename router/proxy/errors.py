"""What a client is told when something goes wrong here, as OpenAI's clients expect it.

::

    ProxyError (status, code, type)
    ├── BadRequest            400..499  the client's request cannot be served as it is
    ├── Unauthorized          401       a key is missing, or not valid
    ├── ModelNotFound         404       no instance serves the model
    ├── TooManyRequests       429       a quota is used up
    ├── Unavailable           503       nothing can take the request now
    │   └── Overloaded        503       the queue is full, or a wait in it was too long
    ├── UpstreamFailed        502       engines failed before their first byte
    │   └── EnginesDied       502       engines died with this very request: it is not tried again
    └── UpstreamTimeout       504       engines did not answer in time

Only :func:`error_body` makes the JSON of an error, in the dialect of the endpoint. ``code`` is stable; messages are for
people.
"""

from math import ceil

import orjson

from router.proxy.wire.encode import OwnAnswer


class ProxyError(Exception):
    """An error that has an HTTP answer."""

    status = 500
    code = "internal_error"
    type = "server_error"
    lines = b""
    """Further header lines of the answer, each with its line end."""

    def __init__(self, message: str, *, param: str | None = None, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s


class BadRequest(ProxyError):
    """The request cannot be served as it is."""

    status = 400
    code = "invalid_request"
    type = "invalid_request_error"

    def __init__(
        self, message: str, *, status: int = 400, code: str = "invalid_request", param: str | None = None
    ) -> None:
        super().__init__(message, param=param)
        self.status = status
        self.code = code


class ModelNotFound(ProxyError):
    """No instance serves the model."""

    status = 404
    code = "model_not_found"
    type = "invalid_request_error"


class Unauthorized(ProxyError):
    """A key is missing, or not valid."""

    status = 401
    type = "authentication_error"

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class TooManyRequests(ProxyError):
    """A quota is used up; ``lines`` are the header lines that say what is left."""

    status = 429
    code = "rate_limit_exceeded"
    type = "rate_limit_error"

    def __init__(self, message: str, *, retry_after_s: int, lines: bytes = b"") -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.lines = lines


class Unavailable(ProxyError):
    """Nothing can take the request now; the message says why, instance by instance."""

    status = 503
    code = "no_instance_available"
    type = "service_unavailable_error"


class Overloaded(Unavailable):
    """Too many requests wait already, or this one has waited for too long."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message, retry_after_s=1)
        self.code = code


class UpstreamFailed(ProxyError):
    """Every attempt failed before the first byte."""

    status = 502
    code = "upstream_failed"
    type = "upstream_error"


class EnginesDied(UpstreamFailed):
    """Engines died with this request; OpenAI's and Anthropic's clients are told not to repeat it by themselves."""

    lines = b"x-should-retry: false\r\n"

    def __init__(self, engines: str, refused_s: float) -> None:
        message = (
            f"engines died while they served this request ({engines}): it is not tried again, and refused for a while"
        )
        super().__init__(message, retry_after_s=max(1, ceil(refused_s)))


class UpstreamTimeout(ProxyError):
    """No engine answered in time."""

    status = 504
    code = "upstream_timeout"
    type = "upstream_error"


def error_body(error: ProxyError, *, anthropic: bool = False) -> bytes:
    """Return the JSON body of an error, in OpenAI's form or in Anthropic's."""
    if anthropic:
        kind = _ANTHROPIC_TYPES.get(error.status, "api_error")
        return orjson.dumps({"type": "error", "error": {"type": kind, "message": error.message}})
    return orjson.dumps(
        {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}
    )


_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def error_answer(error: ProxyError, lines: bytes = b"", *, anthropic: bool = False) -> OwnAnswer:
    """Return the whole answer that tells of an error, with further header lines."""
    lines += error.lines
    if error.retry_after_s is not None:
        lines += b"Retry-After: %d\r\n" % error.retry_after_s
    return OwnAnswer(error.status, b"application/json", error_body(error, anthropic=anthropic), lines)
