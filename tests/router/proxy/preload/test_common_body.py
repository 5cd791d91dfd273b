"""What two requests have in common, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.proxy.preload.common_body import common_chat, common_completion

SYSTEM = {"role": "system", "content": "You are helpful."}


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **fields}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_the_shared_messages_are_kept_and_no_users_own() -> None:
    common = common_chat(chat(SYSTEM, user("my secret"), temperature=1), chat(SYSTEM, user("another")))
    assert common == chat(SYSTEM, user("")) or common == chat(SYSTEM)
    assert "secret" not in str(common)


def test_a_message_that_begins_alike_is_cut_where_it_differs() -> None:
    common = common_chat(chat(user("Context: abc. Q: one")), chat(user("Context: abc. Q: two")))
    assert common == chat(user("Context: abc. Q: "))


def test_nothing_follows_a_message_that_was_cut() -> None:
    common = common_chat(chat(user("ab"), user("same")), chat(user("ac"), user("same")))
    assert common == chat(user("a"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (chat(user("x")), chat(user("y"))),
        (chat(SYSTEM, tools=[1]), chat(SYSTEM)),
        (chat(SYSTEM), {**chat(SYSTEM), "model": "n"}),
        (chat(), chat()),
        ({"model": "m", "messages": "x"}, {"model": "m", "messages": "x"}),
        (chat({"role": "user", "content": ["x"]}), chat({"role": "user", "content": ["y"]})),
    ],
)
def test_requests_that_share_nothing_give_nothing(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert common_chat(one, other) is None


def test_tools_are_part_of_the_prompt() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert common_chat(chat(SYSTEM, tools=tools), chat(SYSTEM, user("x"), tools=tools)) == chat(SYSTEM, tools=tools)


@given(st.text(max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_prompts_share_what_they_begin_with(shared: str, one: str, other: str) -> None:
    common = common_completion({"model": "m", "prompt": shared + one}, {"model": "m", "prompt": shared + other})
    prompt = "" if common is None else str(common["prompt"])
    assert prompt.startswith(shared)
    assert (shared + one).startswith(prompt)
    assert (shared + other).startswith(prompt)
    longer = len(prompt) + 1
    assert (shared + one)[:longer] != (shared + other)[:longer] or len(prompt) == min(
        len(shared + one), len(shared + other)
    )
