"""Prompts as the prefix index sees them: one turn is a prefix of the next; what changes the cache changes the key."""

from copy import deepcopy
from itertools import pairwise
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.policy import Policy
from router.core.prefix import PromptHasher
from router.core.prefix.token_chain import TokenHasher
from router.proxy.body_fields import MOST_VALUES, form_model, json_fields
from router.proxy.errors import BadRequest
from router.proxy.intake import Intake, IntakeDesk
from router.proxy.prompt.content import MEDIA_TOKENS, MOST_PARTS
from router.proxy.routes import ROUTES
from router.proxy.sessions import Sessions
from router.proxy.table import RoutingTable
from router.proxy.wire.head import RequestHead, read_request_head
from router.state.calibration import BytesPerToken
from router.state.known_prompts import KnownPrompts

TABLE = RoutingTable(1, {"default": Policy(), "batch": Policy(name="b")}, frozenset({"m"}))
LONG = "All aboard the night train to the coast, calling at every station on the line. " * 4
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}


def head_of(path: str, fields: str = "") -> RequestHead:
    return read_request_head(f"POST {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n".encode())


def intake(body: dict[str, Any], path: str = "/v1/chat/completions", fields: str = "") -> Intake:
    desk = IntakeDesk(PromptHasher(1), BytesPerToken(), Random(1), Sessions(), KnownPrompts(TokenHasher(1)))
    return desk.intake(head_of(path, fields), orjson.dumps(body), "id", TABLE)


def text_of(body: dict[str, Any], path: str) -> bytes:
    return ROUTES[path.encode()].extract(body).text


CHATS: dict[str, tuple[str, dict[str, Any], list[dict[str, Any]]]] = {
    "chat": (
        "/v1/chat/completions",
        {"tools": [{"type": "function", "function": {"name": "f"}}], "chat_template_kwargs": {"thinking": True}},
        [
            {"role": "system", "content": LONG},
            {"role": "user", "content": [{"type": "text", "text": "what is this?"}, IMAGE]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "42"},
            {"role": "user", "content": "and now?"},
        ],
    ),
    "messages": (
        "/v1/messages",
        {"system": [{"type": "text", "text": LONG}], "tools": [{"name": "f"}], "max_tokens": 5},
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text", "text": "b"}]}],
    ),
    "responses": (
        "/v1/responses",
        {"instructions": LONG},
        [
            {"role": "user", "content": "a"},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "7"},
        ],
    ),
}


@pytest.mark.parametrize("name", CHATS)
def test_every_turn_is_a_prefix_of_the_next(name: str) -> None:
    path, fixed, turns = CHATS[name]
    member = "input" if name == "responses" else "messages"
    texts = [text_of({**fixed, member: turns[:n]}, path) for n in range(1, len(turns) + 1)]
    for one, following in pairwise(texts):
        assert following.startswith(one)
        assert len(following) > len(one)


@pytest.mark.parametrize("name", CHATS)
def test_whatever_the_engine_reads_is_in_the_key(name: str) -> None:
    path, fixed, turns = CHATS[name]
    member = "input" if name == "responses" else "messages"
    whole = {**fixed, member: turns}
    seen = {text_of(whole, path)}
    for index in range(len(turns)):
        changed = deepcopy(whole)
        changed[member][index]["role"] = "other"
        seen.add(text_of(changed, path))
        dropped = deepcopy(whole)
        del dropped[member][index]
        seen.add(text_of(dropped, path))
    for field in fixed:
        if field != "max_tokens":
            seen.add(text_of({k: v for k, v in whole.items() if k != field}, path))
    assert len(seen) == 1 + 2 * len(turns) + len([f for f in fixed if f != "max_tokens"])


def test_sampling_does_not_change_the_key() -> None:
    one = intake({"model": "m", "messages": [{"role": "user", "content": LONG}], "temperature": 0, "stream": True})
    two = intake({"stream": False, "seed": 3, "messages": [{"content": LONG, "role": "user"}], "model": "m"})
    assert one.chain == two.chain != b""


@pytest.mark.parametrize("change", [{"model": "n"}, {"cache_salt": "s"}, {"cache_salt": "t"}])
def test_model_and_salt_separate_caches(change: dict[str, str]) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": LONG}]}
    one, two = intake(body), intake({**body, **change})
    assert one.chain[:8] != two.chain[:8]


def test_images_count_by_what_they_cost_and_not_by_their_bytes() -> None:
    def tokens(image: dict[str, Any]) -> int:
        return intake({"model": "m", "messages": [{"role": "user", "content": [image]}]}).request.prompt_tokens

    big = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "B" * 1_000_000}}
    link = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    assert tokens(big) == tokens(IMAGE) == tokens(link)
    assert 500 < tokens(big) < 700


def test_the_same_image_is_the_same_prefix_and_another_is_not() -> None:
    other = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4999 + "B"}}
    chains = [
        intake({"model": "m", "messages": [{"role": "user", "content": [image, {"type": "text", "text": LONG}]}]}).chain
        for image in (IMAGE, deepcopy(IMAGE), other)
    ]
    assert chains[0] == chains[1] != chains[2]


