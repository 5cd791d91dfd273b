"""Matchers of silences and channels."""

import pytest

from controlplane.alerts.matchers import Matcher, Operator, all_hold, dump_matchers, parse_matchers
from controlplane.errors import Invalid

LABELS = {"kind": "stale_metrics", "instance": "gpu-1"}


@pytest.mark.parametrize(
    ("label", "operator", "value", "holds"),
    [
        ("kind", "=", "stale_metrics", True),
        ("kind", "=", "stale", False),
        ("kind", "!=", "stale", True),
        ("instance", "=~", "gpu-.*", True),
        ("instance", "=~", "gpu", False),  # the whole value
        ("instance", "!~", "gpu", True),
        ("workload", "=", "", True),  # a label that is not there has the empty value
        ("workload", "!=", "coder", True),
        ("workload", "=~", ".+", False),
    ],
)
def test_each_operator(label: str, operator: str, value: str, holds: bool) -> None:
    assert Matcher(label, Operator(operator), value).holds(LABELS) is holds


def test_all_must_hold() -> None:
    right, wrong = Matcher("kind", Operator.EQUAL, "stale_metrics"), Matcher("instance", Operator.EQUAL, "gpu-2")
    assert all_hold([right], LABELS)
    assert not all_hold([right, wrong], LABELS)


def test_they_survive_json() -> None:
    matchers = (Matcher("instance", Operator.MATCHES, "gpu-[12]"),)
    assert parse_matchers(dump_matchers(matchers)) == matchers


@pytest.mark.parametrize(
    ("items", "fault"),
    [
        ("kind=x", "a list"),
        ([{"label": "kind"}], "must have label, operator and value"),
        ([{"label": "Kind!", "operator": "=", "value": "x"}], "no label name"),
        ([{"label": "kind", "operator": "~", "value": "x"}], "none of =, !=, =~, !~"),
        ([{"label": "kind", "operator": "=~", "value": "("}], "cannot be read"),
        ([{"label": "kind", "operator": "=~", "value": "(a+)+$"}], "repetition of a repetition"),
        ([{"label": "kind", "operator": "=", "value": "x" * 300}], "more than 256"),
        ([{"label": "kind", "operator": "=", "value": "x"}] * 21, "at most 20"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(items: object, fault: str) -> None:
    with pytest.raises(Invalid, match=fault):
        parse_matchers(items)
