"""What may be asked of a simulation."""

from typing import Any

import pytest

from controlplane.errors import Invalid
from controlplane.lab.limits import MOST_INSTANCES, Limits
from controlplane.lab.policy_choice import policies_of, resolve
from controlplane.lab.simulation_settings import parse_settings
from controlplane.policies.services import revisions
from router.core.scorers import SCORERS
from tests.controlplane.conftest import ACTOR
from tests.controlplane.lab.conftest import SMALL

LIMITS = Limits(requests=1000, time_s=60, concurrent=1, processes=1, upload_bytes=1 << 20)


def test_what_is_left_out_has_its_default() -> None:
    settings = parse_settings({"trace": "coder", "policies": ["vllm"]}, LIMITS)
    assert (settings.seed, settings.rate_scales, settings.sweep) == (0, (1.0,), False)


@pytest.mark.parametrize(
    ("changes", "field", "fault"),
    [
        ({"speed": 3}, "speed", "no such field"),
        ({"requests": "many"}, "requests", "must be a whole number, not text"),
        ({"requests": 1001}, "requests", "At most 1000"),
        ({"requests": 1}, "requests", "of at least 10"),
        ({"policies": []}, "policies", "length of at least 1"),
        ({"policies": [f"linear:L=0.{i}" for i in range(1, 16)], "sweep": True}, "policies", "more than 60 runs"),
        ({"fleet": "abacus:4"}, "fleet", "no hardware profile 'abacus'"),
        ({"fleet": f"a100-80g:{MOST_INSTANCES},h100:1"}, "fleet", f"At most {MOST_INSTANCES}"),
        ({"fleet": "a100-80g:99999999999"}, "fleet", f"At most {MOST_INSTANCES}"),
        ({"fleet": "a100-80g:-1"}, "fleet", "serve nothing"),
        ({"rate_scales": [1, 2, 1]}, "rate_scales", "twice"),
        ({"rate_scales": [0]}, "rate_scales", "above 0"),
        ({"warmup": 0.95}, "warmup", "of at most 0.9"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(changes: dict[str, Any], field: str, fault: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_settings(SMALL | changes, LIMITS)
    assert list(caught.value.fields) == [field]
    assert fault in caught.value.fields[field][0]


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        parse_settings({"policies": "vllm", "seed": -1}, LIMITS)
    assert set(caught.value.fields) == {"trace", "policies", "seed"}


def test_every_scorer_can_be_named() -> None:
    found = resolve(list(SCORERS))
    assert [policy.scorer for policy in policies_of(found)] == list(SCORERS)


def test_only_what_is_written_is_kept() -> None:
    assert resolve(["linear:L=0.5", "multiplicative:a=2"]) == {
        "linear:L=0.5": {"scorer": "linear", "params": {"L": 0.5}},
        "multiplicative:a=2": {"a": 2.0},
    }


@pytest.mark.django_db
def test_a_stored_policy_is_taken_as_it_is_now() -> None:
    revisions.create_policy(actor=ACTOR, name="mine", content={"a": 2.0})
    found = resolve(["policy:mine", "vllm"])
    revisions.publish(actor=ACTOR, name="mine", message="Other.", expected=1, content={"a": 3.0})
    assert found == {"mine@1": {"a": 2.0}, "vllm": {"scorer": "vllm"}}
    assert resolve(["policy:mine"]) == {"mine@2": {"a": 3.0}}
    assert resolve(["policy:mine@1"]) == {"mine@1": {"a": 2.0}}


@pytest.mark.django_db
def test_every_policy_that_cannot_be_is_named() -> None:
    with pytest.raises(Invalid) as caught:
        resolve(["oracle", "linear:L", "policy:nobody", "policy:default@77", "policy:default@x", "vllm", "vllm"])
    faults = caught.value.fields["policies"]
    assert len(faults) == 6
    assert "no scorer named 'oracle'" in faults[0]
    assert "no policy named nobody" in faults[2]
    assert faults[-1] == "vllm is named twice."
