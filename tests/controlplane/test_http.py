"""Synchronous views run in lasting threads, asynchronous ones in the event loop."""

import threading
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

from controlplane.http import THREADS, HttpApplication
from tests.patience import PATIENCE_S


def synchronous(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{threading.current_thread().name} {request.body.decode()}")


async def asynchronous(request: HttpRequest) -> HttpResponse:
    return HttpResponse(threading.current_thread().name)


def broken(request: HttpRequest) -> HttpResponse:
    raise ValueError("broken on purpose")


def streaming(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse([b"a", b"b"])


urlpatterns = [
    path("http-test/streaming/", streaming),
    path("http-test/synchronous/", synchronous),
    path("http-test/asynchronous/", asynchronous),
    path("http-test/broken/", broken),
]


@pytest.fixture(autouse=True)
def these_paths(settings: Any) -> None:
    settings.ROOT_URLCONF = __name__
    settings.SECURE_SSL_REDIRECT = False
    settings.ALLOWED_HOSTS = ["testserver"]


async def ask(application: HttpApplication, where: str, body: bytes = b"", root: str = "") -> tuple[int, str]:
    """Return status and body of an answer."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": root + where,
        "root_path": root,
        "query_string": b"",
        "headers": [(b"host", b"testserver")],
    }
    caller = ApplicationCommunicator(application, scope)
    await caller.send_input({"type": "http.request", "body": body, "more_body": False})
    await caller.wait(PATIENCE_S)
    head = await caller.receive_output()
    parts = [await caller.receive_output()]
    while parts[-1].get("more_body"):
        parts.append(await caller.receive_output())
    return head["status"], b"".join(part["body"] for part in parts).decode()


async def test_synchronous_views_share_a_few_threads() -> None:
    application = HttpApplication()
    answers = [await ask(application, "/http-test/synchronous/", b"hello") for _ in range(THREADS * 2)]
    assert {status for status, _ in answers} == {200}
    assert all(text.startswith("http_") and text.endswith(" hello") for _, text in answers)
    assert len({text for _, text in answers}) <= THREADS


@pytest.mark.parametrize("root", ["", "/pointsman"])
async def test_asynchronous_views_stay_in_the_event_loop(root: str) -> None:
    here = threading.current_thread().name
    assert await ask(HttpApplication(), "/http-test/asynchronous/", root=root) == (200, here)


async def test_an_unknown_path_is_answered_and_a_broken_view_too(settings: Any) -> None:
    settings.DEBUG_PROPAGATE_EXCEPTIONS = False
    application = HttpApplication()
    assert (await ask(application, "/http-test/nowhere/"))[0] == 404
    assert (await ask(application, "/http-test/broken/"))[0] == 500
    assert (await ask(application, "/http-test/synchronous/"))[0] == 200


async def test_a_client_that_leaves_before_its_body_is_whole_is_not_answered() -> None:
    scope = {"type": "http", "method": "GET", "path": "/http-test/synchronous/", "query_string": b"", "headers": []}
    caller = ApplicationCommunicator(HttpApplication(), scope)
    await caller.send_input({"type": "http.disconnect"})
    await caller.wait(PATIENCE_S)
    assert await caller.receive_nothing()


async def test_a_synchronous_view_that_streams_is_refused_instead_of_cut() -> None:
    with pytest.raises(TypeError, match="must not stream"):
        await ask(HttpApplication(), "/http-test/streaming/")
