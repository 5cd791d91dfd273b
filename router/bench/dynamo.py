"""The same load on ``ai-dynamo-runtime``: its block hashes of tokens, and its radix tree. Only where it is installed.

Four bytes of a prompt are one token and sixteen tokens one block, so that both sides store and match as many blocks.
"""

from typing import Any

import msgspec

from router.bench.load import Load
from router.bench.spread import Figures, timed
from router.core.prefix import PromptHasher, prefix_key

try:
    from dynamo._core import RadixTree, compute_block_hash_for_seq
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True

BLOCK_TOKENS = 16


def measure(load: Load) -> Figures:
    """Time hashing and matching; ``find_matches(...).scores`` gives the depth of every worker, as ours does."""
    tree, stored_blocks = _filled_tree(load)
    asked = [_tokens_of(load.asked(number)[1]) for number in range(load.asked_prompts)]
    hashes = [_hash(tokens) for tokens in asked]
    count = load.asked_prompts
    return {
        "stored_blocks": stored_blocks,
        **timed("hash", lambda n: _hash(asked[n % count]), load.repeats),
        **timed("match", lambda n: tree.find_matches(hashes[n % count]).scores, load.repeats),
        **timed("hash_match", lambda n: tree.find_matches(_hash(asked[n % count])).scores, load.repeats),
    }


def _filled_tree(load: Load) -> tuple[Any, int]:
    tree = RadixTree()
    hasher = PromptHasher(load.seed)
    stored: set[tuple[int, int]] = set()
    for number in range(load.known_prompts):
        prompt = load.known(number)
        chain = memoryview(hasher.chain(prefix_key("bench"), prompt)).cast("Q").tolist()
        event = _stored_event(number, chain, _hash(_tokens_of(prompt)))
        for home in load.homes(number):
            tree.apply_event(home, event)
            stored.update((home, block) for block in chain)
    return tree, len(stored)


def _stored_event(number: int, chain: list[int], hashes: list[int]) -> bytes:
    blocks = [{"block_hash": block, "tokens_hash": tokens} for block, tokens in zip(chain, hashes, strict=True)]
    return msgspec.json.encode(
        {"event_id": number, "dp_rank": 0, "data": {"stored": {"parent_hash": None, "blocks": blocks}}}
    )


def _tokens_of(prompt: bytes) -> list[int]:
    return memoryview(prompt).cast("I").tolist()


def _hash(tokens: list[int]) -> list[int]:
    hashes: list[int] = compute_block_hash_for_seq(tokens, BLOCK_TOKENS)
    return hashes
