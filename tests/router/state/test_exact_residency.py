"""Where an instance tells its KV events, hits are its own word; everywhere else they are estimated."""

from array import array
from random import Random

from msgspec.structs import replace

from router.core.decision import Decision
from router.core.policy import Policy
from router.core.prefix import PromptHasher, prefix_key
from router.core.request import Request
from router.proxy.decision_sample import decision_sample
from router.proxy.recent_decisions import RecentDecision
from router.state.booking import Booking
from router.state.fleet import Fleet
from router.state.tokenised_text import TokenisedText
from tests.router.state.test_booking import fleet_of

BLOCK = 16
HASHER = PromptHasher(7)
KEY = prefix_key("m")
TEXT = bytes(range(32, 96)) * 40
IDS = array("I", range(1000, 1640)).tobytes()
"""640 tokens of 4 bytes: as the estimate has it."""


def following(count: int = 2) -> Fleet:
    fleet = fleet_of(count)
    fleet.follow_events(fleet.by_slot(0), BLOCK)
    fleet.known.learn(TokenisedText(text=TEXT, chain=HASHER.chain(KEY, TEXT), token_ids=IDS))
    return fleet


def decided(fleet: Fleet, text: bytes = TEXT, now_s: float = 0.0) -> Decision:
    chain = HASHER.chain(KEY, text)
    known = fleet.known.find(text, chain)
    request = Request("r", "m", max(1, len(text) // 4), estimated=True)
    return fleet.decide(request, chain, Policy(), Random(0), now_s, known)


def hits(decision: Decision) -> list[tuple[int, bool]]:
    found = sorted(decision.candidates, key=lambda candidate: candidate.view.slot)
    return [(candidate.hit_tokens, candidate.exact) for candidate in found]


def blocks(first: int, last: int) -> bytes:
    return following(1).token_hasher.chain(IDS, BLOCK)[8 * first : 8 * last]


def test_what_was_stored_is_hit_and_what_was_removed_is_not() -> None:
    fleet = following()
    assert hits(decided(fleet)) == [(0, True), (0, False)]
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 40), b"", cleared=False, now_s=0.0)
    assert hits(decided(fleet)) == [(624, True), (0, False)]
    fleet.residency_changed(fleet.by_slot(0), b"", blocks(30, 40), cleared=False, now_s=0.0)
    assert hits(decided(fleet)) == [(480, True), (0, False)]
    fleet.residency_changed(fleet.by_slot(0), b"", b"", cleared=True, now_s=0.0)
    assert hits(decided(fleet)) == [(0, True), (0, False)]


def test_an_eviction_by_event_lowers_the_hit_though_the_text_is_still_expected() -> None:
    fleet = following()
    fleet.index.insert(0, HASHER.chain(KEY, TEXT))
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 20), b"", cleared=False, now_s=0.0)
    assert hits(decided(fleet))[0] == (320, True)


def test_unlearnt_text_falls_back_to_the_estimate() -> None:
    fleet = following()
    other = b"something else " * 200
    fleet.index.insert(0, HASHER.chain(KEY, other))
    assert hits(decided(fleet, other)) == [(736, False), (0, False)]


def test_an_instance_that_is_estimated_again_is_no_longer_exact() -> None:
    fleet = following()
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 40), b"", cleared=False, now_s=0.0)
    fleet.estimate(fleet.by_slot(0))
    assert hits(decided(fleet)) == [(0, False), (0, False)]
    assert fleet.events.blocks == 0


def test_losing_everything_starts_the_instance_cold_and_drops_what_was_expected() -> None:
    fleet = following()
    fleet.index.insert(0, HASHER.chain(KEY, TEXT))
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 4), b"", cleared=False, now_s=0.0)
    fleet.residency_changed(fleet.by_slot(0), b"", b"", cleared=True, now_s=5.0)
    assert fleet.index.resident(0) == 0
    assert fleet.views[0].cold_since_s == 5.0


def test_a_removed_instance_leaves_nothing_behind() -> None:
    fleet = following()
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 40), b"", cleared=False, now_s=0.0)
    fleet.apply([], now_s=0.0)
    assert (fleet.events.blocks, fleet.known.block_sizes) == (0, ())


