"""Traces: taken in from an upload or from a recording of a router worker, read once, and deleted."""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
from django.db import transaction
from django.db.models import Sum

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.errors import Conflict, InUse, Invalid, NotFound, TooLarge
from controlplane.lab.inspection import inspect
from controlplane.lab.lifecycle import ACTIVE
from controlplane.lab.limits import MOST_TRACES_BYTES, Limits, limits
from controlplane.lab.models import Trace, TraceSource
from controlplane.lab.recordings import complete_lines, recording_path
from controlplane.lab.storage import trace_path

_GZIP = b"\x1f\x8b"
_AT_ONCE = 1 << 20


def take_in(*, actor: Actor, name: str, chunks: Iterable[bytes], source: TraceSource = TraceSource.UPLOAD) -> Trace:
    """Keep a trace file, plain or gzip, after it was read to its end.

    :param chunks: its bytes.
    :raises TooLarge: when it is larger than a trace may be, packed or unpacked.
    :raises Invalid: when it cannot be read; the message names the line.
    """
    shown = Path(name).name.strip()[:200]
    if not shown:
        raise Invalid({"name": ["A trace needs a name."]})
    trace_id = uuid4()
    path = trace_path(trace_id)
    try:
        size = _write(path, chunks, limits())
        found = inspect(path, shown)
        return _keep(
            actor,
            Trace(
                id=trace_id,
                name=shown,
                source=source,
                format=found.format,
                hashed=found.hashed,
                size_bytes=size,
                statistics=msgspec.to_builtins(found.statistics),
                author=actor.label,
            ),
        )
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def take_recording(*, actor: Actor, name: str) -> Trace:
    """Keep what a router worker has recorded so far.

    :raises NotFound: when there is no such recording.
    """
    return take_in(actor=actor, name=name, chunks=complete_lines(recording_path(name)), source=TraceSource.RECORDING)


@transaction.atomic
def delete_trace(*, actor: Actor, trace_id: UUID | str) -> None:
    """Delete a trace; results that it gave stay.

    :raises InUse: while a simulation needs it.
    """
    trace = Trace.objects.filter(pk=trace_id).first()
    if trace is None:
        raise NotFound("There is no such trace.")
    if trace.simulations.filter(state__in=ACTIVE).exists():
        raise InUse(f"{trace.name} is needed by a simulation that waits or runs.")
    record(actor=actor, action="trace.delete", target=("trace", trace.pk, trace.name))
    path = trace_path(trace.pk)
    trace.delete()
    transaction.on_commit(lambda: path.unlink(missing_ok=True))


@transaction.atomic
def _keep(actor: Actor, trace: Trace) -> Trace:
    kept = Trace.objects.aggregate(total=Sum("size_bytes"))["total"] or 0
    if kept + trace.size_bytes > MOST_TRACES_BYTES:
        raise Conflict(f"All traces together may have {MOST_TRACES_BYTES >> 20} MiB; delete some first.")
    trace.save(force_insert=True)
    record(actor=actor, action="trace.create", target=("trace", trace.pk, trace.name), after={"format": trace.format})
    return trace


def _write(path: Path, chunks: Iterable[bytes], most: Limits) -> int:
    """Write a file within its limits; return its size.

    :raises TooLarge: at the first byte too many.
    """
    size = 0
    measure: _Unpacking | None = None
    with path.open("xb") as file:
        for number, chunk in enumerate(filter(None, chunks)):
            if number == 0 and chunk.startswith(_GZIP):
                measure = _Unpacking(most.text_bytes)
            size += len(chunk)
            if size > most.upload_bytes:
                raise TooLarge(f"A trace may have {most.upload_bytes >> 20} MiB (POINTSMAN_LAB_UPLOAD_MIB).")
            if measure is not None:
                measure.feed(chunk)
            file.write(chunk)
    return size


class _Unpacking:
    """Measures what a gzip file unpacks to, piece by piece, so that a bomb is noticed before it goes off."""

    def __init__(self, most: int) -> None:
        self._left = self._most = most
        self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def feed(self, chunk: bytes) -> None:
        """Unpack a piece and forget it.

        :raises TooLarge: when all pieces together unpack to more than may be.
        :raises Invalid: when it is not gzip.
        """
        try:
            for piece in self._pieces(chunk):
                self._left -= len(piece)
                if self._left < 0:
                    raise TooLarge(f"A trace may unpack to {self._most >> 20} MiB; this one unpacks to more.")
        except zlib.error as error:
            raise Invalid({"file": [f"It begins like gzip, but is not: {error}"]}) from error

    def _pieces(self, chunk: bytes) -> Iterator[bytes]:
        rest = chunk
        while rest:
            yield self._unpacker.decompress(rest, _AT_ONCE)
            rest = self._unpacker.unconsumed_tail
            if self._unpacker.eof:  # gzip files may be joined
                rest = self._unpacker.unused_data
                self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
