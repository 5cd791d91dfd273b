"""Azure LLM inference traces (``Azure/AzurePublicDataset``): arrivals and lengths, **without prefix hashes**.

No policy can see a hit in them, and none happens: they compare load balancing alone. Read as the published CSV
(``TIMESTAMP,ContextTokens,GeneratedTokens``) or with the same names as JSONL. Attribution: Patel et al., "Splitwise",
ISCA 2024.
"""

import csv
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from router.sim.errors import TraceError
from router.sim.traces.lines import decode_rows, read_lines
from router.sim.traces.record import Trace, TraceRequest

BLOCK_TOKENS = 16
COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_FRACTION_DIGITS = 6


class AzureRow(msgspec.Struct, frozen=True, rename="pascal"):
    """One request; the timestamp is UTC with up to seven digits of fraction."""

    timestamp: Annotated[str, msgspec.Meta(min_length=19)] = msgspec.field(name="TIMESTAMP")
    context_tokens: Annotated[int, msgspec.Meta(ge=1)]
    generated_tokens: Annotated[int, msgspec.Meta(ge=0)]


def load_azure(path: Path) -> Trace:
    """Read an Azure file (CSV or JSONL, plain or gzip).

    :raises TraceError: naming the first faulty line.
    """
    start_s: float | None = None
    requests: list[TraceRequest] = []
    for number, row in _rows(path):
        time_s = _seconds(path, number, row.timestamp)
        if start_s is None:
            start_s = time_s
        if requests and time_s - start_s < requests[-1].arrival_s:
            raise TraceError(path.name, number, "TIMESTAMP goes back")
        requests.append(
            TraceRequest(
                arrival_s=time_s - start_s,
                prompt_tokens=row.context_tokens,
                output_tokens=max(1, row.generated_tokens),
            )
        )
    return Trace(
        name=path.name,
        format="azure",
        block_tokens=BLOCK_TOKENS,
        requests=tuple(requests),
        provenance="recorded (Azure), arrivals and lengths only: there are no prefix hashes, so nothing can hit",
    )


def _rows(path: Path) -> Iterator[tuple[int, AzureRow]]:
    first = next(read_lines(path), None)
    if first is not None and first[1].startswith(b"{"):
        return decode_rows(path, AzureRow)
    return _csv_rows(path)


def _csv_rows(path: Path) -> Iterator[tuple[int, AzureRow]]:
    for number, line in read_lines(path):
        try:
            (cells,) = csv.reader([line.decode()])
            if number == 1 and tuple(cells) == COLUMNS:
                continue
            if len(cells) != len(COLUMNS):
                raise TraceError(path.name, number, f"{len(cells)} columns instead of {', '.join(COLUMNS)}")
            yield number, msgspec.convert(dict(zip(COLUMNS, cells, strict=True)), AzureRow, strict=False)
        except (msgspec.ValidationError, UnicodeDecodeError, csv.Error) as error:
            raise TraceError(path.name, number, str(error)) from error


def _seconds(path: Path, number: int, timestamp: str) -> float:
    whole, _, rest = timestamp.partition(".")
    digits = rest.split("+")[0].rstrip("Z")
    try:
        moment = datetime.fromisoformat(whole.removesuffix("Z") + "+00:00")
        return moment.timestamp() + (float(f"0.{digits[:_FRACTION_DIGITS]}") if digits else 0.0)
    except ValueError:
        raise TraceError(path.name, number, f"{timestamp!r} is not a time like 2023-11-16 18:15:46.6805900") from None