def test_token_ids_are_counted_exactly() -> None:
    seen = intake({"model": "m", "prompt": list(range(100))}, "/v1/completions")
    assert (seen.request.prompt_tokens, seen.request.estimated, seen.request.tokens_per_block) == (100, False, 16.0)
    assert len(seen.chain) == 8 * (400 // 64)
    assert seen.text_bytes == 0


def test_batches_count_all_their_members() -> None:
    texts = intake({"model": "m", "prompt": ["a" * 400, "b" * 400]}, "/v1/completions")
    assert 200 <= texts.request.prompt_tokens <= 203
    ids = intake({"model": "m", "input": [[1] * 10, [2] * 20]}, "/v1/embeddings")
    assert ids.request.prompt_tokens == 30


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": LONG}),
        ("/v1/rerank", {"query": "q", "documents": [LONG]}),
        ("/rerank", {"query": "q", "documents": [LONG, {"text": "d"}]}),
        ("/v1/score", {"text_1": LONG, "text_2": [LONG]}),
        ("/v1/something/new", {"whatever": LONG}),
    ],
)
def test_other_endpoints_have_prompts_too(path: str, body: dict[str, Any]) -> None:
    seen = intake({"model": "m", **body}, path)
    assert seen.request.prompt_tokens >= len(LONG) // 4
    assert seen.chain


@pytest.mark.parametrize("path", ["/tokenize", "/detokenize"])
def test_tokenizing_prefills_nothing(path: str) -> None:
    seen = intake({"model": "m", "prompt": LONG, "tokens": [1]}, path)
    assert (seen.request.prompt_tokens, seen.chain) == (1, b"")


FORM = b'--b\r\nContent-Disposition: form-data; name="model"\r\n%b\r\nwhisper\r\n--b--\r\n'


@pytest.mark.parametrize(
    "body",
    [FORM % b"", FORM % b"Content-Type: text/plain\r\n", b'name="model"\r\n' * 10 + FORM % b""],
    ids=["plain", "with fields", "behind a file that looks like it"],
)
def test_the_model_of_a_form_is_found(body: bytes) -> None:
    desk = IntakeDesk(PromptHasher(1), BytesPerToken(), Random(1), Sessions(), KnownPrompts(TokenHasher(1)))
    head = head_of("/v1/audio/transcriptions", "Content-Type: multipart/form-data; boundary=b\r\n")
    assert desk.intake(head, body, "id", TABLE).request.model == "whisper"


def test_media_without_end_make_no_text_without_end() -> None:
    def text_of(images: int) -> bytes:
        content = [{"type": "image_url", "image_url": {"url": "data:x"}}] * images
        return ROUTES[b"/v1/chat/completions"].extract({"messages": [{"role": "user", "content": content}]}).text

    few, many, more = text_of(10), text_of(5 * MOST_PARTS), text_of(5 * MOST_PARTS + 1)
    assert len(few) > 10 * MEDIA_TOKENS * 4
    assert len(many) < 2 * MOST_PARTS * len(few) / 10
    assert many.startswith(few)
    assert more.startswith(many)


@pytest.mark.timeout(60)
def test_a_form_without_end_is_looked_through_once() -> None:
    assert form_model(b'name="model"\r\n' * 1_000_000) is None
    assert form_model(FORM % (b"a: b\r\n" * 1_000_000)) is None


def test_a_body_of_more_values_than_any_prompt_has_tokens_is_refused_unread() -> None:
    most = json_fields(b'{"model":"m","prompt":[%b]}' % b",".join([b"1"] * (MOST_VALUES - 3)))
    assert len(most["prompt"]) == MOST_VALUES - 3
    with pytest.raises(BadRequest, match="JSON values") as refused:
        json_fields(b'{"model":"m","prompt":[%b]}' % b",".join([b"1"] * MOST_VALUES))
    assert (refused.value.status, refused.value.code) == (413, "too_many_values")
    text = b", " * MOST_VALUES
    with pytest.raises(BadRequest, match="JSON values"):
        json_fields(b'{"model":"m","prompt":"%b"}' % text)


@pytest.mark.parametrize(("given_name", "workload"), [("batch", "batch"), ("unknown", "default"), ("", "default")])
def test_an_unknown_workload_is_the_default_one(given_name: str, workload: str) -> None:
    seen = intake({"model": "m", "messages": []}, fields=f"X-Pointsman-Workload: {given_name}\r\n")
    assert seen.request.workload == workload


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = "messages prompt input query documents text_1 text_2 tools system content cache_salt instructions model"
MEMBERS = st.sampled_from(NAMES.split(" "))


@given(st.sampled_from(sorted(path.decode() for path in ROUTES)), st.dictionaries(MEMBERS, JSON, max_size=5))
def test_no_json_breaks_an_extractor(path: str, body: dict[str, Any]) -> None:
    try:
        seen = intake(body, path)
    except BadRequest:
        return
    assert seen.request.prompt_tokens >= 1


@pytest.mark.parametrize("path", [path.decode() for path in ROUTES] + ["/v1/other"])
def test_nesting_without_end_is_passed_on(path: str) -> None:
    deep = b"[" * 900 + b"]" * 900
    members = b"".join(b',"%b":%b' % (name.encode(), deep) for name in [*NAMES.split(" ")[:-1], "documents"])
    desk = IntakeDesk(PromptHasher(1), BytesPerToken(), Random(1), Sessions(), KnownPrompts(TokenHasher(1)))
    assert desk.intake(head_of(path), b'{"model":"m"%b}' % members, "id", TABLE).request.model == "m"
