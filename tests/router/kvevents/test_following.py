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
    assert live(follower, 0, 1) == applies(0, 1)
    assert follower.replay_failed("no answer") == []
    assert follower.is_heard


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


def test_a_connection_that_comes_back_to_the_same_life_gets_what_was_missed() -> None:
    follower = started(0, 1, 2)
    assert follower.connected() == [AskReplay(2)]
    assert live(follower, 5) == []
    assert replay(follower, 2, 3, 4) == applies(3, 4, 5)
    assert (follower.counters.restarts, follower.counters.lost) == (0, 0)


def test_a_restart_that_numbers_do_not_show_is_found_when_the_connection_comes_back() -> None:
    follower = started(0, 1, 2)
    follower.connected()
    assert live(follower, 3, life=1) == []
    assert follower.replayed(2, body(2, life=1)) == [Clear("the engine restarted"), AskReplay(0)]
    assert replay(follower, 0, 1, 2, life=1) == applies(0, 1, 2, 3, life=1)


def test_a_restart_with_fewer_messages_is_found_at_the_end_of_the_replay() -> None:
    follower = started(0, 1, 2)
    follower.connected()
    assert follower.replay_ended() == [Clear("the engine restarted"), AskReplay(0)]
    assert replay(follower, 0, life=1) == applies(0, life=1)


def test_a_life_that_cannot_be_verified_is_forgotten() -> None:
    follower = started(0, 1, 2)
    follower.connected()
    assert live(follower, 7) == []
    assert follower.replay_failed("no answer") == [Clear("no answer"), *applies(7)]
    assert live(follower, 8) == applies(8)


def test_a_first_connection_asks_for_the_past_once() -> None:
    follower = Follower(can_replay=True)
    assert follower.begin() == [AskReplay(0)]
    assert follower.connected() == []
    assert replay(follower) == []
    assert follower.check() == [AskReplay(0)]
    assert replay(follower, 0, 1) == applies(0, 1)


def test_a_past_that_could_not_be_had_is_asked_for_when_there_is_a_connection() -> None:
    follower = Follower(can_replay=True)
    follower.begin()
    follower.replay_failed("nobody there yet")
    assert follower.connected() == [AskReplay(0)]


def test_a_restart_during_a_replay_is_found_before_anything_is_mixed() -> None:
    follower = started(0, 1)
    assert live(follower, 4) == [AskReplay(2)]
    assert follower.connected() == [AskReplay(1)]
    assert live(follower, 5, life=1) == []
    assert follower.replayed(1, body(1, life=1)) == [Clear("the engine restarted"), AskReplay(0)]
    assert replay(follower, *range(6), life=1) == applies(*range(6), life=1)


def test_a_message_that_the_subscription_came_too_late_for_is_found_by_a_check() -> None:
    follower = started(0, 1)
    assert follower.connected() == [AskReplay(1)]
    assert replay(follower, 1) == []
    assert not follower.is_heard
    assert follower.check() == [AskReplay(2)]
    assert replay(follower, 2) == applies(2)
    assert live(follower, 3) == applies(3)
    assert follower.is_heard


def test_what_was_dropped_from_a_replay_is_asked_for_again() -> None:
    follower = Follower(can_replay=True)
    follower.begin()
    assert live(follower, 9) == []
    assert replay(follower, 4, 5)[1:] == [*applies(4, 5), AskReplay(6)]  # the end came, but not what went before
    assert follower.replayed(6, body(6)) == applies(6)
    assert follower.replayed(8, body(8)) == [AskReplay(7)]
    assert follower.replayed(7, body(7)) == applies(7)
    assert follower.replay_failed("its end was dropped") == [AskReplay(8)]
    assert replay(follower, 8, 9) == applies(8, 9)
    assert (follower.counters.lost, follower.counters.gaps) == (1, 1)  # 0 to 3 were too old


def test_a_gap_in_what_waited_for_a_replay_is_asked_for_as_well() -> None:
    follower = started(0)
    assert live(follower, 2, 3, 6) == [AskReplay(1)]
    assert replay(follower, 1) == [*applies(1, 2, 3), AskReplay(4)]
    assert replay(follower, 4, 5, 6) == applies(4, 5, 6)
    assert (follower.counters.lost, follower.counters.gaps) == (0, 2)


