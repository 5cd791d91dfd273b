"""A target's corpus: one text file, one input a line, each as Python writes bytes, so that a diff can be read."""

import ast
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"


def path_of(target: str) -> Path:
    return FOLDER / f"{target}.txt"


def read_corpus(target: str) -> list[bytes]:
    """Return a target's inputs; none where it has no file yet."""
    path = path_of(target)
    if not path.exists():
        return []
    return [ast.literal_eval(line) for line in path.read_text().splitlines() if line and not line.startswith("#")]


def write_corpus(target: str, inputs: Iterable[bytes]) -> None:
    """Write a target's inputs, the shortest first."""
    lines = [f"{data!r}\n" for data in sorted(set(inputs), key=lambda data: (len(data), data))]
    path_of(target).write_text("".join(lines))
