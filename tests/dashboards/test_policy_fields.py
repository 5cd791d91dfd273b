"""The editor knows every field of a policy, and nothing else."""

from controlplane.policies.content import complete, field_names
from dashboards.policy_fields import FIELDS, Kind
from dashboards.record_diff import Difference, differences


def test_the_editor_shows_exactly_the_fields_of_a_policy() -> None:
    assert {field.key for field in FIELDS} == set(field_names())


def test_defaults_are_those_of_the_policy() -> None:
    whole = complete({})
    for field in FIELDS:
        if field.kind is Kind.NUMBER:
            assert (float(field.default) if field.default else None) == whole[field.key]
        elif field.kind is Kind.CHOICE:
            assert field.default == whole[field.key]
            assert field.default in field.choices
        else:
            assert not whole[field.key], f"{field.key} is off by default"


def test_every_variant_is_a_policy() -> None:
    for field in FIELDS:
        assert bool(field.variants) == (field.kind is Kind.VARIANT)
        for variant in field.variants:
            assert complete({field.key: variant.content})[field.key]


def test_differences_name_what_changed() -> None:
    before, after = complete({}), complete({"b": 0.5, "cold_start": {}})
    found = differences(before, after)
    assert Difference("b", "1.0", "0.5") in found
    assert {one.field for one in found} == {"b", "cold_start"}
    assert differences(before, before) == ()
