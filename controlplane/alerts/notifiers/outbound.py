"""HTTP to places that people typed in: one limit for everything, no redirects, and only to addresses that may be.

A name is looked up once, every address that it has is checked, and the connection goes to the address that was
checked: a name that answers differently the second time leads nowhere else.
"""

import asyncio
import math
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx

from controlplane.alerts.notifiers.base import ATTEMPT_TIMEOUT_S, DeliveryFailed, MessageRejected
from controlplane.fleet.address import host_fault

_MAX_ANSWER_BYTES = 64 * 1024
_MAX_URL = 2_000
_REFUSED = frozenset({401, 403, 404, 405})
_REJECTED = frozenset({400, 413, 414, 415, 422})
_GONE = 410
USER_AGENT = "Pointsman"


def url_faults(url: str) -> list[str]:
    """Return everything that is wrong with the address of a receiver; names are not looked up here."""
    if len(url) > _MAX_URL or any(character.isspace() or ord(character) < 0x20 for character in url):
        return [f"It must have at most {_MAX_URL} characters, and no white space."]
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return [f"It is not a URL: {error}."]
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return ["It must begin with http:// or https://, and name a host."]
    faults = []
    if parts.username is not None or parts.password is not None:
        faults.append("It carries a user name or password; give credentials apart from it.")
    if parts.fragment or port == 0:
        faults.append("It must have no fragment, and no port 0.")
    if reason := host_fault(parts.hostname):
        faults.append(reason)
    return faults


def shown_url(url: str) -> str:
    """Return what people may see of an address: paths of receivers often are secrets."""
    parts = urlsplit(url)
    more = "/…" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{more}"


async def post(url: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
    """Post a body, and return the answer if it is one of success.

    :raises DeliveryFailed: for everything else, saying whether trying again may help.
    """
    try:
        async with asyncio.timeout(ATTEMPT_TIMEOUT_S):
            answer = await _post(url, body, headers)
    except TimeoutError:
        raise DeliveryFailed(f"No complete answer within {ATTEMPT_TIMEOUT_S:g} s.") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise DeliveryFailed(f"Cannot talk to {shown_url(url)}: {error or type(error).__name__}.") from error
    _check(answer)
    return answer


async def checked_address(host: str, port: int) -> str:
    """Return an address of a host that may be connected to.

    :raises DeliveryFailed: when the name is not known, or has an address that may not be.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise DeliveryFailed(f"The name {host} is not known: {error.strerror or error}.") from error
    addresses = [str(address[0]) for *_, address in found]
    for address in addresses:
        if reason := host_fault(address):
            raise DeliveryFailed(f"{host}: {reason}", permanent=True)
    return addresses[0]


async def _post(url: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
    named = httpx.URL(url)
    address = await checked_address(named.host, named.port or (443 if named.scheme == "https" else 80))
    sent = {"User-Agent": USER_AGENT, "Content-Type": "application/json", **headers, "Host": named.netloc.decode()}
    async with httpx.AsyncClient(timeout=ATTEMPT_TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
        request = client.build_request(
            "POST",
            named.copy_with(host=address),
            content=body,
            headers=sent,
            extensions={"sni_hostname": named.host} if named.scheme == "https" else {},
        )
        answer = await client.send(request, stream=True)
        try:
            content = bytearray()
            async for part in answer.aiter_bytes():
                content += part
                if len(content) > _MAX_ANSWER_BYTES:
                    break
        finally:
            await answer.aclose()
    return httpx.Response(answer.status_code, headers=answer.headers, content=bytes(content[:_MAX_ANSWER_BYTES]))


def _check(answer: httpx.Response) -> None:
    status = answer.status_code
    if 200 <= status < 300:
        return
    said = f"The receiver answers {status} {answer.reason_phrase}".rstrip() + "."
    if status == _GONE:
        raise DeliveryFailed(f"{said} It is gone for good.", permanent=True, status=status)
    if status in _REJECTED:
        raise MessageRejected(said, status=status)
    if 300 <= status < 400:
        raise DeliveryFailed(f"{said} Redirects are not followed.", refused=True, status=status)
    raise DeliveryFailed(said, refused=status in _REFUSED, status=status, retry_after_s=_retry_after_s(answer))


def _retry_after_s(answer: httpx.Response) -> float | None:
    try:
        seconds = float(answer.headers.get("Retry-After", ""))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
