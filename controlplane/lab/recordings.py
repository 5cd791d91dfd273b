"""Recordings of router workers: files in one folder of the data directory, perhaps still being written."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from controlplane.errors import NotFound
from controlplane.lab.storage import recordings_folder

_AT_ONCE = 1 << 20
_SUFFIXES = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True, slots=True)
class Recording:
    """A file that a worker writes or wrote."""

    name: str
    size_bytes: int
    changed_at: datetime


def recordings() -> list[Recording]:
    """Return all recordings, newest first."""
    found = [path for path in recordings_folder().iterdir() if path.name.endswith(_SUFFIXES) and path.is_file()]
    known = [(path.name, path.stat()) for path in found]
    listed = [Recording(name, at.st_size, datetime.fromtimestamp(at.st_mtime, UTC)) for name, at in known]
    return sorted(listed, key=lambda one: one.changed_at, reverse=True)


def recording_path(name: str) -> Path:
    """Return the path of a recording.

    :raises NotFound: when there is none of that name.
    """
    if name not in {one.name for one in recordings()}:
        raise NotFound(f"There is no recording {name}.")
    return recordings_folder() / name


def complete_lines(path: Path) -> Iterator[bytes]:
    """Yield a file up to the end of its last whole line: a worker may be writing the next one."""
    if path.suffix == ".gz":
        yield path.read_bytes()
        return
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(_AT_ONCE):
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            yield whole + newline
