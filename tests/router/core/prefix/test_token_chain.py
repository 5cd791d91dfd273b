"""Hashes of token blocks: one for each whole block, each standing for everything before it."""

from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.prefix.token_chain import TokenHasher, pack_hashes, pack_tokens

TOKENS = st.lists(st.integers(0, 2**32 - 1), max_size=60)
SIZES = st.integers(1, 9)


def hasher(native: ModuleType, seed: int = 7) -> TokenHasher:
    return TokenHasher(seed, native.hash_tokens)


@given(tokens=TOKENS, size=SIZES)
def test_only_whole_blocks_are_hashed(native: ModuleType, tokens: list[int], size: int) -> None:
    chain = hasher(native).chain(pack_tokens(tokens), size)
    assert len(chain) == len(tokens) // size * 8
    assert chain == hasher(native).chain(pack_tokens(tokens[: len(tokens) // size * size]), size)


@given(tokens=TOKENS, size=SIZES, cut=st.integers(0, 60), adapter=st.none() | st.text(max_size=3))
def test_a_run_of_blocks_may_be_told_in_parts(
    native: ModuleType, tokens: list[int], size: int, cut: int, adapter: str | None
) -> None:
    blocks = hasher(native)
    cut = min(cut, len(tokens)) // size * size
    first = blocks.extend(blocks.root(adapter), pack_tokens(tokens[:cut]), size)
    parent = first[-1] if first else blocks.root(adapter)
    rest = blocks.extend(parent, pack_tokens(tokens[cut:]), size)
    assert pack_hashes([*first, *rest]) == blocks.chain(pack_tokens(tokens), size, adapter)


@given(tokens=st.lists(st.integers(0, 9), min_size=4, max_size=40), at=st.integers(0, 39), size=SIZES)
def test_a_changed_token_changes_its_block_and_all_behind_it_and_none_before(
    native: ModuleType, tokens: list[int], at: int, size: int
) -> None:
    at %= len(tokens)
    changed = [token + (place == at) for place, token in enumerate(tokens)]
    before, after = (hasher(native).chain(pack_tokens(each), size) for each in (tokens, changed))
    for number in range(len(before) // 8):
        same = before[8 * number : 8 * number + 8] == after[8 * number : 8 * number + 8]
        assert same == (number < at // size)


def test_adapter_salt_and_seed_change_every_block(native: ModuleType) -> None:
    tokens = pack_tokens(range(16))
    chains = {
        hasher(native, seed).chain(tokens, 4, adapter, salt)
        for seed in (1, 2)
        for adapter in (None, "", "a")
        for salt in (None, "", "a")
    }
    assert len(chains) == 18
    assert len({chain[8 * block : 8 * block + 8] for chain in chains for block in range(4)}) == 72


def test_a_salt_is_an_extra_key_of_the_first_block(native: ModuleType) -> None:
    blocks, tokens = hasher(native), pack_tokens(range(16))
    told = blocks.extend(blocks.root("a"), tokens, 4, (("s",), (), (), ()))
    assert pack_hashes(told) == blocks.chain(tokens, 4, "a", "s")


@given(st.lists(st.integers(0, 3), max_size=200), st.lists(st.integers(0, 3), max_size=200), st.integers(0, 150))
def test_common_blocks_are_counted_from_the_front(
    native: ModuleType, first: list[int], second: list[int], alike: int
) -> None:
    beginning = list(range(alike))
    one, other = (array("Q", beginning + rest).tobytes() for rest in (first, second))
    expected = next(
        (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    assert native.common_blocks(one, other) == alike + expected


def test_arguments_of_another_kind_are_refused(native: ModuleType) -> None:
    for arguments in [("x", b"")], [(b"", 1)]:
        with pytest.raises(TypeError):
            native.common_blocks(*arguments)
