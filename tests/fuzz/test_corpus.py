"""Everything that fuzzing has found stays dealt with: the corpora are read again, without a fuzzer."""

import pytest

from tests.fuzz.byte_reader import ByteReader
from tests.fuzz.corpus_file import FOLDER, read_corpus
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_found_once_is_read_without_a_fault(target: str) -> None:
    inputs = read_corpus(target)
    assert inputs
    for data in inputs:
        TARGETS[target](data)


def test_every_corpus_belongs_to_a_target() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(TARGETS)


def test_values_come_from_any_bytes_and_pieces_are_all_that_is_left() -> None:
    reader = ByteReader(b"\x02\x00\x01abcde")
    assert reader.pieces() == [b"a", b"bc", b"de"]
    assert reader.left == 0
    assert reader.below(7) == 0
    assert ByteReader(b"").json(("a",)) is None
