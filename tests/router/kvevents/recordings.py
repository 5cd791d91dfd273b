"""The recorded messages of real engines, as the payloads that went over the wire."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from tests.shared_material import shared_path

HEX_LIMIT = 400
"""Recordings keep so many bytes of a payload, and the whole of it decoded."""


@dataclass(frozen=True)
class Message:
    """One recorded message; ``batch`` is its decoded content, None for the end of a replay."""

    number: int
    payload: bytes
    batch: list[Any] | None
    label: str
    port_rank: int


def messages(name: str) -> Iterator[Message]:
    """Yield a recording's messages; lines that were damaged when they were recorded are left out, as if lost."""
    for line in shared_path(f"samples/{name}").read_text().splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        payload = b"" if record["batch"] is None else _payload(record)
        yield Message(record["seq"], payload, record["batch"], record.get("label", ""), record.get("port_rank", 0))


def _payload(record: dict[str, Any]) -> bytes:
    """Encode the batch again, and check it against the recorded bytes where there are any."""
    payload = msgspec.msgpack.encode(record["batch"])
    recorded = bytes.fromhex(record.get("payload_hex", ""))
    if recorded and payload != recorded and len(recorded) == record["payload_len"]:
        return recorded
    return payload
