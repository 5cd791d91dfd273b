"""Tokens, chat template and block chain: the rules that prefix sharing stands on."""

from hypothesis import given
from hypothesis import strategies as st

from router.engine.block_chain import HASH_BYTES, block_chain, chain_seed
from router.engine.chat_template import render_chat
from router.engine.tokens import TOKEN_BYTES, count_of, ids_of, pack_ids, pack_text, text_of
from router.filler import VOCABULARY, filler

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
roles = st.sampled_from(["system", "user", "assistant", "tool"])
messages = st.lists(st.fixed_dictionaries({"role": roles, "content": texts}), min_size=1, max_size=6)


@given(texts)
def test_text_survives_tokenisation(text: str) -> None:
    packed = pack_text(text)
    assert text_of(packed) == text
    assert pack_ids(ids_of(packed)) == packed
    assert count_of(packed) == -(-len(text.encode()) // TOKEN_BYTES)


@given(messages, st.integers(1, 50), texts)
def test_a_next_turn_extends_the_prompt_and_the_answer(turns: list[dict[str, str]], length: int, reply: str) -> None:
    prompt = render_chat(turns)
    answer = filler(prompt, length)
    grown = [*turns, {"role": "assistant", "content": text_of(answer)}, {"role": "user", "content": reply}]
    assert render_chat(grown).startswith(prompt + answer)


@given(texts, texts)
def test_content_parts_and_plain_text_are_the_same_prompt(one: str, two: str) -> None:
    parts = [{"type": "text", "text": one}, {"type": "text", "text": two}]
    assert render_chat([{"role": "user", "content": parts}]) == render_chat([{"role": "user", "content": one + two}])


def test_tools_and_calls_are_part_of_the_prompt() -> None:
    plain = [{"role": "user", "content": "hi"}]
    assert render_chat(plain, [{"name": "f"}]) != render_chat(plain)
    calling = [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]
    assert render_chat(calling) != render_chat([{"role": "assistant", "content": None}])


@given(st.binary(min_size=0, max_size=400), st.binary(min_size=0, max_size=400), st.integers(1, 8))
def test_chains_agree_exactly_on_the_common_blocks(one: bytes, two: bytes, block_tokens: int) -> None:
    size = block_tokens * TOKEN_BYTES
    first, second = block_chain(one, block_tokens, 7), block_chain(two, block_tokens, 7)
    assert len(first) == len(one) // size * HASH_BYTES
    common = 0
    for start in range(0, min(len(one), len(two)) - size + 1, size):
        if one[start : start + size] != two[start : start + size]:
            break
        common += 1
    pairs = zip(_cut(first), _cut(second), strict=False)
    assert [a == b for a, b in pairs] == [index < common for index in range(min(len(first), len(second)) // HASH_BYTES)]


def test_adapter_and_salt_change_the_chain() -> None:
    seeds = [chain_seed(1, adapter, salt) for adapter in (None, "a", "b") for salt in (None, "a", "b")]
    assert len(set(seeds)) == 9


def test_filler_words_are_whole_tokens_that_need_no_escaping() -> None:
    assert all(len(word) == TOKEN_BYTES and word[1:].isalpha() and word.isascii() for word in VOCABULARY)
    assert len(set(VOCABULARY)) == len(VOCABULARY)
    assert filler(b"x", 10) == filler(b"x", 20)[: 10 * TOKEN_BYTES]


def _cut(chain: bytes) -> list[bytes]:
    return [chain[start : start + HASH_BYTES] for start in range(0, len(chain), HASH_BYTES)]
