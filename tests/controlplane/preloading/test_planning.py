"""Which class goes to which instance."""

from collections.abc import Iterable

from controlplane.alerts.window import Window
from controlplane.preloading import planning
from controlplane.preloading.models import Reason
from controlplane.preloading.planning import Made, Target, Wish
from controlplane.telemetry.rollup import ClassRollup
from router.core.instance import InstanceState
from router.core.preload_budget import PreloadBudget
from tests.controlplane.alerts.rollups_of import instance, rollup, window

NOTHING: tuple[Made, ...] = ()
BUDGET = PreloadBudget(most_prefixes=5, tokens=1_000)


def plan(window: Window, targets: Iterable[Target], made: Iterable[Made], budget: PreloadBudget = BUDGET) -> list[Wish]:
    return planning.plan(window, targets, made, budget)


def joined(number: int, tokens: int = 25) -> Made:
    """A preload of gpu-3."""
    return Made(f"{number:016x}", "id-gpu-3", 1, Reason.JOINED, tokens)


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


def test_a_hot_class_goes_to_everybody_who_lacks_it_the_least_loaded_first() -> None:
    window = seen(prefix(1, 45, "gpu-0"), loads=(9, 5, 3, 7))
    assert names(plan(window, FLEET, NOTHING)) == [(1, name, Reason.WIDEN) for name in ("gpu-2", "gpu-1", "gpu-3")]


def test_a_class_of_few_requests_or_enough_holders_is_not_hot() -> None:
    assert plan(seen(prefix(1, 20, "gpu-0"), arrivals=25), FLEET, NOTHING) == []
    assert plan(seen(prefix(1, 40, "gpu-0", "gpu-1")), FLEET, NOTHING) == []


def test_what_was_planned_before_is_not_planned_again_unless_the_cache_was_lost() -> None:
    window = seen(prefix(1, 20, "gpu-0"))
    made = [joined(1)]
    assert plan(window, JOINED, made) == []
    restarted = [*FLEET[:3], target("gpu-3", InstanceState.WARMING, epoch=2)]
    assert len(plan(window, restarted, made)) == 1


def test_an_instance_that_joined_has_a_budget_of_prefixes() -> None:
    window = seen(*(prefix(number, 20 - number, "gpu-0") for number in range(10)), arrivals=1_000)
    assert [int(wish.class_id, 16) for wish in plan(window, JOINED, NOTHING)] == [0, 1, 2, 3, 4]
    assert plan(window, JOINED, [joined(100 + number) for number in range(BUDGET.most_prefixes)]) == []


def test_an_instance_that_joined_has_a_budget_of_tokens() -> None:
    long = [prefix(number, 20 - number, "gpu-0", text_bytes=1_600) for number in range(3)]
    window = seen(*long, arrivals=1_000)
    assert [wish.tokens for wish in plan(window, JOINED, NOTHING)] == [400, 400]
    assert plan(window, JOINED, [joined(9, tokens=700)]) == []


def test_hot_classes_are_no_matter_of_budget() -> None:
    window = seen(prefix(1, 45, "gpu-0", text_bytes=100_000))
    spent = [Made(f"{100 + n:016x}", "id-gpu-2", 1, Reason.JOINED, 1_000) for n in range(BUDGET.most_prefixes)]
    assert len(plan(window, FLEET, spent)) == 3


def test_one_wish_for_a_class_and_instance() -> None:
    window = seen(prefix(1, 95, "gpu-0"), loads=(9, 5, 3, 1))
    wishes = plan(window, JOINED, NOTHING)
    assert len({(wish.class_id, wish.target.id) for wish in wishes}) == len(wishes)
    assert names(wishes)[0] == (1, "gpu-3", Reason.JOINED)
    assert len(wishes) == 3
