"""From a request's bytes to a :class:`router.core.request.Request` and its prefix chain. Nothing is booked yet."""

import re
from random import Random
from typing import Any, Final

import msgspec

from router.core.prefix import PromptHasher, prefix_key
from router.core.request import Request
from router.proxy.access import ANONYMOUS, Caller
from router.proxy.aliases import rename_model
from router.proxy.body_fields import form_model, json_fields
from router.proxy.errors import BadRequest
from router.proxy.prompt.value import NO_PROMPT, PromptText
from router.proxy.routes import Route, route_of
from router.proxy.sessions import MOST_NAME_CHARS, Sessions
from router.proxy.table import RoutingTable
from router.proxy.wire.head import RequestHead
from router.state.calibration import BytesPerToken
from router.state.known_prefix import KnownPrefix
from router.state.known_prompts import KnownPrompts

TOKEN_ID_BYTES: Final = 4
MOST_KEYS: Final = 256
SESSION_HEADER: Final = b"x-pointsman-session"
REQUEST_ID_HEADER: Final = b"x-request-id"
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._:@/+=-]{1,128}")
_OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_JSON_ENDINGS = (b"json", b"text/plain")


class Intake(msgspec.Struct, frozen=True, gc=False):
    """A request, ready to be decided."""

    route: Route
    request: Request
    body: bytes
    """What is sent to the engine: the client's own bytes, unless an alias had to be replaced in them."""
    chain: bytes
    """Hashes of the prompt's blocks."""
    text_bytes: int
    """Length of what the chain was made of, for learning bytes per token; 0 where nothing can be learnt."""
    caller: Caller
    most_output: int | None
    """The most tokens that the answer may have, where the request says so."""
    known: KnownPrefix | None = None
    """What is known of the prompt's tokens, where any instance tells its KV events."""


