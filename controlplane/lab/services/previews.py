"""Previews of a policy by simulation: the last minutes of recorded requests, as it is live and as it is edited."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from controlplane.accounts.actor import Actor
from controlplane.errors import Conflict, Invalid
from controlplane.lab.lifecycle import ACTIVE
from controlplane.lab.limits import limits
from controlplane.lab.models import Simulation
from controlplane.lab.own_traffic import MOST_MINUTES, own_choice, own_recording
from controlplane.lab.selectors import routable_members
from controlplane.lab.services.simulations import cancel_simulation, queue
from controlplane.lab.simulation_settings import SimulationSettings
from controlplane.policies.content import parse
from controlplane.policies.selectors import policy_named

EDITED = "edited"
"""What the edited content is called beside the live revision."""
MOST_REQUESTS = 3_000
WARMUP = 0.2
"""Caches begin with what recorded requests found in them, which is not all: the first requests are not measured."""


@transaction.atomic
def preview_policy(*, actor: Actor, name: str, content: Mapping[str, Any], minutes: int) -> Simulation:
    """Ask for a preview; one that the same author still waits for of this policy is cancelled.

    :raises NotFound: when there is no such policy.
    :raises Invalid: for content that cannot be, or minutes out of range.
    :raises Conflict: when nothing is recorded, no instance takes requests, or too much is queued.
    """
    policy = policy_named(name)
    parse(content, name=name, revision=1)
    if not 1 <= minutes <= MOST_MINUTES:
        raise Invalid({"minutes": [f"It must be from 1 to {MOST_MINUTES}."]})
    if policy.live is None:
        raise Conflict(f"Policy {name} has nothing live to compare with.")
    if own_recording() is None:
        raise Conflict("No router worker records its requests: start with --record, or set POINTSMAN_RECORD.")
    if not routable_members():
        raise Conflict("No instance takes requests at present.")
    for waiting in Simulation.objects.filter(preview_of=name, author=actor.label, state__in=ACTIVE):
        cancel_simulation(actor=actor, simulation_id=waiting.pk)
    live = f"{name}@{policy.live.number}"
    wanted = SimulationSettings(
        trace=own_choice(minutes),
        policies=(f"policy:{live}", EDITED),
        as_registered=True,
        requests=min(MOST_REQUESTS, limits().requests),
        warmup=WARMUP,
    )
    contents = {live: policy.live.content, EDITED: content}
    return queue(actor=actor, wanted=wanted, contents=contents, name=f"Preview of {name}", preview_of=name)
