"""Qwen-Bailian traces (``alibaba-edu/qwen-bailian-usagetraces-anon``): 16-token prefix blocks, timestamps in seconds.

The originals are too large to ship; download them from the repository above and pass the file. Turns of a chat carry
their own timestamps, so they are replayed open loop, as recorded.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from router.sim.errors import TraceError
from router.sim.traces.lines import decode_rows
from router.sim.traces.record import Trace, TraceRequest, chain_of

BLOCK_TOKENS = 16


class BailianRow(msgspec.Struct, frozen=True):
    """One line of the file; ``type`` is the kind of request (text, search, image, file)."""

    chat_id: int
    parent_chat_id: int
    timestamp: Annotated[float, msgspec.Meta(ge=0)]
    input_length: Annotated[int, msgspec.Meta(ge=1)]
    output_length: Annotated[int, msgspec.Meta(ge=0)]
    hash_ids: list[Annotated[int, msgspec.Meta(ge=0)]]
    type: str = "text"
    turn: int = 1


def load_bailian(path: Path) -> Trace:
    """Read a Bailian file (JSONL, plain or gzip).

    :raises TraceError: naming the first faulty line.
    """
    requests: list[TraceRequest] = []
    for number, row in decode_rows(path, BailianRow):
        if requests and row.timestamp < requests[-1].arrival_s:
            raise TraceError(path.name, number, "timestamp goes back")
        full = row.input_length // BLOCK_TOKENS
        if len(row.hash_ids) < full:
            raise TraceError(
                path.name, number, f"{row.input_length} tokens need {full} hash_ids, but there are {len(row.hash_ids)}"
            )
        requests.append(
            TraceRequest(
                arrival_s=row.timestamp,
                prompt_tokens=row.input_length,
                output_tokens=max(1, row.output_length),
                blocks=chain_of(row.hash_ids, full),
                workload=row.type,
            )
        )
    return Trace(
        name=path.name,
        format="bailian",
        block_tokens=BLOCK_TOKENS,
        requests=tuple(requests),
        provenance="recorded (Qwen-Bailian, 16-token prefix blocks)",
    )
