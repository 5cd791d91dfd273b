"""How a decision explains itself."""

from random import Random

from hypothesis import given
from msgspec.structs import replace

from router.core.decide import decide
from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.request import Request
from tests.router.core.fleets import choose, fleet, fleets, requests


def test_the_margin_is_the_distance_to_the_runner_up() -> None:
    assert choose(fleet((0, 1), (0, 0), (0, 4))).margin == 1000


def test_a_tie_has_no_margin_and_a_single_candidate_no_runner_up() -> None:
    assert choose(fleet((0, 0), (0, 0))).margin == 0
    assert choose(fleet((0, 0))).margin is None


def test_rows_stand_from_best_to_worst_with_the_chosen_one_first_and_the_rejected_last() -> None:
    a, b, c, d = fleet((0, 3), (0, 0), (0, 0), (0, 0))
    views = [a, replace(b, last_chosen=5), replace(c, last_chosen=2), replace(d, ejected=True)]
    rows = choose(views).rows()
    assert [(row.candidate.view.name, row.score, row.filtered) for row in rows] == [
        ("i2", 1000, None),
        ("i1", 1000, None),
        ("i0", 4000, None),
        ("i3", None, "ejected after failures"),
    ]


@given(fleet=fleets(min_size=2, all_ready=False), request=requests)
def test_rows_hold_every_instance_once_and_agree_with_the_decision(
    fleet: tuple[list[InstanceView], dict[int, int]], request: Request
) -> None:
    views, matched = fleet
    decision = decide(request, views, matched, Policy(), Random(0))
    rows = decision.rows()
    assert sorted(row.candidate.view.slot for row in rows) == sorted(view.slot for view in views)
    scored = [row.score for row in rows if row.filtered is None]
    assert scored == sorted(scored)
    assert all((row.score is None) != (row.filtered is None) for row in rows)
    if decision.chosen is not None:
        assert rows[0].candidate is decision.chosen
    if decision.margin is not None:
        assert decision.margin == scored[1] - scored[0]
