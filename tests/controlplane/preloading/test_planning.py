"""Which class goes to which instance."""

from controlplane.alerts.window import Window
from controlplane.preloading.models import Reason
from controlplane.preloading.planning import MOST_AT_AN_INSTANCE, MOST_CLASSES, WIDEN_BY, Made, Target, Wish, plan
from controlplane.telemetry.rollup import ClassRollup
from router.core.instance import InstanceState
from tests.controlplane.alerts.rollups_of import instance, rollup, window

NOTHING: frozenset[Made] = frozenset()


def target(name: str, state: InstanceState = InstanceState.READY, epoch: int = 1) -> Target:
    return Target(f"id-{name}", name, state, epoch)


def prefix(number: int, requests: int, *holders: str, text_bytes: int = 100) -> ClassRollup:
    return ClassRollup(
        id=f"{number:016x}",
        model="m",
        prefix_tokens=512,
        requests=requests,
        holders=tuple(f"id-{name}" for name in holders),
        watched=False,
        mitigated=False,
        text_bytes=text_bytes,
    )


def seen(*classes: ClassRollup, arrivals: int = 100, loads: tuple[float, ...] = (1, 1, 1, 1)) -> Window:
    """Four instances, gpu-0 to gpu-3, and some classes."""
    rows = [instance(f"gpu-{number}", bs=load) for number, load in enumerate(loads)]
    return window(rollup(*rows, hot_arrivals=arrivals, classes={one.id: one for one in classes}))


FLEET = [target(f"gpu-{number}") for number in range(4)]
JOINED = [*FLEET[:3], target("gpu-3", InstanceState.WARMING)]


def names(wishes: list[Wish]) -> list[tuple[int, str, Reason]]:
    return [(int(wish.class_id, 16), wish.target.name, wish.reason) for wish in wishes]


def test_a_warming_instance_gets_what_it_lacks() -> None:
    window = seen(prefix(1, 20, "gpu-0", "gpu-1"), prefix(2, 10, "gpu-3", "gpu-0"))
    assert names(plan(window, JOINED, NOTHING)) == [(1, "gpu-3", Reason.JOINED)]


def test_a_fleet_that_is_all_new_is_left_to_its_traffic() -> None:
    fleet = [target(f"gpu-{number}", InstanceState.WARMING) for number in range(4)]
    assert plan(seen(prefix(1, 20, "gpu-0", "gpu-1")), fleet, NOTHING) == []


def test_a_fleet_that_holds_everything_needs_nothing() -> None:
    window = seen(prefix(1, 20, "gpu-0", "gpu-1"))
    assert plan(window, FLEET, NOTHING) == []


def test_a_class_without_text_cannot_be_brought_anywhere() -> None:
    assert plan(seen(prefix(1, 90, "gpu-0", text_bytes=0)), JOINED, NOTHING) == []


def test_a_hot_class_gets_the_least_loaded_holders_it_asks_for() -> None:
    window = seen(prefix(1, 45, "gpu-0"), loads=(9, 5, 3, 7))  # .45 of 4 instances: two holders
    assert names(plan(window, FLEET, NOTHING)) == [(1, "gpu-2", Reason.WIDEN)]
    hotter = seen(prefix(1, 95, "gpu-0"), loads=(9, 5, 3, 7))
    assert [wish.target.name for wish in plan(hotter, FLEET, NOTHING)] == ["gpu-2", "gpu-1"][:WIDEN_BY]


def test_what_was_planned_before_is_not_planned_again_unless_the_cache_was_lost() -> None:
    window = seen(prefix(1, 20, "gpu-0"))
    made = frozenset({(f"{1:016x}", "id-gpu-3", 1)})
    assert plan(window, JOINED, made) == []
    restarted = [*FLEET[:3], target("gpu-3", InstanceState.WARMING, epoch=2)]
    assert len(plan(window, restarted, made)) == 1


def test_an_instance_has_a_budget() -> None:
    window = seen(*(prefix(number, 20 - number, "gpu-0") for number in range(10)), arrivals=1_000)
    wishes = plan(window, JOINED, NOTHING)
    assert [int(wish.class_id, 16) for wish in wishes] == list(range(MOST_CLASSES))
    spent = frozenset((f"{100 + n:016x}", "id-gpu-3", 1) for n in range(MOST_AT_AN_INSTANCE))
    assert plan(window, JOINED, spent) == []


def test_one_wish_for_a_class_and_instance() -> None:
    window = seen(prefix(1, 95, "gpu-0"), loads=(9, 5, 3, 1))
    wishes = plan(window, JOINED, NOTHING)
    assert len({(wish.class_id, wish.target.id) for wish in wishes}) == len(wishes)
    assert names(wishes)[0] == (1, "gpu-3", Reason.JOINED)
