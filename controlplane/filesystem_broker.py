"""Celery's filesystem broker, made safe for several processes: what a reader can see is always complete.

kombu's own channel creates a file first and fills it afterwards, so a worker that looks in between reads an empty
message or an empty table of queues and dies of a JSON error. Here every file is written beside its place and renamed
into it, and tables are changed under a lock of their own.
"""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic_ns
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps

SCHEME = "atomic-filesystem"


class Channel(filesystem.Channel):
    """A filesystem channel whose files appear whole."""

    def _put(self, queue: str, payload: dict[str, Any], **kwargs: Any) -> None:  # type: ignore[override]
        name = f"{monotonic_ns() // 1_000_000}_{uuid.uuid4()}.{queue}.msg"
        _write_whole(Path(self.data_folder_out) / name, _json(payload))

    def _queue_bind(self, exchange: str, routing_key: str | None, pattern: str | None, queue: str | None) -> None:
        file: Path = self._exchange_file(exchange)  # type: ignore[no-untyped-call]
        self.control_folder.mkdir(exist_ok=True)
        entry = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        with _locked(file.with_suffix(".lock")):
            table = self.get_table(exchange)  # type: ignore[no-untyped-call]
            if entry not in table:
                _write_whole(file, _json([entry, *table]))


class Transport(filesystem.Transport):
    """The transport of :data:`SCHEME` URLs."""

    Channel = Channel


def register() -> None:
    """Make kombu know :data:`SCHEME`."""
    TRANSPORT_ALIASES[SCHEME] = f"{__name__}:Transport"


def _json(value: object) -> str:
    return str(dumps(value))  # type: ignore[no-untyped-call]


def _write_whole(file: Path, text: str) -> None:
    part = file.with_name(f".{uuid.uuid4()}.part")
    try:
        part.write_text(text)
        part.replace(file)
    except OSError as error:
        raise ChannelError(f"cannot write {file}") from error


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    descriptor = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
