"""The last document that was put into force, on disk: what a worker starts from when nobody tells it anything."""

import os
import tempfile
from pathlib import Path

FILE_NAME = "config.json"


class LastGood:
    """One document in a folder of the worker's own; written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / FILE_NAME

    def load(self) -> bytes | None:
        """Return the stored document, or None."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None

    def store(self, document: bytes) -> None:
        """Replace the stored document; a crash leaves the old one or the new one.

        :raises OSError: when it cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=".config-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(document)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
