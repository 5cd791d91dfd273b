"""How two contents of a policy differ, as people read it."""

from dashboards.policy_changes import changes


def test_a_field_is_written_with_its_values() -> None:
    assert changes({"a": 1.0}, {"a": 2.0}) == (("a", "1.0", "2.0"),)


def test_what_is_none_is_off() -> None:
    assert changes({"p_token_cap": 9000}, {}) == (("p_token_cap", "9000", "off"),)


def test_a_term_that_is_taken_out_or_put_in_is_one_line() -> None:
    off = changes({"cold_start": {"bs_floor_share": 0.5}}, {})
    on = changes({}, {"cold_start": {"bs_floor_share": 0.5}})
    assert [(one.field, one.after) for one in off] == [("cold_start", "off")]
    assert [(one.field, one.before) for one in on] == [("cold_start", "off")]
    assert "bs_floor_share 0.5" in off[0].before
    assert off[0].before == on[0].after


def test_within_a_term_that_stays_each_field_is_a_line() -> None:
    found = changes({"cold_start": {"bs_floor_share": 0.5}}, {"cold_start": {"bs_floor_share": 0.25}})
    assert found == (("cold_start.bs_floor_share", "0.5", "0.25"),)
