"""What a sink is told: nothing while it is in doubt what the engine holds, everything again when that is known."""

import msgspec
import pytest

from router.core.prefix.token_chain import TokenHasher
from router.kvevents import feed as module
from router.kvevents.feed import Feed
from router.kvevents.source import EventSource
from tests.router.kvevents.test_subscriber import Index

WITH_REPLAY = EventSource("tcp://x:1", "tcp://x:2")
WITHOUT = EventSource("tcp://x:1")


def stored(*blocks: int) -> bytes:
    events = [
        {"type": "BlockStored", "block_hashes": [b], "parent_block_hash": None, "token_ids": [b] * 4, "block_size": 4}
        for b in blocks
    ]
    return msgspec.msgpack.encode([1.0, events, 0])


def removed(block: int) -> bytes:
    return msgspec.msgpack.encode([1.0, [{"type": "BlockRemoved", "block_hashes": [block]}], 0])


def following(source: EventSource) -> tuple[Feed, Index]:
    """Return a feed that has heard of three blocks and is told."""
    index = Index()
    feed = Feed.of("e", source, TokenHasher(1), index)
    feed.begin()
    feed.replay_ended(0.0)
    feed.connected(0.0)
    feed.replay_ended(0.0)
    for number in range(3):
        feed.live(number, stored(number), 2.0)
    return feed, index


def test_nothing_is_told_before_it_is_asked_for_and_everything_then() -> None:
    feed, index = following(WITH_REPLAY)
    assert index.of() == set()
    list(feed.tell())
    assert len(index.of()) == 3
    feed.live(3, removed(1), 2.0)
    assert len(index.of()) == 2


def test_a_lost_connection_puts_everything_in_doubt_until_the_same_life_is_back() -> None:
    feed, index = following(WITH_REPLAY)
    list(feed.tell())
    feed.disconnected()
    assert (index.of(), feed.settled, feed.told) == (set(), False, False)
    assert feed.connected(3.0) == 2
    feed.replayed(2, stored(2), 3.0)
    assert not feed.settled
    feed.replayed(3, stored(7), 3.0)
    feed.replay_ended(3.0)
    assert feed.settled
    list(feed.tell())
    assert len(index.of()) == 4


def test_without_a_replay_a_lost_connection_loses_everything() -> None:
    feed, index = following(WITHOUT)
    list(feed.tell())
    feed.disconnected()
    feed.connected(3.0)
    list(feed.tell())
    assert (index.of(), len(feed.residency), feed.status().lost) == (set(), 0, 1)


def test_who_saw_the_engine_lose_its_cache_has_everything_asked_for_again() -> None:
    feed, index = following(WITH_REPLAY)
    list(feed.tell())
    assert feed.begin_again("a poll showed a restart") == 0
    assert (index.of(), feed.status().last_loss) == (set(), "a poll showed a restart")
    feed.replayed(0, stored(9), 3.0)
    feed.replay_ended(3.0)
    assert len(index.of()) == 1


def test_telling_goes_on_in_slices_and_stops_when_doubt_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLD_AT_ONCE", 1)
    feed, index = following(WITH_REPLAY)
    telling = feed.tell()
    next(telling)
    assert len(index.of()) == 1
    feed.disconnected()
    assert list(telling) == []
    assert index.of() == set()


def test_what_left_while_it_was_being_told_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLD_AT_ONCE", 1)
    feed, index = following(WITH_REPLAY)
    telling = feed.tell()
    next(telling)
    for number in range(3):
        feed.live(3 + number, removed(number), 2.0)
    list(telling)
    assert index.of() == set()
