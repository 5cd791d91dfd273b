"""Which policies are refused, and why."""

from math import inf, nan

import pytest

from router.core.errors import CoreError, InvalidPolicy
from router.core.policy import Policy
from router.core.scorers import SCORERS, check_policy


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_every_scorer_is_accepted_with_its_own_parameters(scorer: str) -> None:
    check_policy(Policy(scorer=scorer, params=SCORERS[scorer].defaults))


@pytest.mark.parametrize("exponent", ["a", "b", "c"])
@pytest.mark.parametrize("value", [-0.1, -inf, inf, nan])
def test_exponents_are_finite_and_not_negative(exponent: str, value: float) -> None:
    with pytest.raises(InvalidPolicy, match=f"exponent {exponent} is {value}"):
        check_policy(Policy(**{exponent: value}))


def test_an_unknown_scorer_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="no scorer named 'guess'"):
        check_policy(Policy(scorer="guess"))


def test_a_parameter_that_the_scorer_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="scorer multiplicative has no parameter 'bias'"):
        check_policy(Policy(params={"bias": 1.0}))


@pytest.mark.parametrize("value", [inf, nan])
def test_a_parameter_that_is_not_finite_is_refused(value: float) -> None:
    scorer, name = next((spec.name, name) for spec in SCORERS.values() for name in spec.defaults)
    with pytest.raises(InvalidPolicy, match=f"parameter {name} is {value}"):
        check_policy(Policy(scorer=scorer, params={name: value}))


def test_the_label_is_name_at_revision() -> None:
    assert Policy(name="chat", revision=7).label == "chat@7"


@pytest.mark.parametrize("error", CoreError.__subclasses__())
def test_every_error_has_a_code_of_its_own(error: type[CoreError]) -> None:
    codes = [e.code for e in (CoreError, *CoreError.__subclasses__())]
    assert codes.count(error.code) == 1