class IntakeDesk:
    """Makes intakes; holds what they are measured and hashed with."""

    def __init__(
        self,
        hasher: PromptHasher,
        calibration: BytesPerToken,
        rng: Random,
        sessions: Sessions,
        known: KnownPrompts,
    ) -> None:
        self._hasher = hasher
        self._known = known
        self._calibration = calibration
        self._rng = rng
        self._sessions = sessions
        self._keys: dict[str, bytes] = {}
        self.adapters: frozenset[str] = frozenset()
        """Names of models that are adapters: their KV blocks are others than those of their base model."""

    def use(self, hasher: PromptHasher) -> None:
        """Hash prompts with another secret from now on."""
        self._hasher = hasher

    def request_id(self, head: RequestHead) -> str:
        """Return the client's request id where it is a plain one, or a new one."""
        given = head.fields.get(REQUEST_ID_HEADER)
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given.decode()
        return self._rng.getrandbits(96).to_bytes(12, "big").hex()

    def intake(
        self, head: RequestHead, body: bytes, request_id: str, table: RoutingTable, caller: Caller = ANONYMOUS
    ) -> Intake:
        """Read what routing needs; the body itself is passed on unchanged, but for an alias in it.

        :raises BadRequest: for a path that is not served, a body that is not a JSON object, or no model to route by.
        """
        path = head.path
        route = _route(head.method, path)
        fields = _fields(head, body)
        model = _model(fields, head, body, table)
        session = _session(head.fields.get(SESSION_HEADER))
        split = table.splits.get(model)
        if split is not None and fields is not None:
            model = split.model_of(request_id if session is None else session)
            body = rename_model(body, model)
        prompt = NO_PROMPT if fields is None else route.extract(fields)
        salt = None if fields is None else fields.get("cache_salt")
        salt = salt if isinstance(salt, str) else None
        chain, known = b"", None
        if prompt.text:
            chain = self.chain(model, salt, prompt.text)
            if self._known.block_sizes:
                known = self._known_prefix(model, prompt, chain, salt)
        workload = table.workload(head.fields, caller.tenant, model, path)
        return Intake(
            route,
            self._request(request_id, model, prompt, workload, session, known),
            body,
            chain,
            len(prompt.text) if prompt.token_ids is None else 0,
            caller,
            None if fields is None else _most_output(fields),
            known,
        )

    def chain(self, model: str, cache_salt: str | None, text: bytes) -> bytes:
        """Return the hashes of a text's blocks, as they are for a prompt to a model."""
        key = self._key_of(model) if cache_salt is None else prefix_key(model, None, cache_salt)
        return self._hasher.chain(key, text)

    def _known_prefix(self, model: str, prompt: PromptText, chain: bytes, cache_salt: str | None) -> KnownPrefix | None:
        if prompt.token_ids is None:
            return self._known.find(prompt.text, chain)
        if prompt.several:
            return None
        return self._known.of_ids(prompt.text, model if model in self.adapters else None, cache_salt)

    def _key_of(self, model: str) -> bytes:
        """Return the key of a model without a salt; those of a few models are remembered."""
        key = self._keys.get(model)
        if key is None:
            if len(self._keys) >= MOST_KEYS:
                self._keys.clear()
            key = self._keys[model] = prefix_key(model)
        return key

    def _request(
        self,
        request_id: str,
        model: str,
        prompt: PromptText,
        workload: str,
        session: str | None,
        known: KnownPrefix | None,
    ) -> Request:
        exact = prompt.token_ids
        per_token = float(TOKEN_ID_BYTES) if exact is not None else self._calibration.get(model)
        return Request(
            id=request_id,
            model=model,
            prompt_tokens=max(1, exact) if exact is not None else self._tokens(model, len(prompt.text), known),
            tokens_per_block=self._hasher.block_bytes / per_token,
            estimated=exact is None and (known is None or known.text_bytes < len(prompt.text)),
            workload=workload,
            session=session,
            preferred=None if session is None else self._sessions.slot_of(session),
        )

    def _tokens(self, model: str, text_bytes: int, known: KnownPrefix | None) -> int:
        """Return the tokens of a text: as they were counted where it is known, estimated from there on."""
        if known is None:
            return self._calibration.tokens(model, text_bytes)
        rest_bytes = text_bytes - known.likely_bytes
        return known.likely_tokens + (self._calibration.tokens(model, rest_bytes) if rest_bytes else 0)


def _route(method: bytes, path: bytes) -> Route:
    route = route_of(method, path)
    if route is None:
        known = route_of(b"POST", path) is not None
        raise BadRequest(
            f"{method.decode()} {path.decode('ascii', 'replace')} is not served here",
            status=405 if known else 404,
            code="method_not_allowed" if known else "unknown_path",
        )
    return route


def _fields(head: RequestHead, body: bytes) -> dict[str, Any] | None:
    """Decode the body where it is JSON; None where there is none, or it is a form."""
    if not body:
        if head.method == b"POST":
            raise BadRequest("the request has no body", code="invalid_json")
        return None
    kind = head.fields.get(b"content-type", b"application/json").partition(b";")[0].strip().lower()
    if not kind.endswith(_JSON_ENDINGS):
        return None
    return json_fields(body)


def _model(fields: dict[str, Any] | None, head: RequestHead, body: bytes, table: RoutingTable) -> str:
    model = form_model(body) if fields is None else fields.get("model")
    if isinstance(model, str) and model:
        return model
    if model not in (None, ""):
        raise BadRequest("model must be a string", param="model", code="invalid_model")
    if len(table.models) <= 1 or head.method != b"POST":
        return next(iter(table.models), "")
    raise BadRequest("several models are served here: name one", param="model", code="missing_model")


def _most_output(fields: dict[str, Any]) -> int | None:
    """Return what the request says about the length of its answer, under any of its names."""
    for name in _OUTPUT_LIMITS:
        value = fields.get(name)
        if type(value) is int and value >= 0:
            return value
    return None


def _session(value: bytes | None) -> str | None:
    return None if value is None else value[:MOST_NAME_CHARS].decode("latin-1")
