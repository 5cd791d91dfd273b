"""Messages are applied once and in order, or everything is cleared first."""

import random

from hypothesis import given
from hypothesis import strategies as st

from router.kvevents.following import Action, Apply, AskReplay, Clear, Follower, State


def body(number: int, life: int = 0) -> bytes:
    return f"{life}/{number}".encode()


def live(follower: Follower, *numbers: int, life: int = 0) -> list[Action]:
    return [action for number in numbers for action in follower.live(number, body(number, life))]


def replay(follower: Follower, *numbers: int, life: int = 0) -> list[Action]:
    actions = [action for number in numbers for action in follower.replayed(number, body(number, life))]
    return actions + follower.replay_ended()


def applies(*numbers: int, life: int = 0) -> list[Action]:
    return [Apply(body(number, life)) for number in numbers]


def started(*numbers: int) -> Follower:
    """A follower that has replayed an empty past and followed some messages."""
    follower = Follower(can_replay=True)
    assert follower.begin() == [AskReplay(0)]
    assert replay(follower) == []
    assert live(follower, *numbers) == applies(*numbers)
    return follower


def test_messages_in_order_are_applied() -> None:
    assert started(0, 1, 2).expected == 3


def test_a_new_reader_learns_the_past_before_the_present() -> None:
    follower = Follower(can_replay=True)
    follower.begin()
    assert live(follower, 5) == []
    assert replay(follower, 0, 1, 2, 3, 4, 5) == applies(0, 1, 2, 3, 4, 5)
    assert live(follower, 6) == applies(6)
    assert follower.counters.lost == 0


def test_a_gap_is_replayed_while_later_messages_wait() -> None:
    follower = started(0, 1)
    assert live(follower, 4) == [AskReplay(2)]
    assert live(follower, 5) == []
    assert follower.state is State.REPLAYING
    assert replay(follower, 2, 3, 4) == applies(2, 3, 4, 5)
    assert (follower.counters.gaps, follower.counters.lost) == (1, 0)


def test_a_gap_that_is_too_old_clears_first() -> None:
    follower = started(0, 1)
    live(follower, 50)
    actions = replay(follower, 40, *range(41, 51))
    assert isinstance(actions[0], Clear)
    assert actions[1:] == applies(*range(40, 51))
    assert follower.counters.lost == 1


def test_a_replay_that_fails_clears_and_goes_on() -> None:
    follower = started(0)
    live(follower, 3, 4)
    actions = follower.replay_failed("no answer")
    assert actions == [Clear("no answer"), *applies(3, 4)]
    assert live(follower, 5) == applies(5)


def test_a_failed_replay_of_a_past_that_was_empty_loses_nothing() -> None:
    follower = Follower(can_replay=True)
    follower.begin()
    live(follower, 0, 1)
    assert follower.replay_failed("no answer") == applies(0, 1)


def test_without_a_replay_socket_a_gap_clears() -> None:
    follower = Follower(can_replay=False)
    assert follower.begin() == []
    assert live(follower, 0) == applies(0)
    actions = live(follower, 3)
    assert isinstance(actions[0], Clear)
    assert actions[1:] == applies(3)


def test_a_number_that_goes_back_is_a_restart() -> None:
    follower = started(0, 1, 2)
    actions = live(follower, 0, life=1)
    assert actions == [Clear("the engine restarted"), *applies(0, life=1)]
    assert live(follower, 1, life=1) == applies(1, life=1)


def test_a_restart_of_which_the_beginning_was_missed_is_replayed() -> None:
    follower = started(*range(10))
    assert live(follower, 3, life=1) == [Clear("the engine restarted"), AskReplay(0)]
    assert replay(follower, 0, 1, 2, 3, life=1) == applies(0, 1, 2, 3, life=1)


def test_a_message_that_a_replay_brought_already_is_no_restart() -> None:
    follower = Follower(can_replay=True)
    follower.begin()
    replay(follower, 0, 1, 2, 3)
    assert live(follower, 1, 2, 3, 4) == applies(4)
    assert (follower.counters.restarts, follower.counters.duplicates) == (0, 3)


def test_a_restart_during_a_replay_is_seen() -> None:
    follower = started(0, 1)
    live(follower, 5)
    actions = live(follower, 0, life=1)
    assert actions == [Clear("the engine restarted"), *applies(0, life=1)]
    assert follower.replayed(2, body(2)) == []
    assert follower.replay_ended() == []
    assert live(follower, 1, life=1) == applies(1, life=1)


def test_too_many_messages_during_a_replay_end_the_waiting() -> None:
    follower = Follower(can_replay=True, max_kept=3)
    follower.begin()
    actions = live(follower, 7, 8, 9, 10)
    assert isinstance(actions[0], Clear)
    assert actions[1:] == applies(7, 8, 9, 10)
    assert follower.state is State.FOLLOWING


@given(st.integers(0, 2**32), st.floats(0, 0.6), st.integers(1, 60))
def test_whatever_is_lost_nothing_is_applied_twice_or_out_of_order(seed: int, loss: float, count: int) -> None:
    """A publisher that restarts, a network that loses, and a replay buffer that is short."""
    rng = random.Random(seed)
    follower = Follower(can_replay=True)
    applied: list[tuple[int, int]] = []
    asked: list[int] = []

    def perform(actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Clear):
                applied.clear()
            elif isinstance(action, AskReplay):
                asked[:] = [action.start]
            else:
                life, number = map(int, action.payload.split(b"/"))
                applied.append((life, number))

    life, history = 0, list[int]()
    perform(follower.begin())
    for _ in range(count):
        if rng.random() < 0.1:
            life, history = life + 1, []
        history.append(len(history))
        if rng.random() >= loss:
            perform(follower.live(history[-1], body(history[-1], life)))
        if asked and rng.random() < 0.7:
            for number in history[-20:]:
                if number >= asked[0]:
                    perform(follower.replayed(number, body(number, life)))
            asked.clear()
            perform(follower.replay_ended())
        lives = {each for each, _ in applied}
        numbers = [number for _, number in applied]
        assert len(lives) <= 2
        for each in lives:
            same = [number for owner, number in applied if owner == each]
            assert same == list(range(same[0], same[0] + len(same)))
        assert len(applied) == len(set(applied))
        assert numbers == numbers[:1] + [number for number in numbers[1:]]
