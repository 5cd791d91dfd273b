"""Traces are read as published, and faults are named by line."""

import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from router.sim.errors import TraceError
from router.sim.traces.azure import load_azure
from router.sim.traces.bailian import load_bailian
from router.sim.traces.claudecode import load_claudecode
from router.sim.traces.loading import TraceFormat, detect_format, load_trace
from router.sim.traces.mooncake import load_mooncake
from router.sim.traces.recording import (
    Outcome,
    RecordedRequest,
    RecordingHeader,
    RecordingWriter,
    load_recording,
)
from router.sim.traces.statistics import statistics_of
from router.sim.traces.transforms import limited, spread, with_shorter_outputs
from tests.router.sim.driving import chain
from tests.shared_material import shared_path

MOONCAKE = {"timestamp": 500, "input_length": 1100, "output_length": 7, "hash_ids": [0, 4, 9]}
BAILIAN = {
    "chat_id": 7,
    "parent_chat_id": -1,
    "timestamp": 0.5,
    "input_length": 40,
    "output_length": 7,
    "type": "text",
    "turn": 1,
    "hash_ids": [3, 4, 5],
}
SESSION = {
    "trace_id": "s",
    "seq": 0,
    "tool_tokens": 70,
    "system_tokens": 60,
    "t": 0.0,
    "type": "s",
    "model": "m",
    "in": 200,
    "out": 9,
    "hash_ids": [1, 2, 3],
    "think_time": 0.0,
    "api_time": 2.0,
}


def write(path: Path, *rows: Mapping[str, Any] | str, name: str = "t.jsonl") -> Path:
    file = path / name
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return file


def test_mooncake_keeps_full_blocks_and_seconds(tmp_path: Path) -> None:
    trace = load_mooncake(write(tmp_path, MOONCAKE, MOONCAKE | {"timestamp": 3000, "hash_ids": [0, 5, 6]}))
    first, second = trace.requests
    assert (first.arrival_s, second.arrival_s) == (0.5, 3.0)
    assert len(first.blocks) == 2 * 8, "the third block holds 76 tokens and is left out"
    assert first.blocks[:8] == second.blocks[:8]
    assert first.blocks[8:] != second.blocks[8:]


def test_bailian_takes_its_type_as_workload(tmp_path: Path) -> None:
    trace = load_bailian(write(tmp_path, BAILIAN))
    assert trace.block_tokens == 16
    assert (trace.requests[0].workload, len(trace.requests[0].blocks)) == ("text", 2 * 8)


def test_sessions_are_closed_loops_and_share_tools_of_equal_length(tmp_path: Path) -> None:
    trace = load_claudecode(
        write(
            tmp_path,
            SESSION,
            SESSION | {"seq": 1, "t": 9.0, "in": 260, "hash_ids": [1, 2, 3, 4], "think_time": 4.5},
            SESSION | {"seq": 2, "t": 20.0, "think_time": None},
            SESSION | {"trace_id": "other"},
            SESSION | {"trace_id": "third", "tool_tokens": 71},
        )
    )
    first, second, third, other, unlike = trace.requests
    assert [r.think_s for r in trace.requests] == [None, 4.5, 9.0, None, None]
    assert second.blocks[:24] == first.blocks
    assert third.session == "s"
    assert other.blocks[:16] == first.blocks[:16], "130 tokens of tools and system prompt are two blocks"
    assert other.blocks[16:] != first.blocks[16:]
    assert unlike.blocks[:16] != first.blocks[:16]
    assert other.arrival_s > 0


def test_azure_is_read_as_csv_and_as_jsonl(tmp_path: Path) -> None:
    rows = [("2023-11-16 18:15:46.6805900", 374, 44), ("2023-11-16 18:15:50.9951690", 396, 0)]
    csv = write(tmp_path, "TIMESTAMP,ContextTokens,GeneratedTokens", *(",".join(map(str, r)) for r in rows), name="a")
    names = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
    jsonl = write(tmp_path, *(dict(zip(names, row, strict=True)) for row in rows))
    for file in (csv, jsonl):
        trace = load_trace(file)
        assert trace.format == "azure"
        assert not trace.hashed
        assert "no prefix hashes" in trace.provenance
        assert [r.prompt_tokens for r in trace.requests] == [374, 396]
        assert [r.output_tokens for r in trace.requests] == [44, 1]
        assert trace.requests[1].arrival_s == pytest.approx(4.314579, abs=1e-4)


