"""Which requests are a workload's."""

import pytest

from router.core.workload_match import Matcher, WorkloadMatch, match_faults

HEADERS = {b"x-team": b"search", b"x-stage": b"prod-eu"}


def holds(
    tenant: str | None = "acme", model: str = "qwen-30b", path: str = "/v1/chat/completions", **match: object
) -> bool:
    found = WorkloadMatch(**match)  # type: ignore[arg-type]
    assert match_faults(found) == []
    return Matcher(found).holds(HEADERS, tenant, model, path)


def test_a_match_that_names_nothing_matches_nothing() -> None:
    assert not holds()


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({"models": ("qwen-30b",)}, True),
        ({"models": ("other", "qwen*")}, True),
        ({"models": ("qwen",)}, False),
        ({"models": ("*",)}, True),
        ({"paths": ("/v1/chat/*",)}, True),
        ({"paths": ("/v1/completions",)}, False),
        ({"tenants": ("acme", "other")}, True),
        ({"tenants": ("ac*",)}, False),
        ({"headers": {"x-team": "search"}}, True),
        ({"headers": {"X-Team": "search"}}, True),
        ({"headers": {"x-team": "search", "x-stage": "prod-*"}}, True),
        ({"headers": {"x-team": "search", "x-stage": "test"}}, False),
        ({"headers": {"x-missing": "*"}}, False),
        ({"models": ("qwen*",), "tenants": ("other",)}, False),
    ],
)
def test_every_kind_must_hold_and_one_value_of_a_kind_is_enough(match: dict[str, object], expected: bool) -> None:
    assert holds(**match) is expected


def test_who_has_no_tenant_matches_no_tenant() -> None:
    assert not holds(tenant=None, tenants=("acme",))


@pytest.mark.parametrize(
    ("match", "why"),
    [
        ({"models": ("a*b",)}, "before its end"),
        ({"models": ("",)}, "empty"),
        ({"paths": ("v1",)}, "begin with /"),
        ({"headers": {"a b": "x"}}, "no header name"),
        ({"headers": {"": "x"}}, "no header name"),
    ],
)
def test_patterns_that_cannot_be_are_told(match: dict[str, object], why: str) -> None:
    assert any(why in fault for fault in match_faults(WorkloadMatch(**match)))  # type: ignore[arg-type]
