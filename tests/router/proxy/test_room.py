"""Whose request makes room when too many bytes are held."""

from router.proxy.room import LOOK_EVERY_S, Room


class Holder:
    def __init__(self, arriving_bytes: int) -> None:
        self.arriving_bytes = arriving_bytes

    def give_up(self) -> None:
        self.arriving_bytes = 0


def held(holders: list[Holder]) -> list[int]:
    return [holder.arriving_bytes for holder in holders]


def test_the_largest_give_up_until_there_is_room() -> None:
    holders = [Holder(size) for size in (10, 500, 0, 300, 400)]
    assert Room().make(holders, asker_bytes=20, wanted_bytes=600, now_s=1.0)
    assert held(holders) == [10, 0, 0, 300, 0]


def test_nobody_gives_up_for_a_request_as_large() -> None:
    holders = [Holder(100), Holder(99)]
    assert not Room().make(holders, asker_bytes=100, wanted_bytes=1, now_s=1.0)
    assert held(holders) == [100, 99]


def test_clients_are_not_looked_through_for_every_request() -> None:
    room, holders = Room(), [Holder(100), Holder(100)]
    assert room.make(holders, asker_bytes=1, wanted_bytes=1, now_s=1.0)
    assert not room.make(holders, asker_bytes=1, wanted_bytes=1, now_s=1.0 + LOOK_EVERY_S / 2)
    assert room.make(holders, asker_bytes=1, wanted_bytes=1, now_s=1.0 + LOOK_EVERY_S)