def test_recordings_come_back_as_they_were_written(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    writer = RecordingWriter(buffer, RecordingHeader(block_tokens=16, model="m"))
    writer.write(RecordedRequest(arrival_s=2.0, prompt_tokens=40, output_tokens=5, blocks=chain(1, 2, 3)))
    writer.write(RecordedRequest(arrival_s=1.0, prompt_tokens=9, output_tokens=1, workload="chat"))
    writer.write(RecordedRequest(arrival_s=3.0, prompt_tokens=9, output_tokens=0, outcome=Outcome.REFUSED))
    with pytest.raises(ValueError, match="not whole 8-byte hashes"):
        writer.write(RecordedRequest(arrival_s=2.0, prompt_tokens=40, output_tokens=5, blocks=b"odd"))
    file = tmp_path / "recording.jsonl.gz"
    file.write_bytes(gzip.compress(buffer.getvalue()))
    trace = load_trace(file)
    assert trace.format == "recording"
    assert [(r.arrival_s, r.workload) for r in trace.requests] == [(1.0, "chat"), (2.0, "default")]
    assert trace.requests[1].blocks == chain(1, 2)


@pytest.mark.parametrize(
    ("loader", "rows", "message"),
    [
        (load_mooncake, [MOONCAKE, "{"], "t.jsonl, line 2: Input data was truncated"),
        (load_mooncake, [MOONCAKE | {"input_length": 0}], "line 1: Expected `int` >= 1 - at `$.input_length`"),
        (load_mooncake, [MOONCAKE | {"input_length": 2048}], "line 1: 2048 tokens need 4 hash_ids, but there are 3"),
        (load_mooncake, [MOONCAKE, "", MOONCAKE | {"timestamp": 1}], "line 3: timestamp goes back"),
        (load_bailian, [BAILIAN, BAILIAN | {"chat_id": "x"}], "line 2: Expected `int`, got `str` - at `$.chat_id`"),
        (load_claudecode, [SESSION, SESSION | {"seq": 2}], "line 2: request 2 of session s is out of order"),
        (load_claudecode, [SESSION | {"in": 400}], "line 1: too few hash_ids"),
        (load_azure, ["TIMESTAMP,ContextTokens,GeneratedTokens", "soon,1,1"], "line 2"),
        (load_azure, ["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:15:46,1"], "line 2: 2 columns"),
        (load_azure, ["2023-11-16 18:15:4x.1,5,5"], "line 1: '2023-11-16 18:15:4x.1' is not a time"),
        (load_recording, [{"pointsman_recording": 2, "block_tokens": 16}], "line 1: version 2 is not 1"),
        (load_recording, [{"pointsman_recording": 1, "block_tokens": 16}, {"t": -1}], "line 2"),
    ],
)
def test_faulty_lines_are_named(tmp_path: Path, loader: Any, rows: list[Any], message: str) -> None:
    with pytest.raises(TraceError) as caught:
        loader(write(tmp_path, *rows))
    assert message in str(caught.value)


def test_formats_are_recognised(tmp_path: Path) -> None:
    for row, expected in (
        (MOONCAKE, TraceFormat.MOONCAKE),
        (BAILIAN, TraceFormat.BAILIAN),
        (SESSION, TraceFormat.CLAUDECODE),
        ({"pointsman_recording": 1, "block_tokens": 16}, TraceFormat.RECORDING),
    ):
        assert detect_format(write(tmp_path, row)) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "empty"), ("hello", "neither CSV of Azure nor a JSON object"), ('{"a": 1}', "no known trace format")],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "x"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        load_trace(file)
    with pytest.raises(TraceError, match="cannot be read"):
        load_trace(tmp_path / "missing")


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.gz"
    file.write_bytes(gzip.compress(json.dumps(MOONCAKE).encode() * 50)[:-20])
    with pytest.raises(TraceError, match="cannot be read"):
        load_mooncake(file)


def test_batches_of_arrivals_are_spread_over_their_gap(tmp_path: Path) -> None:
    rows = [MOONCAKE | {"timestamp": t} for t in (0, 0, 0, 3000, 3000)]
    trace = spread(load_mooncake(write(tmp_path, *rows)))
    assert [r.arrival_s for r in trace.requests] == [0.0, 1.0, 2.0, 3.0, 4.5]
    assert len(limited(trace, 2).requests) == 2
    assert limited(trace, None) is trace
    assert spread(trace) is trace, "there is nothing left to spread"
    assert [r.output_tokens for r in with_shorter_outputs(trace, 3).requests] == [3] * 5
    assert with_shorter_outputs(trace, None) is trace


@pytest.mark.parametrize(
    ("file", "requests", "mean_input", "mean_output", "hit"),
    [
        ("chatbot_mooncake_conversation.jsonl.gz", 12_031, 12_035, 343, 0.374),
        ("mixed_mooncake_synthetic.jsonl.gz", 3_993, 15_325, 149, 0.651),
        ("agenttool_claudecode_sessions_le64k.jsonl.gz", 1_121, 35_585, 489, 0.917),
        ("chatbot_azure2023_conv_lengths.jsonl.gz", 19_366, 1_155, 211, 0.0),
        ("coder_azure2023_code_lengths.jsonl.gz", 8_819, 2_048, 28, 0.0),
    ],
)
def test_public_traces_have_their_published_figures(
    file: str, requests: int, mean_input: float, mean_output: float, hit: float
) -> None:
    found = statistics_of(load_trace(shared_path(f"traces/{file}")))
    assert found.requests == requests
    assert found.mean_prompt_tokens == pytest.approx(mean_input, rel=0.001)
    assert found.mean_output_tokens == pytest.approx(mean_output, rel=0.005)
    assert found.ideal_hit_ratio == pytest.approx(hit, abs=0.01)