def test_no_more_is_hit_than_the_prompt_has() -> None:
    fleet = following()
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 40), b"", cleared=False, now_s=0.0)
    decision = decided(fleet)
    assert decision.candidates[0].new_tokens == 16
    assert all(c.hit_tokens + c.new_tokens == decision.request.prompt_tokens for c in decision.candidates)
    assert replace(decision.candidates[0], exact=False) != decision.candidates[0]


def booked(fleet: Fleet, text: bytes = TEXT) -> Booking:
    decision = decided(fleet, text)
    return fleet.book(decision, HASHER.chain(KEY, text), now_s=0.0)


def test_a_prompt_that_is_only_just_computed_is_expected_until_its_events_have_had_time_to_come() -> None:
    fleet = following(1)
    booking = booked(fleet)
    assert hits(decided(fleet)) == [(624, False)]
    booking.first_byte(10.0)
    assert hits(decided(fleet, now_s=10.4)) == [(624, False)]
    assert hits(decided(fleet, now_s=10.6)) == [(0, True)]


def test_what_is_told_meanwhile_is_exact_again() -> None:
    fleet = following(1)
    booked(fleet)
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 40), b"", cleared=False, now_s=0.0)
    assert hits(decided(fleet)) == [(624, True)]


def test_a_booking_that_failed_is_not_expected() -> None:
    fleet = following(1)
    booked(fleet).end()
    assert hits(decided(fleet)) == [(0, True)]


def test_of_a_waiting_prompt_only_the_common_beginning_is_expected() -> None:
    fleet = following(1)
    booked(fleet, TEXT[:1280] + b"another question altogether, " * 30)
    assert hits(decided(fleet)) == [(320, False)]


def test_of_a_waiting_prompt_no_more_is_expected_than_its_own_tokens() -> None:
    """Its text is not of even density: what is known ends in tokens of few bytes, and it ends before them."""
    fleet = fleet_of(1)
    fleet.follow_events(fleet.by_slot(0), BLOCK)
    dense = array("I", range(1000, 2920)).tobytes()
    fleet.known.learn(TokenisedText(text=TEXT, chain=HASHER.chain(KEY, TEXT), token_ids=dense))
    beginning = TEXT[:1280]
    booked(fleet, beginning)
    assert len(beginning) // 4 == 320
    assert hits(decided(fleet)) == [(320, False)]


def test_what_was_booked_beyond_the_known_part_is_estimated_once_all_that_is_known_is_there() -> None:
    fleet = following(1)
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 40), b"", cleared=False, now_s=0.0)
    longer = TEXT + b"and one question more, not learnt yet. " * 20
    booking = booked(fleet, longer)
    booking.first_byte(1.0)
    booking.end()
    assert hits(decided(fleet, longer, now_s=9.0)) == [(832, False)]
    fleet.residency_changed(fleet.by_slot(0), b"", blocks(35, 40), cleared=False, now_s=0.0)
    assert hits(decided(fleet, longer, now_s=9.0)) == [(560, True)]


def test_a_place_that_is_only_reckoned_is_hit_no_further_than_what_is_told() -> None:
    fleet = following(1)
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 10), b"", cleared=False, now_s=0.0)
    parted = TEXT[:1920] + b"something else entirely " * 20
    assert hits(decided(fleet, parted)) == [(160, False)]
    fleet.residency_changed(fleet.by_slot(0), blocks(10, 40), b"", cleared=False, now_s=0.0)
    assert hits(decided(fleet, parted)) == [(480, False)]


def test_decisions_say_of_every_candidate_how_its_hit_is_known() -> None:
    fleet = following(2)
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 40), b"", cleared=False, now_s=0.0)
    sample = decision_sample(RecentDecision(0.0, decided(fleet)), 0.0)
    assert {(c.instance, c.exact) for c in sample.candidates} == {("gpu-0", True), ("gpu-1", False)}


def test_a_shadow_decision_sees_the_same_hits() -> None:
    fleet = following(2)
    fleet.residency_changed(fleet.by_slot(0), blocks(0, 40), b"", cleared=False, now_s=0.0)
    chain = HASHER.chain(KEY, TEXT)
    request = Request("r", "m", len(TEXT) // 4)
    imagined = fleet.imagine(request, chain, Policy(), Random(0), 0.0, fleet.known.find(TEXT, chain))
    assert hits(imagined) == hits(decided(fleet))
