"""What is claimed of a prompt's tokens is true, exact where it matters, and bounded in memory."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.core.prefix import PromptHasher, prefix_key
from router.core.prefix.token_chain import TokenHasher
from router.state.known_prefix import KnownPrefix
from router.state.known_prompts import KnownPrompts
from router.state.tokenised_text import TokenisedText
from tests.router.state.toy_tokenizer import Message, extracted, packed, rendered, tokens_of

BLOCK = 4
TEXTS, TOKENS = PromptHasher(3), TokenHasher(5)
KEY = prefix_key("m")
WORDS = ["the", "night", "train", "calls", "at", "every", "station", "on", "line", "antidisestablishment", "naïve", "a"]


def known_prompts(max_bytes: int = 1 << 20, sizes: tuple[int, ...] = (BLOCK,)) -> KnownPrompts:
    prompts = KnownPrompts(TOKENS, max_bytes)
    prompts.block_sizes = sizes
    return prompts


def learn(prompts: KnownPrompts, messages: list[Message]) -> list[int]:
    """Let a conversation that ends in an answer be learnt, and return its tokens."""
    text, tokens = extracted(messages), rendered(messages)
    prompt = messages[:-1]
    prompts.learn(
        TokenisedText(
            text=text,
            chain=TEXTS.chain(KEY, text),
            token_ids=packed(tokens),
            model="m",
            prompt_bytes=len(extracted(prompt)),
            prompt_tokens=len(rendered(prompt, asks=True)),
        )
    )
    return tokens


def find(prompts: KnownPrompts, text: bytes) -> KnownPrefix | None:
    return prompts.find(text, TEXTS.chain(KEY, text))


def common(first: list[int], second: list[int]) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def said(rng: Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


def check(found: KnownPrefix | None, tokens: list[int], learnt: list[list[int]]) -> None:
    """Check that a claim is true of the prompt's own tokens."""
    if found is None:
        return
    assert found.tokens <= max((common(tokens, other) for other in learnt), default=0)
    chain = found.chains[BLOCK]
    certain = found.tokens // BLOCK * 8
    assert chain[:certain] == TOKENS.chain(packed(tokens), BLOCK)[:certain]


def test_the_next_turn_of_a_conversation_is_known_to_its_last_block() -> None:
    rng, prompts = Random(1), known_prompts()
    talk: list[Message] = [("system", said(rng, 60))]
    for turn in range(12):
        talk.append(("user", said(rng, rng.randrange(3, 40))))
        if turn:
            found = find(prompts, extracted(talk))
            assert found is not None
            assert found.tokens == len(rendered(talk[:-1]))
            assert found.text_bytes == len(extracted(talk[:-1]))
        talk.append(("assistant", said(rng, rng.randrange(3, 60))))
        learn(prompts, talk)
        assert len(prompts) == 1


def test_the_same_prompt_again_is_known_whole_with_what_stands_before_the_answer() -> None:
    rng, prompts = Random(2), known_prompts()
    talk: list[Message] = [("system", said(rng, 40)), ("user", said(rng, 40)), ("assistant", said(rng, 9))]
    learn(prompts, talk)
    found = find(prompts, extracted(talk[:-1]))
    assert found is not None
    assert found.tokens == len(rendered(talk[:-1], asks=True))
    assert found.text_bytes == len(extracted(talk[:-1]))


@pytest.mark.parametrize("words", [20, 45, 300])
def test_a_shared_system_prompt_is_exact_from_the_second_conversation_on(words: int) -> None:
    rng, prompts = Random(words), known_prompts()
    system: Message = ("system", said(rng, words))
    first = learn(prompts, [system, ("user", "Hello there"), ("assistant", said(rng, 5))])
    learn(prompts, [system, ("user", "good evening"), ("assistant", said(rng, 5))])
    third = [system, ("user", "what is on the line")]
    found = find(prompts, extracted(third))
    assert found is not None
    assert found.tokens // BLOCK == common(first, rendered(third, asks=True)) // BLOCK
    check(found, rendered(third, asks=True), [first])


def test_a_document_shared_in_the_middle_of_a_message_is_known_to_within_a_few_blocks() -> None:
    rng, prompts = Random(4), known_prompts()
    document = said(rng, 500)
    learnt = [
        learn(prompts, [("user", f"{document} {question}"), ("assistant", "yes")])
        for question in ("who calls at every station", "when is the night", "the line")
    ]
    asked = rendered([("user", f"{document} where")], asks=True)
    found = find(prompts, extracted([("user", f"{document} where")]))
    assert found is not None
    check(found, asked, learnt)
    assert found.tokens > common(asked, learnt[0]) - 160
    assert found.likely_tokens // BLOCK == common(asked, learnt[0]) // BLOCK


def test_before_a_second_text_shows_where_they_part_the_place_is_reckoned() -> None:
    rng, prompts = Random(5), known_prompts()
    document = said(rng, 500)
    learnt = learn(prompts, [("user", f"{document} who"), ("assistant", "yes")])
    asked = [("user", f"{document} where is it")]
    found = find(prompts, extracted(asked))
    assert found is not None
    assert found.tokens == 0
    assert abs(found.likely_tokens - common(rendered(asked), learnt)) < 0.05 * len(learnt)


