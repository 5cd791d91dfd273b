"""Giving orders to routers, and what their answers mean."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256

import httpx
import msgspec
from asgiref.sync import sync_to_async
from django.conf import settings

from controlplane.fleet.models import Instance
from controlplane.preloading.lifecycle import PreloadEvent
from controlplane.preloading.models import Preload
from controlplane.preloading.services import claim, settle
from controlplane.sealing import derived
from router.core.instance import ROUTABLE_STATES
from router.unreadable import UNREADABLE

TIME_LIMIT_S = 30.0
"""Of one preload, prefill included; shorter than the lease of its claim."""
_KEY_BYTES = 32
_PATH = "/-/preload"


class Outcome(msgspec.Struct, frozen=True):
    """How one attempt went."""

    event: PreloadEvent
    detail: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None


class _Details(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Answer(msgspec.Struct, frozen=True):
    usage: _Usage | None = None


def order_key() -> str:
    """Return the key by which routers know this control plane: derived from the signing key, never stored."""
    return derived("preload orders", _KEY_BYTES).hex()


def order_key_digest() -> str:
    """Return what routers are told of the key."""
    return sha256(order_key().encode()).hexdigest()


def send_due() -> int:
    """Send what is due, a few at once; return how many were tried."""
    rows = claim()
    if rows:
        asyncio.run(_send_all(rows))
    return len(rows)


def read_answer(status: int, content: bytes) -> Outcome:
    """Return what a router's answer to an order means. Pure."""
    if status == 200:
        usage = _usage(content)
        cached = None if usage.prompt_tokens_details is None else usage.prompt_tokens_details.cached_tokens
        return Outcome(PreloadEvent.ARRIVED, "The engine has prefilled it.", usage.prompt_tokens, cached)
    code = _code(content)
    if status == 409 and code == "held":
        return Outcome(PreloadEvent.POINTLESS, "The instance holds it by now.")
    if status == 404 and code == "unknown_instance":
        return Outcome(PreloadEvent.POINTLESS, "The router does not know the instance.")
    if status == 404:
        # Of several workers behind one port only some may have seen the class.
        return Outcome(PreloadEvent.PUT_OFF, "This router keeps no text of the class.")
    if status == 503:
        return Outcome(PreloadEvent.PUT_OFF, "Users' requests are waiting there, or it takes none.")
    return Outcome(PreloadEvent.PUT_OFF, f"The router answers {status} ({code}).")


async def _send_all(rows: Sequence[Preload]) -> None:
    async with httpx.AsyncClient(timeout=TIME_LIMIT_S, trust_env=False) as client:
        await asyncio.gather(*(_send(client, row) for row in rows))


async def _send(client: httpx.AsyncClient, row: Preload) -> None:
    if await sync_to_async(_is_pointless)(row):
        outcome = Outcome(PreloadEvent.POINTLESS, "The instance is gone, or began anew.")
    else:
        outcome = await _order(client, row)
    await sync_to_async(settle)(
        row=row,
        event=outcome.event,
        detail=outcome.detail,
        prompt_tokens=outcome.prompt_tokens,
        cached_tokens=outcome.cached_tokens,
    )


async def _order(client: httpx.AsyncClient, row: Preload) -> Outcome:
    body = {"class_id": row.class_id, "instance_id": str(row.instance_id)}
    headers = {"Authorization": f"Bearer {order_key()}", "X-Request-Id": f"preload-{row.pk}"}
    try:
        async with asyncio.timeout(TIME_LIMIT_S):
            answer = await client.post(settings.ROUTER_URL.rstrip("/") + _PATH, json=body, headers=headers)
    except TimeoutError:
        return Outcome(PreloadEvent.PUT_OFF, f"No answer within {TIME_LIMIT_S:g} s.")
    except httpx.HTTPError as error:
        return Outcome(PreloadEvent.PUT_OFF, f"Cannot talk to the router: {error or type(error).__name__}.")
    return read_answer(answer.status_code, answer.content)


def _is_pointless(row: Preload) -> bool:
    known = Instance.objects.filter(pk=row.instance_id, epoch=row.epoch, state__in=ROUTABLE_STATES)
    return not known.exists()


def _usage(content: bytes) -> _Usage:
    try:
        return msgspec.json.decode(content, type=_Answer).usage or _Usage()
    except UNREADABLE:
        return _Usage()


def _code(content: bytes) -> str:
    try:
        error = msgspec.json.decode(content)["error"]
        return str(error["code"])
    except (*UNREADABLE, KeyError, TypeError):
        return "unknown"
