"""Where one request would go on the fleet of this moment, under some policy. Pure."""

from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from controlplane.telemetry.frame import InstanceRow
from router.core.decide import decide
from router.core.errors import InvalidPolicy, ScorerFault
from router.core.hardware import HardwareProfile
from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.request import Request


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """One instance: its factors and score, or why it is out."""

    instance: str
    p_token: int
    bs: int
    score: float | None
    filtered: str | None


class FleetPreview(msgspec.Struct, frozen=True, kw_only=True):
    """Every instance for one request; ``fault`` says why the policy cannot score this fleet."""

    chosen: str | None
    candidates: tuple[Ranked, ...]
    fault: str | None = None


def rank(
    rows: Sequence[InstanceRow], policy: Policy, prompt_tokens: int, hardware: Mapping[str, HardwareProfile]
) -> FleetPreview:
    """Decide a request of ``prompt_tokens`` tokens that no instance holds anything of."""
    views = [_view(slot, row, hardware) for slot, row in enumerate(rows)]
    request = Request("preview", "", prompt_tokens)
    try:
        decision = decide(request, views, [0] * len(views), policy, Random(0))
    except (InvalidPolicy, ScorerFault) as error:
        return FleetPreview(chosen=None, candidates=(), fault=str(error))
    scored = sorted(zip(decision.scores, decision.candidates, strict=True), key=lambda pair: pair[0])
    racing = [(candidate, float(score), None) for score, candidate in scored]
    out = [(candidate, None, reason) for candidate, reason in decision.rejected]
    return FleetPreview(
        chosen=None if decision.chosen is None else decision.chosen.view.name,
        candidates=tuple(
            Ranked(instance=c.view.name, p_token=c.p_token, bs=c.bs, score=score, filtered=reason)
            for c, score, reason in [*racing, *out]
        ),
    )


def _view(slot: int, row: InstanceRow, hardware: Mapping[str, HardwareProfile]) -> InstanceView:
    return InstanceView(
        slot=slot,
        name=row.name,
        state=row.state,
        bs=row.bs,
        running=row.running,
        waiting=row.waiting,
        queued_prefill_tokens=row.queued_prefill_tokens,
        kv_use=row.kv_use,
        hardware=hardware.get(row.name),
        ejected=row.ejected,
    )