def test_a_template_that_renders_answers_differently_later_is_found_out() -> None:
    rng, prompts = Random(6), known_prompts()
    talk: list[Message] = [("system", said(rng, 40))]
    tokens: list[int] = []
    for turn in range(4):
        talk.append(("user", said(rng, 20)))
        prompt = extracted(talk)
        thinking: list[Message] = [("assistant", "hm hm hm " + said(rng, 30))]
        if turn > 1:
            found = find(prompts, prompt)
            assert found is not None
            check(found, rendered(talk, asks=True), [tokens])
            assert found.likely_tokens == found.tokens
        answer: Message = ("assistant", said(rng, 30))
        tokens = rendered(talk + thinking)
        text = extracted([*talk, answer])
        prompts.learn(
            TokenisedText(
                text=text,
                chain=TEXTS.chain(KEY, text),
                token_ids=packed(tokens),
                model="m",
                prompt_bytes=len(prompt),
                prompt_tokens=len(rendered(talk, asks=True)),
            )
        )
        talk.append(answer)


def test_a_plain_text_that_goes_on_is_known_up_to_its_last_whole_word() -> None:
    rng, prompts = Random(7), known_prompts()
    text = said(rng, 100).encode() + b" antidis"
    prompts.learn(TokenisedText(text=text, chain=TEXTS.chain(KEY, text), token_ids=packed(tokens_of(text))))
    longer = text + b"establishment of the line"
    found = find(prompts, longer)
    assert found is not None
    check(found, tokens_of(longer), [tokens_of(text)])
    assert found.tokens > len(tokens_of(text)) - 16
    again = find(prompts, text)
    assert again is not None
    assert again.tokens == len(tokens_of(text))


def test_other_models_salts_and_adapters_share_nothing() -> None:
    prompts = known_prompts()
    talk: list[Message] = [("system", "s " * 100), ("user", "u"), ("assistant", "a")]
    learn(prompts, talk)
    text = extracted(talk)
    for key in (prefix_key("other"), prefix_key("m", None, "salt"), prefix_key("m", "adapter")):
        assert prompts.find(text, TEXTS.chain(key, text)) is None


def test_a_block_size_that_came_later_has_no_chain_of_what_was_learnt_before() -> None:
    prompts = known_prompts()
    talk: list[Message] = [("system", "s " * 100), ("user", "u"), ("assistant", "a")]
    learn(prompts, talk)
    prompts.block_sizes = (4, 8)
    found = find(prompts, extracted(talk))
    assert found is not None
    assert set(found.chains) == {4}
    assert set(prompts.of_ids(packed([1] * 16)).chains) == {4, 8}  # type: ignore[union-attr]


def test_token_ids_are_known_whole() -> None:
    ids = packed(list(range(40)))
    found = known_prompts().of_ids(ids, "adapter", "salt")
    assert found is not None
    assert (found.tokens, found.chains[BLOCK]) == (40, TOKENS.chain(ids, BLOCK, "adapter", "salt"))
    assert known_prompts(sizes=()).of_ids(ids) is None


def test_memory_is_bounded_and_what_is_found_stays() -> None:
    rng, prompts = Random(8), known_prompts(max_bytes=100_000)
    kept: list[Message] = [("system", said(rng, 200)), ("user", "x"), ("assistant", "y")]
    learn(prompts, kept)
    for number in range(300):
        learn(prompts, [("system", f"{number} {said(rng, 100)}"), ("user", "x"), ("assistant", "y")])
        assert prompts.bytes <= 100_000
        assert find(prompts, extracted(kept)) is not None
    assert 10 < len(prompts) < 300
    prompts.forget()
    assert (len(prompts), prompts.bytes, find(prompts, extracted(kept))) == (0, 0, None)


def test_nothing_is_learnt_while_no_instance_tells_its_events() -> None:
    prompts = known_prompts(sizes=())
    learn(prompts, [("system", "s " * 100), ("user", "u"), ("assistant", "a")])
    assert len(prompts) == 0


class Talks:
    """Conversations as they come: some share a beginning, some branch, some are asked again."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.systems = [said(self.rng, self.rng.randrange(1, 80)) for _ in range(3)]
        self.talks: list[list[Message]] = []

    def prompt(self) -> list[Message]:
        rng = self.rng
        if not self.talks or rng.random() < 0.3:
            system = rng.choice(self.systems)
            if rng.random() < 0.3:
                system = system[: rng.randrange(len(system))] + said(rng, 3)
            return [("system", system), ("user", said(rng, rng.randrange(1, 30)))]
        talk = rng.choice(self.talks)
        if rng.random() < 0.2:
            return talk[:-1]
        if rng.random() < 0.2:
            role, content = talk[-2]
            return [*talk[:-2], (role, content + said(rng, 2))]
        return [*talk, ("user", said(rng, rng.randrange(1, 30)))]

    def answered(self, prompt: list[Message]) -> list[Message]:
        talk = [*prompt, ("assistant", said(self.rng, self.rng.randrange(1, 30)))]
        self.talks = [*self.talks[-8:], talk]
        return talk


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([3_000, 10_000, 1 << 20]))
def test_no_more_is_ever_claimed_than_is_truly_shared(seed: int, max_bytes: int) -> None:
    talks, prompts = Talks(seed), known_prompts(max_bytes)
    learnt: list[list[int]] = []
    for _ in range(25):
        prompt = talks.prompt()
        found = find(prompts, extracted(prompt))
        check(found, rendered(prompt, asks=True), learnt)
        learnt.append(learn(prompts, talks.answered(prompt)))
        assert prompts.bytes <= max_bytes
