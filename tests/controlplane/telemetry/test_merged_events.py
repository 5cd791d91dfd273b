"""What several workers know of one instance's events: none of them is made to look better than the weakest."""

from controlplane.telemetry.merged_events import merge_events
from router.snapshot import EventsSample, Residency

EXACT = EventsSample(residency=Residency.EVENTS, connected=True, lag_s=0.01, blocks=10, checked=64, check_wrong_share=0)
DOWN = EventsSample(reason="the connection is down", connected=False, lag_s=3.0, blocks=8, losses=1, last_loss="a gap")


def test_one_that_estimates_makes_it_an_estimate_with_its_reason() -> None:
    both = merge_events([EXACT, DOWN])
    assert (both.residency, both.reason, both.connected) == (Residency.ESTIMATED, "the connection is down", False)
    assert (both.lag_s, both.blocks, both.losses, both.last_loss) == (3.0, 8, 1, "a gap")
    assert (both.checked, both.check_wrong_share, both.check_error_blocks) == (64, 0, None)


def test_all_that_are_exact_are_exact_together() -> None:
    assert merge_events([EXACT, EXACT]).residency is Residency.EVENTS


def test_without_events_nothing_is_said_of_them() -> None:
    none = merge_events([EventsSample(reason="it publishes none")] * 2)
    assert (none.connected, none.lag_s, none.blocks) == (None, None, None)
