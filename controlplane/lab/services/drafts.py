"""From a result to a policy: what was simulated becomes the draft of a stored policy."""

from uuid import UUID

from django.db import transaction

from controlplane.accounts.actor import Actor
from controlplane.errors import NotFound
from controlplane.lab.selectors import simulation as find
from controlplane.policies.models import Policy
from controlplane.policies.services import revisions


@transaction.atomic
def draft_policy(*, actor: Actor, simulation_id: UUID | str, label: str, name: str) -> tuple[Policy, bool]:
    """Keep what was simulated as the draft of a policy, or make the policy where there is none of that name.

    A policy that is made is published at once, but routes nothing until a workload uses it.

    :param label: of the policy in the simulation.
    :returns: the policy, and whether it was made.
    :raises NotFound: when the simulation had no such policy.
    :raises Invalid: for a name or content that cannot be.
    """
    simulation = find(simulation_id)
    content = simulation.contents.get(label)
    if content is None:
        raise NotFound(f"The simulation had no policy {label}.")
    if Policy.objects.filter(name=name).exists():
        return revisions.save_draft(actor=actor, name=name, content=content), False
    message = f"From a simulation on {simulation.trace_name}: {label}."
    return revisions.create_policy(actor=actor, name=name, content=content, message=message), True
