"""Errors as problem+json (RFC 9457): the one place where an exception becomes an answer of the REST interface."""

import logging
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import set_rollback

from controlplane.errors import ControlPlaneError, Invalid

CONTENT_TYPE = "application/problem+json"
logger = logging.getLogger(__name__)

_CODES: Mapping[type[exceptions.APIException], str] = {
    exceptions.ParseError: "malformed",
    exceptions.AuthenticationFailed: "invalid_credentials",
    exceptions.NotAuthenticated: "not_authenticated",
    exceptions.PermissionDenied: "forbidden",
    exceptions.NotFound: "not_found",
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.NotAcceptable: "not_acceptable",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
    exceptions.Throttled: "throttled",
}


def handle(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Turn an exception of a view into an answer; None (and so status 500) for what nobody foresaw."""
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    body, headers = _body(error)
    if body is None:
        return None
    set_rollback()
    context["request"].accepted_renderer = JSONRenderer()  # also where the view's own answers are pages
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def problem_response(error: Exception) -> JsonResponse:
    """Return an exception as an answer, for views that are not REST framework's."""
    body, headers = _body(error)
    if body is None:
        logger.error("unforeseen error in a view", exc_info=error)
        body = _problem(500, "internal_error", "Something went wrong", "The error was logged.")
    return JsonResponse(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


@csrf_exempt
def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """Answer a path below /api/ that nothing is at."""
    return problem_response(exceptions.NotFound(f"Nothing is at {request.path}."))


def _body(error: Exception) -> tuple[dict[str, Any] | None, dict[str, str]]:
    if isinstance(error, Invalid):
        faults = [{"field": name, "message": text} for name, texts in error.fields.items() for text in texts]
        return _problem(error.status, error.code, error.title, str(error)) | {"errors": faults}, {}
    if isinstance(error, ControlPlaneError):
        return _problem(error.status, error.code, error.title, str(error)) | error.extra, {}
    if isinstance(error, exceptions.ValidationError):
        faults = [{"field": name, "message": text} for name, text in _flatten(error.detail, "")]
        detail = "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults)
        return _problem(400, Invalid.code, Invalid.title, detail) | {"errors": faults}, {}
    if isinstance(error, exceptions.APIException):
        return _framework_problem(error)
    return None, {}


def _framework_problem(error: exceptions.APIException) -> tuple[dict[str, Any], dict[str, str]]:
    headers: dict[str, str] = {}
    challenge = getattr(error, "auth_header", None)
    if challenge:
        headers["WWW-Authenticate"] = challenge
    wait = getattr(error, "wait", None)
    if wait is not None:
        headers["Retry-After"] = str(int(wait) + 1)
    code = next((name for kind, name in _CODES.items() if isinstance(error, kind)), "error")
    return _problem(error.status_code, code, HTTPStatus(error.status_code).phrase, str(error.detail)), headers


def _problem(status: int, code: str, title: str, detail: str) -> dict[str, Any]:
    return {"type": f"urn:pointsman:problem:{code}", "title": title, "status": status, "code": code, "detail": detail}


def _flatten(detail: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _flatten(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(detail, list):
        for position, inner in enumerate(detail):
            nested = isinstance(inner, Mapping | list)
            yield from _flatten(inner, f"{path}[{position}]" if nested else path)
    else:
        yield path or "body", str(detail)
