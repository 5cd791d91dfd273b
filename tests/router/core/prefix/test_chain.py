"""What a chain of hashes promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.prefix import PromptHasher, pack, prefix_key
from router.core.prefix.chain import HashChain
from tests.router.core.prefix.conftest import _native

BLOCK = 16
OPTIONAL = st.none() | st.text(max_size=5)


def blocks(chain: bytes) -> list[bytes]:
    return [chain[i : i + 8] for i in range(0, len(chain), 8)]


def hasher(hash_chain: HashChain, seed: int = 7, **kwargs: int) -> PromptHasher:
    return PromptHasher(seed, block_bytes=BLOCK, hash_chain=hash_chain, **kwargs)


@given(text=st.binary(max_size=100), key=st.binary(max_size=20))
def test_only_whole_blocks_are_hashed(hash_chain: HashChain, text: bytes, key: bytes) -> None:
    chain = hasher(hash_chain).chain(key, text)
    assert len(chain) == len(text) // BLOCK * 8
    assert chain == hasher(hash_chain).chain(key, text[: len(text) // BLOCK * BLOCK])
    assert chain == hasher(hash_chain).chain(key, memoryview(b"x" + text)[1:])


@given(text=st.binary(min_size=1, max_size=100), at=st.integers(0, 99), flip=st.integers(1, 255))
def test_a_changed_byte_changes_its_block_and_all_behind_it_and_none_before(
    hash_chain: HashChain, text: bytes, at: int, flip: int
) -> None:
    at %= len(text)
    changed = text[:at] + bytes([text[at] ^ flip]) + text[at + 1 :]
    before, after = (blocks(hasher(hash_chain).chain(b"k", t)) for t in (text, changed))
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        assert (old == new) == (number < at // BLOCK)


@given(text=st.binary(min_size=BLOCK, max_size=64), one=st.binary(max_size=24), other=st.binary(max_size=24))
def test_the_key_separates_everything(hash_chain: HashChain, text: bytes, one: bytes, other: bytes) -> None:
    chains = [blocks(hasher(hash_chain).chain(key, text)) for key in (one, other)]
    assert (chains[0] == chains[1]) == (one == other)
    assert one == other or not set(chains[0]) & set(chains[1])


def test_the_seed_separates_everything(hash_chain: HashChain) -> None:
    text = bytes(1000)
    chains = [set(blocks(hasher(hash_chain, seed).chain(b"", text))) for seed in (0, 1, 1 << 64, (1 << 128) - 1)]
    assert len(set.union(*chains)) == 4 * (1000 // BLOCK)


def test_equal_blocks_at_different_places_have_different_hashes(hash_chain: HashChain) -> None:
    chain = blocks(hasher(hash_chain).chain(b"", bytes(BLOCK * 50)))
    assert len(set(chain)) == 50


def test_what_is_beyond_the_most_blocks_is_left_out(hash_chain: HashChain) -> None:
    assert hasher(hash_chain, max_blocks=3).chain(b"", bytes(999)) == hasher(hash_chain).chain(b"", bytes(3 * BLOCK))


@pytest.mark.parametrize("seed", [-1, 1 << 128])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match="seed"):
        PromptHasher(seed)


@pytest.mark.parametrize("block_bytes", [0, -8, 7, 12])
def test_a_block_that_is_not_whole_words_is_refused(block_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"block_bytes is {block_bytes}"):
        PromptHasher(1, block_bytes=block_bytes)


@given(one=st.tuples(st.text(max_size=5), OPTIONAL, OPTIONAL), other=st.tuples(st.text(max_size=5), OPTIONAL, OPTIONAL))
def test_different_models_adapters_and_salts_never_give_the_same_key(one, other) -> None:
    assert (prefix_key(*one) == prefix_key(*other)) == (one == other)


def test_parts_of_a_key_do_not_run_into_each_other() -> None:
    keys = {
        prefix_key("ab", "c"),
        prefix_key("a", "bc"),
        prefix_key("abc"),
        prefix_key("abc", ""),
        prefix_key("abc", None, ""),
    }
    assert len(keys) == 5


def test_packed_ids_are_eight_bytes_each() -> None:
    assert pack([1, 2**64 - 1]) == b"\x01" + bytes(7) + b"\xff" * 8


@pytest.mark.skipif(_native is None, reason="not built")
@given(seed=st.integers(0, 2**128 - 1), key=st.binary(max_size=20), text=st.binary(max_size=80))
def test_the_compiled_hash_is_siphash_1_3_of_the_length_the_key_and_the_text(
    seed: int, key: bytes, text: bytes
) -> None:
    start = len(key).to_bytes(8, "little") + key + bytes(8 - len(key) % 8)
    expected = [_siphash_1_3(seed, start + text[:end]) for end in range(BLOCK, len(text) + 1, BLOCK)]
    assert blocks(hasher(_native.hash_chain, seed).chain(key, text)) == expected


def _siphash_1_3(seed: int, words: bytes) -> bytes:
    """The paper's definition, without the last word that holds the length."""
    mask = 2**64 - 1
    k0, k1 = seed & mask, seed >> 64
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & mask

    def sip_round() -> None:
        for a, b, c, d, left, right in ((0, 1, 2, 3, 13, 16), (2, 1, 0, 3, 17, 21)):
            v[a] = (v[a] + v[b]) & mask
            v[c] = (v[c] + v[d]) & mask
            v[b] = rotate(v[b], left) ^ v[a]
            v[d] = rotate(v[d], right) ^ v[c]
            v[a] = rotate(v[a], 32)

    for at in range(0, len(words), 8):
        word = int.from_bytes(words[at : at + 8], "little")
        v[3] ^= word
        sip_round()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        sip_round()
    return (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
