"""Who may take a request, and what is said of those who may not."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from msgspec.structs import replace

from router.core.candidate import Candidate
from router.core.decide import decide
from router.core.filters import Rejections
from router.core.instance import ROUTABLE_STATES, InstanceState, InstanceView
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation
from tests.router.core.fleets import choose, fleet, fleets, request, requests


def reasons(views: list[InstanceView], of: Request | None = None) -> dict[str, str]:
    return {candidate.view.name: reason for candidate, reason in choose(views, of=of).rejected}


@pytest.mark.parametrize("state", InstanceState)
def test_only_ready_and_warming_instances_take_requests(state: InstanceState) -> None:
    views = [replace(v, state=state) for v in fleet((0, 0))]
    if state in (InstanceState.READY, InstanceState.WARMING):
        assert choose(views).chosen.view is views[0]
    else:
        assert choose(views).chosen is None
        assert reasons(views) == {"i0": f"state is {state.value}"}


def test_an_ejected_instance_is_out() -> None:
    idle, busy = fleet((0, 0), (5000, 5))
    views = [replace(idle, ejected=True), busy]
    assert choose(views).chosen.view is busy
    assert reasons(views) == {"i0": "ejected after failures"}


def test_an_instance_that_failed_this_request_is_out() -> None:
    views = fleet((0, 0), (5000, 5))
    assert choose(views, of=request(tried=frozenset({0}))).chosen.view is views[1]
    assert reasons(views, request(tried=frozenset({0, 1}))) == dict.fromkeys(
        ("i0", "i1"), "already tried for this request"
    )


def test_an_instance_serves_the_models_it_lists_or_any_when_it_lists_none() -> None:
    a, b, c = fleet((0, 0), (0, 0), (0, 0))
    views = [replace(a, models=frozenset({"other"})), replace(b, models=frozenset({"m", "other"})), c]
    assert reasons(views) == {"i0": "does not serve m"}


def test_an_adapter_is_asked_for_by_its_own_name() -> None:
    a, b = fleet((0, 0), (0, 0))
    views = [replace(a, models=frozenset({"m"})), replace(b, models=frozenset({"m", "tuned"}))]
    assert reasons(views, request(adapter="tuned")) == {"i0": "does not serve tuned"}


def test_the_first_filter_that_rejects_gives_the_reason() -> None:
    views = [replace(v, state=InstanceState.DRAINING, models=frozenset({"x"}), ejected=True) for v in fleet((0, 0))]
    assert reasons(views) == {"i0": "state is draining"}


@given(fleet=fleets(all_ready=False), request=requests)
def test_everyone_is_a_candidate_or_rejected_with_a_reason(
    fleet: tuple[list[InstanceView], dict[int, int]], request: Request
) -> None:
    views, matched = fleet
    decision = decide(request, views, matched, Policy(), Random(0))
    kept, out = [c.view.slot for c in decision.candidates], [c.view.slot for c, _ in decision.rejected]
    assert sorted(kept + out) == sorted(v.slot for v in views)
    assert kept == [v.slot for v in views if v.state in ROUTABLE_STATES and not v.ejected]
    assert all(reason for _, reason in decision.rejected)
    assert (decision.chosen is None) == (not kept)


def test_a_filter_sees_what_earlier_ones_left_and_may_keep_the_least_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    def cap_bs(request: Request, candidates: Sequence[Candidate], policy: Policy, situation: Situation) -> Rejections:
        over = {i: f"BS {c.bs} is above 3" for i, c in enumerate(candidates) if c.bs > 3}
        if len(over) == len(candidates):
            del over[min(over, key=lambda i: candidates[i].bs)]
        return over

    from router.core import decide as module

    monkeypatch.setattr(module, "FILTERS", (*module.FILTERS, cap_bs))
    light, heavy, heaviest = fleet((0, 0), (0, 5), (0, 9))
    assert reasons([light, heavy, heaviest]) == {"i1": "BS 6 is above 3", "i2": "BS 10 is above 3"}
    assert reasons([replace(light, ejected=True), heavy, heaviest]) == {
        "i0": "ejected after failures",
        "i2": "BS 10 is above 3",
    }
