"""Reading trace files line by line: plain or gzip, JSON decoded against a type, faults named by line."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from router.sim.errors import TraceError

_GZIP_MAGIC = b"\x1f\x8b"
Row = TypeVar("Row")


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end) of every line that is not blank.

    :raises TraceError: when the file cannot be read.
    """
    number = 0
    try:
        with path.open("rb") as probe:
            zipped = probe.read(2) == _GZIP_MAGIC
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                line = raw.strip()
                if line:
                    yield number, line
    except (OSError, EOFError) as error:
        raise TraceError(path.name, number or None, f"cannot be read: {error}") from error


def decode_rows(path: Path, row_type: type[Row]) -> Iterator[tuple[int, Row]]:
    """Yield (line number, row) of a JSONL file.

    :raises TraceError: naming the first line that is not a JSON object of the expected shape.
    """
    decoder = msgspec.json.Decoder(row_type)
    for number, line in read_lines(path):
        try:
            yield number, decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(path.name, number, str(error)) from error
