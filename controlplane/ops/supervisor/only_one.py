"""One supervisor of a kind a data directory: a lock that the kernel gives up with the process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyRunning(Exception):
    """Another supervisor holds the data directory; the message names its process."""


@contextmanager
def only_one(data_dir: Path, what: str = "everything") -> Iterator[None]:
    """Hold the data directory for what is run in it.

    :raises AlreadyRunning: when another process does.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    name = "up.lock" if what == "everything" else f"up-{what}.lock"
    with (data_dir / name).open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise AlreadyRunning(
                f"{data_dir} is in use by `pointsman up` of process {file.read().strip() or '?'}"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
