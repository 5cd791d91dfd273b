"""Mooncake traces (``kvcache-ai/Mooncake``): 512-token prefix blocks, timestamps in milliseconds.

The last block of a prompt may be partial; it is left out, because engines cache full blocks only.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from router.sim.errors import TraceError
from router.sim.traces.lines import decode_rows
from router.sim.traces.record import Trace, TraceRequest, chain_of

BLOCK_TOKENS = 512


class MooncakeRow(msgspec.Struct, frozen=True):
    """One line of the file."""

    timestamp: Annotated[float, msgspec.Meta(ge=0)]
    input_length: Annotated[int, msgspec.Meta(ge=1)]
    output_length: Annotated[int, msgspec.Meta(ge=0)]
    hash_ids: list[Annotated[int, msgspec.Meta(ge=0)]]


def load_mooncake(path: Path) -> Trace:
    """Read a Mooncake file (JSONL, plain or gzip).

    :raises TraceError: naming the first faulty line.
    """
    requests: list[TraceRequest] = []
    for number, row in decode_rows(path, MooncakeRow):
        arrival_s = row.timestamp / 1000
        if requests and arrival_s < requests[-1].arrival_s:
            raise TraceError(path.name, number, "timestamp goes back")
        full = row.input_length // BLOCK_TOKENS
        if len(row.hash_ids) < full:
            raise TraceError(
                path.name, number, f"{row.input_length} tokens need {full} hash_ids, but there are {len(row.hash_ids)}"
            )
        requests.append(
            TraceRequest(
                arrival_s=arrival_s,
                prompt_tokens=row.input_length,
                output_tokens=max(1, row.output_length),
                blocks=chain_of(row.hash_ids, full),
            )
        )
    return Trace(
        name=path.name,
        format="mooncake",
        block_tokens=BLOCK_TOKENS,
        requests=tuple(requests),
        provenance="recorded (Mooncake, 512-token prefix blocks)",
    )
