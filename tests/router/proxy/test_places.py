"""Who makes way when all places are taken."""

from router.proxy.places import LEAST_IDLE_S, LIST_EVERY_S, LISTED, Places


class Idler:
    def __init__(self, idle_since_s: float | None) -> None:
        self.idle_since_s = idle_since_s

    def make_way(self) -> None:
        self.idle_since_s = None


def test_whoever_has_been_idle_longest_is_first() -> None:
    places, clients = Places(3), [Idler(2.0), Idler(1.0), Idler(None)]
    assert places.make_room(clients, 10.0)
    assert [client.idle_since_s for client in clients] == [2.0, None, None]
    assert places.make_room(clients, 10.0)
    assert not places.make_room(clients, 10.0 + LIST_EVERY_S)


def test_whoever_asked_something_a_moment_ago_keeps_the_place() -> None:
    places, client = Places(1), Idler(9.5)
    assert not places.make_room([client], 9.5 + 0.9 * LEAST_IDLE_S)
    assert places.make_room([client], 9.5 + LEAST_IDLE_S)


def test_whoever_has_asked_since_the_listing_is_not_taken_for_idle() -> None:
    places, clients = Places(3), [Idler(1.0), Idler(2.0), Idler(3.0)]
    assert places.make_room(clients, 10.0)
    clients[1].idle_since_s = 9.9
    assert places.make_room(clients, 10.0)
    assert [client.idle_since_s for client in clients] == [None, 9.9, None]


def test_clients_are_not_looked_through_for_every_newcomer() -> None:
    places, looks = Places(1), []

    class Busy(Idler):
        @property
        def idle_since_s(self) -> None:
            looks.append(self)

        @idle_since_s.setter
        def idle_since_s(self, _: float | None) -> None: ...

    busy = Busy(None)
    for newcomer in range(100):
        assert not places.make_room([busy], 10.0 + newcomer * LIST_EVERY_S / 200)
    assert len(looks) == 1


def test_any_number_can_make_way() -> None:
    places, clients = Places(1), [Idler(float(number)) for number in range(3 * LISTED)]
    now_s = 4.0 * LISTED
    for newcomer in range(3 * LISTED):
        assert places.make_room(clients, now_s + newcomer // LISTED * LIST_EVERY_S)
