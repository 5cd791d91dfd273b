"""Prompts that come as token ids are known whole where engines tell their KV events."""

from random import Random
from typing import Any

import orjson

from router.core.policy import Policy
from router.core.prefix import PromptHasher
from router.core.prefix.token_chain import TokenHasher, pack_tokens
from router.proxy.intake import Intake, IntakeDesk
from router.proxy.sessions import Sessions
from router.proxy.table import RoutingTable
from router.proxy.wire.head import read_request_head
from router.state.calibration import BytesPerToken
from router.state.known_prompts import KnownPrompts

TOKENS = TokenHasher(1)
IDS = list(range(100, 140))
HEAD = read_request_head(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n\r\n")
TABLE = RoutingTable(1, {"default": Policy()}, frozenset({"m"}))


def intake(prompt: Any, model: str = "m", sizes: tuple[int, ...] = (16,), **fields: Any) -> Intake:
    known = KnownPrompts(TOKENS)
    known.block_sizes = sizes
    desk = IntakeDesk(PromptHasher(1), BytesPerToken(), Random(1), Sessions(), known)
    desk.adapters = frozenset({"lora"})
    return desk.intake(HEAD, orjson.dumps({"model": model, "prompt": prompt, **fields}), "id", TABLE)


def chain_of(found: Intake) -> bytes:
    assert found.known is not None
    return found.known.chains[16]


def test_their_blocks_are_those_that_engines_tell() -> None:
    found = intake(IDS)
    assert chain_of(found) == TOKENS.chain(pack_tokens(IDS), 16)
    assert found.known is not None
    assert (found.known.tokens, found.request.prompt_tokens, found.request.estimated) == (40, 40, False)


def test_adapter_and_salt_change_them() -> None:
    assert chain_of(intake(IDS, "lora")) == TOKENS.chain(pack_tokens(IDS), 16, "lora")
    assert chain_of(intake(IDS, cache_salt="s")) == TOKENS.chain(pack_tokens(IDS), 16, None, "s")


def test_several_prompts_in_one_request_are_estimated() -> None:
    assert intake([IDS, IDS]).known is None
    assert chain_of(intake([IDS])) == TOKENS.chain(pack_tokens(IDS), 16)


def test_nothing_is_looked_up_while_no_instance_tells_its_events() -> None:
    assert intake(IDS, sizes=()).known is None
