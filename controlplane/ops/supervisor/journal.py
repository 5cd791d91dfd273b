"""Where lines go: all of a child's into its file, those that matter onto the console, each with its child's name."""

import re
import sys
import time
from pathlib import Path
from typing import TextIO

_MATTERS = re.compile(r"\b(WARNING|ERROR|CRITICAL|Traceback|panic)\b")
_WIDTH = 200
_ROTATE_BYTES = 16 * 1024 * 1024


class Journal:
    """Files in a folder, one a child, and a console. With ``verbose`` everything is shown."""

    def __init__(self, folder: Path, console: TextIO = sys.stderr, verbose: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._console = console
        self._verbose = verbose
        self._files: dict[str, TextIO] = {}

    def line(self, child: str, text: str) -> None:
        """Take a line of a child."""
        self._write(child, text)
        if self._verbose or _MATTERS.search(text):
            self.show(child, text)

    def show(self, child: str, text: str) -> None:
        """Write a short line onto the console."""
        shown = text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
        print(f"{child:>9} | {shown}", file=self._console, flush=True)

    def say(self, text: str) -> None:
        """Write a line of the supervisor itself."""
        self._write("up", text)
        print(text, file=self._console, flush=True)

    def path(self, child: str) -> Path:
        """Return the file of a child."""
        return self._folder / f"{child}.log"

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _write(self, child: str, text: str) -> None:
        file = self._files.get(child)
        if file is None or file.tell() > _ROTATE_BYTES:
            file = self._open(child, file)
        file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
        file.flush()

    def _open(self, child: str, full: TextIO | None) -> TextIO:
        path = self.path(child)
        if full is not None:
            full.close()
        if path.exists() and path.stat().st_size > _ROTATE_BYTES:
            path.replace(path.with_suffix(".log.1"))
        self._files[child] = path.open("a", encoding="utf-8")
        return self._files[child]