def test_after_a_replay_that_failed_everything_is_asked_for_again_by_a_check() -> None:
    follower = started(0, 1)
    live(follower, 4)
    assert follower.is_heard
    assert follower.replay_failed("no answer") == [Clear("no answer"), *applies(4)]
    assert not follower.is_heard
    assert follower.check() == [AskReplay(5)]
    assert follower.replay_failed("no answer") == []
    assert not follower.is_heard
    assert follower.check() == [AskReplay(5)]
    again = follower.replay_ended()
    assert [type(action) for action in again] == [Clear, AskReplay]
    assert again[1] == AskReplay(0)
    assert live(follower, 5) == []
    assert replay(follower, *range(5)) == applies(*range(6))
    assert follower.is_heard
    assert (follower.counters.lost, follower.counters.restarts) == (1, 0)


def test_a_life_that_could_not_be_verified_is_learnt_anew_from_its_next_message() -> None:
    follower = started(0, 1, 2)
    follower.connected()
    assert follower.replay_failed("no answer") == [Clear("no answer")]
    assert not follower.is_heard
    assert live(follower, 3) == [AskReplay(0)]
    assert replay(follower, 0, 1, 2) == applies(0, 1, 2, 3)
    assert follower.is_heard


def test_a_check_that_fails_costs_nothing() -> None:
    follower = started(0, 1)
    follower.connected()
    replay(follower, 1)
    assert follower.check() == [AskReplay(2)]
    assert live(follower, 2) == applies(2)  # nothing was missed, so nothing has to wait
    assert follower.replay_failed("no answer") == []
    assert live(follower, 3) == applies(3)
    assert follower.check() == [AskReplay(4)]
    assert live(follower, 4) == applies(4)
    assert replay(follower, 4, 5) == applies(5)
    assert (follower.counters.lost, follower.counters.restarts) == (0, 0)


def test_a_flood_that_outran_a_replay_is_not_replayed_again() -> None:
    follower = Follower(can_replay=True, max_kept=3)
    follower.begin()
    live(follower, 7, 8, 9, 10)
    assert follower.is_heard


def test_without_a_replay_socket_there_is_nothing_to_check() -> None:
    follower = Follower(can_replay=False)
    assert follower.connected() == []
    assert follower.is_heard
    assert follower.check() == []


@given(st.integers(0, 2**32), st.floats(0, 0.6), st.integers(1, 60))
def test_whatever_is_lost_nothing_is_applied_twice_or_out_of_order(seed: int, loss: float, count: int) -> None:
    """A publisher that restarts (the connection breaks and comes back), a network that loses, a short buffer.

    Its replay socket drops what it has no room for, but never the first message; so it loses the end as well.
    """
    rng = random.Random(seed)
    follower = Follower(can_replay=True)
    applied: list[tuple[int, int]] = []
    asked: list[int] = []
    life, history = 0, 0

    def perform(actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Clear):
                applied.clear()
            elif isinstance(action, AskReplay):
                asked[:] = [action.start]
            else:
                owner, number = map(int, action.payload.split(b"/"))
                applied.append((owner, number))

    def answer(dropped: float) -> None:
        while asked:
            start = asked.pop()
            first = max(start, history - 20)
            for number in range(first, history):
                if number > first and rng.random() < dropped:
                    continue
                perform(follower.replayed(number, body(number, life)))
                if asked:
                    break
            else:
                if rng.random() < dropped and first < history:
                    perform(follower.replay_failed("the end was dropped"))
                else:
                    perform(follower.replay_ended())

    perform(follower.begin())
    for _ in range(count):
        if rng.random() < 0.1:
            life, history = life + 1, 0
            if rng.random() < 0.5:
                asked.clear()
                perform(follower.replay_failed("the engine went away"))
            perform(follower.connected())
        history += 1
        if rng.random() >= loss:
            perform(follower.live(history - 1, body(history - 1, life)))
        if rng.random() < 0.7:
            answer(loss / 4)
    answer(loss / 4)
    if rng.random() < 0.5:
        perform(follower.check())  # and what was lost last is found without a later message
    else:
        history += 1
        perform(follower.live(history - 1, body(history - 1, life)))
    answer(0)
    assert follower.expected == history
    assert [owner for owner, _ in applied] == [life] * len(applied)
    numbers = [number for _, number in applied]
    assert numbers == list(range(history - len(numbers), history))
    assert len(numbers) == history or follower.counters.lost > 0
