"""A policy's preview, from the live telemetry of this process and the rows of the fleet."""

from collections.abc import Mapping

import msgspec

from controlplane.fleet.selectors import living
from controlplane.previews.fleet_now import FleetPreview, rank
from controlplane.previews.replay import ReplayPreview, replay
from controlplane.telemetry.hub import hub
from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import HARDWARE_PROFILES
from router.core.policy import Policy
from router.snapshot import DecisionSample

MOST_SAMPLES = 1_000


class PolicyPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy would do."""

    now: FleetPreview
    recent: ReplayPreview


def preview(policy: Policy, prompt_tokens: int) -> PolicyPreview:
    """Ask what a policy would do with one request now, and would have done with the recent ones that it routed."""
    hardware = _hardware()
    rows = hub().newest_frame().instances
    return PolicyPreview(
        now=rank(rows, policy, prompt_tokens, hardware),
        recent=replay(_recent(policy.name), policy, hardware),
    )


def _recent(policy_name: str) -> list[DecisionSample]:
    """Return recorded decisions of this policy; of all policies while it has routed nothing yet."""
    samples = hub().decisions.recent(MOST_SAMPLES)
    own = [sample for sample in samples if sample.policy.rpartition("@")[0] == policy_name]
    return own or list(samples)


def _hardware() -> Mapping[str, HardwareProfile]:
    named = living().exclude(hardware="").values_list("name", "hardware")
    return {name: HARDWARE_PROFILES[profile] for name, profile in named if profile in HARDWARE_PROFILES}
