"""The two asynchronous views that router workers call: configuration out (long poll), snapshots in."""

import asyncio
import math
import re
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from msgspec.structs import replace
from rest_framework.exceptions import NotAuthenticated, UnsupportedMediaType

from controlplane.accounts.access import Scope, allows
from controlplane.accounts.authentication import CHALLENGE, bearer_token
from controlplane.bridge.asking import Asking
from controlplane.bridge.count_book import move_book, shadow_book, usage_book
from controlplane.bridge.drained import Drained
from controlplane.bridge.others import others_of
from controlplane.bridge.publisher import current, newest_number
from controlplane.bridge.watcher import WATCHER
from controlplane.decisions.questions import take_answers
from controlplane.errors import Forbidden, Invalid, NameTaken
from controlplane.problems import problem_response
from controlplane.telemetry.clock import SystemClock
from controlplane.telemetry.hub import hub
from controlplane.telemetry.ingest import ingest
from controlplane.telemetry.ranks import fold_ranks
from controlplane.telemetry.sharing.process import sharing
from router.snapshot import Snapshot, SnapshotAnswer, dump_answer, parse_snapshot
from router.unreadable import UNREADABLE

MAX_WAIT_S = 60.0
NOTHING_TO_SAY = SnapshotAnswer()
_ETAG = re.compile(r'^(?:W/)?"(\d{1,18})"$')


def for_router_workers(view: Any) -> Any:
    """Let in who carries a token with the scope ``router``, and answer errors as problem+json."""

    @wraps(view)
    async def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        try:
            await sync_to_async(_authorize)(request.headers.get("Authorization", ""))
            response: HttpResponseBase = await view(request, *args, **kwargs)
            return response
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return problem_response(error)

    return guarded


@method_decorator([csrf_exempt, for_router_workers], name="dispatch")
class RouterConfig(View):
    """``GET ?wait=20`` with ``If-None-Match``: the newest document, or 304 when there is none within the wait."""

    async def get(self, request: HttpRequest) -> HttpResponse:
        """Answer at once when the caller's revision is not the newest, else wait for the next."""
        known = _known_revision(request.headers.get("If-None-Match"))
        wait_s = _wait_s(request.GET.get("wait", "0"))
        if not await _newer_than(known, wait_s):
            return HttpResponse(status=304, headers={"ETag": f'"{known}"', "Cache-Control": "no-store"})
        number, body = await sync_to_async(current)()
        return HttpResponse(
            body,
            content_type="application/json",
            headers={"ETag": f'"{number}"', "Cache-Control": "no-store"},
        )


@method_decorator([csrf_exempt, for_router_workers], name="dispatch")
class RouterSnapshots(View):
    """``POST`` a snapshot; the answer tells what other live workers have let in, and asks about requests."""

    drained = Drained()
    asking = Asking(SystemClock())
    books = (usage_book(SystemClock()), shadow_book(SystemClock()), move_book(SystemClock()))

    async def post(self, request: HttpRequest) -> HttpResponse:
        """Hand one snapshot to the telemetry, and note which draining instances are idle now."""
        if request.content_type not in {"application/json", ""}:
            raise UnsupportedMediaType(request.content_type or "")
        snapshot = _parse(request.body)
        if snapshot.explained:
            await sync_to_async(take_answers)(snapshot.worker, snapshot.explained)
        if await ingest(snapshot, request.body):
            for book in self.books:
                await book.add(snapshot)
        elif hub().is_namesake(snapshot):
            raise NameTaken(
                f"Another router worker that began later reports as {snapshot.worker}: give each a --name of its own."
            )
        for instance_id in self.drained.idle_after(snapshot):
            await sync_to_async(self.drained.mark)(instance_id)
        asked = await self.asking.for_worker(snapshot.worker)
        answer = replace(others_of(snapshot, hub().live_snapshots()), explain=asked, whole=sharing().whole)
        if answer == NOTHING_TO_SAY:
            return HttpResponse(status=204)
        return HttpResponse(dump_answer(answer), content_type="application/json")


def _authorize(header: str) -> None:
    token = bearer_token(header)
    if token is None:
        error = NotAuthenticated("Send an API token: Authorization: Bearer TOKEN.")
        error.auth_header = CHALLENGE  # type: ignore[attr-defined]
        raise error
    if not allows(token.scope_set, Scope.ROUTER):
        raise Forbidden(f"The token {token.name} lacks the scope {Scope.ROUTER}.")


async def _newer_than(known: int | None, wait_s: float) -> bool:
    """Return whether there is another revision than the caller's, waiting for one if there is none yet."""
    until_s = asyncio.get_running_loop().time() + wait_s
    with WATCHER.watch() as watch:
        while True:
            if known is None or await sync_to_async(newest_number)() != known:
                return True
            left_s = until_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                return False
            await watch.changed(left_s)


def _known_revision(tag: str | None) -> int | None:
    match = _ETAG.match(tag.strip()) if tag else None
    return int(match[1]) if match else None


def _wait_s(text: str) -> float:
    try:
        wait_s = float(text)
    except ValueError:
        wait_s = math.nan
    if not 0 <= wait_s <= MAX_WAIT_S:
        raise Invalid({"wait": [f"It must be a number of seconds from 0 to {MAX_WAIT_S:g}."]})
    return wait_s


def _parse(body: bytes) -> Snapshot:
    try:
        return fold_ranks(parse_snapshot(body))
    except UNREADABLE as error:
        raise Invalid({"body": [str(error)]}) from error
