"""Taking traces in: what is read, and what is refused before it can do harm."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from controlplane.errors import Conflict, InUse, Invalid, NotFound, TooLarge
from controlplane.lab import recordings
from controlplane.lab.limits import MOST_TEXT_FACTOR
from controlplane.lab.models import Trace, TraceSource
from controlplane.lab.services import simulations, traces
from controlplane.lab.storage import recordings_folder, runs_folder, trace_path
from router.sim.traces.recording import RecordedRequest, RecordingHeader, RecordingWriter
from tests.controlplane.conftest import ACTOR
from tests.controlplane.lab.conftest import SMALL

pytestmark = pytest.mark.django_db(transaction=True)


def mooncake(requests: int) -> bytes:
    """A Mooncake trace."""
    rows = (
        {"timestamp": 100 * i, "input_length": 1100, "output_length": 8, "hash_ids": [0, 1, i + 2]}
        for i in range(requests)
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture(autouse=True)
def no_leftovers() -> Iterator[None]:
    """Nothing of a refused trace stays behind."""
    runs = runs_folder()
    before = set(runs.iterdir())
    yield
    kept = {str(pk) for pk in Trace.objects.values_list("pk", flat=True)}
    stored = list((django_settings.DATA_DIR / "lab" / "traces").glob("*"))
    assert {path.name for path in stored} == kept
    for path in stored:
        path.unlink()
    assert set(runs.iterdir()) == before


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_is_read_and_kept(packed: bool) -> None:
    content = mooncake(20)
    sent = gzip.compress(content[:500]) + gzip.compress(content[500:]) if packed else content
    kept = traces.take_in(actor=ACTOR, name="../../etc/conv.jsonl", chunks=[sent[:40], b"", sent[40:]])
    assert (kept.name, kept.format, kept.hashed, kept.size_bytes) == ("conv.jsonl", "mooncake", True, len(sent))
    assert kept.statistics["requests"] == 20
    assert kept.statistics["mean_prompt_tokens"] == 1100
    assert trace_path(kept.pk).read_bytes() == sent


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "empty"),
        (b"hello\n", "Line 1: neither CSV"),
        (b'{"a": 1}\n', "Line 1: no known trace format has the fields a"),
        (mooncake(3) + b'{"timestamp": 1, "input_length": -4}\n', "Line 4: "),
        (gzip.compress(mooncake(300))[:-40], "cannot be read"),
        (b"\x1f\x8bnot at all", "begins like gzip, but is not"),
    ],
)
def test_what_is_no_trace_is_refused_by_its_line(content: bytes, fault: str) -> None:
    with pytest.raises(Invalid) as caught:
        traces.take_in(actor=ACTOR, name="x.jsonl", chunks=[content])
    assert fault in caught.value.fields["file"][0]


def test_a_large_one_is_refused_at_the_first_byte_too_many(settings: object) -> None:
    settings.LAB_UPLOAD_MIB = 1  # type: ignore[attr-defined]
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1 << 19
            yield b" " * (1 << 19)

    with pytest.raises(TooLarge, match="1 MiB"):
        traces.take_in(actor=ACTOR, name="x.jsonl", chunks=endless())
    assert read == 3 << 19


def test_a_bomb_is_refused(settings: object) -> None:
    settings.LAB_UPLOAD_MIB = 1  # type: ignore[attr-defined]
    bomb = gzip.compress(b"\n" * ((MOST_TEXT_FACTOR + 1) << 20))
    assert len(bomb) < 1 << 20
    with pytest.raises(TooLarge, match="unpacks to more"):
        traces.take_in(actor=ACTOR, name="x.gz", chunks=[bomb])


def test_all_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MOST_TRACES_BYTES", 3000)
    traces.take_in(actor=ACTOR, name="a", chunks=[mooncake(20)])
    with pytest.raises(Conflict, match="delete some"):
        traces.take_in(actor=ACTOR, name="b", chunks=[mooncake(20)])


def test_a_trace_that_is_needed_stays() -> None:
    kept = traces.take_in(actor=ACTOR, name="a", chunks=[mooncake(20)])
    asked = simulations.create_simulation(actor=ACTOR, settings=SMALL | {"trace": str(kept.pk)})
    assert asked.trace_name == "a"
    with pytest.raises(InUse, match="needed"):
        traces.delete_trace(actor=ACTOR, trace_id=kept.pk)
    simulations.cancel_simulation(actor=ACTOR, simulation_id=asked.pk)
    traces.delete_trace(actor=ACTOR, trace_id=kept.pk)
    assert not trace_path(kept.pk).exists()
    with pytest.raises(NotFound):
        traces.delete_trace(actor=ACTOR, trace_id=kept.pk)


@pytest.fixture
def recording() -> Iterator[Path]:
    """A recording whose last line a worker is still writing."""
    path = recordings_folder() / "router-0.jsonl"
    with path.open("wb") as file:
        writer = RecordingWriter(file, RecordingHeader(block_tokens=16))
        for i in range(12):
            writer.write(RecordedRequest(arrival_s=i / 10, prompt_tokens=100, output_tokens=5))
        file.write(b'{"t": 1.2, "in": 1')
    yield path
    path.unlink()


def test_a_recording_is_taken_up_to_its_last_whole_line(recording: Path) -> None:
    assert [one.name for one in recordings.recordings()] == ["router-0.jsonl"]
    kept = traces.take_recording(actor=ACTOR, name="router-0.jsonl")
    assert (kept.source, kept.format, kept.statistics["requests"]) == (TraceSource.RECORDING, "recording", 12)


@pytest.mark.parametrize("name", ["other.jsonl", "../pointsman.sqlite3", ""])
def test_only_recordings_are_taken(recording: Path, name: str) -> None:
    with pytest.raises(NotFound):
        traces.take_recording(actor=ACTOR, name=name)
