"""Claude Code sessions (``callanjfox/kv-cache-tester``): 64-token blocks, local to each session.

Inside a session the loop is closed: a request follows its think time after the previous answer. When sessions start
is not in the data: they are started as a Poisson process. Because block ids are local, what sessions share cannot be
seen; the first ``(tool_tokens + system_tokens) / 64`` blocks are *taken as common* to the sessions with equal
(tool_tokens, system_tokens).
"""

from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
import numpy as np

from router.sim.errors import TraceError
from router.sim.traces.lines import decode_rows
from router.sim.traces.record import Trace, TraceRequest, mixed

BLOCK_TOKENS = 64
DEFAULT_START_EVERY_S = 20.0
"""Mean time between two session starts."""
_OWNER_BITS = 24


class SessionRow(msgspec.Struct, frozen=True, rename={"input_tokens": "in", "output_tokens": "out"}):
    """One line of the file: one request of one session; ``t`` counts from the start of the session."""

    trace_id: str
    seq: Annotated[int, msgspec.Meta(ge=0)]
    tool_tokens: Annotated[int, msgspec.Meta(ge=0)]
    system_tokens: Annotated[int, msgspec.Meta(ge=0)]
    t: Annotated[float, msgspec.Meta(ge=0)]
    input_tokens: Annotated[int, msgspec.Meta(ge=1)]
    output_tokens: Annotated[int, msgspec.Meta(ge=0)]
    hash_ids: list[Annotated[int, msgspec.Meta(ge=0, lt=1 << _OWNER_BITS)]]
    think_time: float | None = None
    api_time: float | None = None


def load_claudecode(path: Path, *, start_every_s: float = DEFAULT_START_EVERY_S, seed: int = 0) -> Trace:
    """Read a file of sessions (JSONL, plain or gzip).

    :raises TraceError: naming the first faulty line.
    """
    rng = Random(seed)
    requests: list[TraceRequest] = []
    owners: dict[object, int] = {}
    start_s = 0.0
    previous: SessionRow | None = None
    for number, row in decode_rows(path, SessionRow):
        follows = previous is not None and previous.trace_id == row.trace_id
        if row.seq != (previous.seq + 1 if follows and previous is not None else 0):
            raise TraceError(path.name, number, f"request {row.seq} of session {row.trace_id} is out of order")
        if len(row.hash_ids) < row.input_tokens // BLOCK_TOKENS:
            raise TraceError(path.name, number, f"too few hash_ids for {row.input_tokens} tokens")
        if not follows:
            start_s += rng.expovariate(1 / start_every_s) if requests else 0.0
        requests.append(
            TraceRequest(
                arrival_s=start_s + row.t,
                prompt_tokens=row.input_tokens,
                output_tokens=max(1, row.output_tokens),
                blocks=_chain(row, owners),
                session=row.trace_id,
                think_s=_think_s(row, previous) if follows else None,
            )
        )
        previous = row
    return Trace(
        name=path.name,
        format="claudecode",
        block_tokens=BLOCK_TOKENS,
        requests=tuple(requests),
        provenance=(
            f"recorded (Claude Code sessions, closed loop); assumed: a session starts every {start_every_s:g} s on "
            "average, and tools and system prompt of equal length are the same"
        ),
    )


def _chain(row: SessionRow, owners: dict[object, int]) -> bytes:
    """Name each block after whom it belongs to: the tools and system prompt, or the session."""
    ids = np.array(row.hash_ids[: row.input_tokens // BLOCK_TOKENS], dtype=np.uint64)
    common = min(len(ids), (row.tool_tokens + row.system_tokens) // BLOCK_TOKENS)
    ids[:common] = np.arange(common, dtype=np.uint64) + _base(owners, (row.tool_tokens, row.system_tokens))
    ids[common:] += _base(owners, row.trace_id)
    return mixed(ids).astype("<u8").tobytes()


def _base(owners: dict[object, int], owner: object) -> np.uint64:
    return np.uint64(owners.setdefault(owner, len(owners) + 1) << _OWNER_BITS)


def _think_s(row: SessionRow, previous: SessionRow | None) -> float:
    """Return the recorded think time, or what the clock of the session leaves for it."""
    if row.think_time is not None:
        return max(0.0, row.think_time)
    if previous is None:
        return 0.0
    return max(0.0, row.t - previous.t - (previous.api_time or 0.0))
