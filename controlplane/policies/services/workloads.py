"""Workloads: made, changed, deleted. The default one always exists."""

from typing import Any

from django.db import IntegrityError, transaction

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.errors import InUse, Invalid, NameTaken, NotFound
from controlplane.policies.models import Policy, Workload
from controlplane.policies.services.revisions import check_name
from controlplane.publication import configuration_changed


@transaction.atomic
def create_workload(*, actor: Actor, name: str, policy: str, description: str = "", position: int = 100) -> Workload:
    """Make a workload.

    :raises Invalid: for a name that cannot be, or a policy that does not exist.
    :raises NameTaken: when a workload has the name.
    """
    check_name(name)
    try:
        with transaction.atomic():
            workload = Workload.objects.create(
                name=name, policy=_policy(policy), description=description, position=position
            )
    except IntegrityError as error:
        raise NameTaken(f"There is already a workload named {name}.") from error
    record(actor=actor, action="workload.create", target=("workload", workload.pk, name), after=_describe(workload))
    configuration_changed()
    return workload


@transaction.atomic
def change_workload(*, actor: Actor, name: str, **changes: Any) -> Workload:
    """Change a workload; ``changes`` may name ``policy``, ``description`` and ``position``.

    :raises Invalid: for a policy that does not exist.
    """
    workload = _locked(name)
    before = _describe(workload)
    if "policy" in changes:
        workload.policy = _policy(changes.pop("policy"))
    for field, value in changes.items():
        setattr(workload, field, value)
    workload.save()
    after = _describe(workload)
    if after != before:
        target = ("workload", workload.pk, name)
        record(actor=actor, action="workload.change", target=target, before=before, after=after)
        configuration_changed()
    return workload


@transaction.atomic
def delete_workload(*, actor: Actor, name: str) -> None:
    """Delete a workload; what it matched goes to the next rule.

    :raises InUse: for the default one.
    """
    workload = _locked(name)
    if workload.is_default:
        raise InUse("The default workload cannot be deleted: it is where everything else goes.")
    target = ("workload", workload.pk, name)
    before = _describe(workload)
    workload.delete()
    record(actor=actor, action="workload.delete", target=target, before=before)
    configuration_changed()


def _locked(name: str) -> Workload:
    workload = Workload.objects.select_for_update(of=("self",)).select_related("policy").filter(name=name).first()
    if workload is None:
        raise NotFound(f"There is no workload named {name}.")
    return workload


def _policy(name: str) -> Policy:
    policy = Policy.objects.filter(name=name).first()
    if policy is None:
        raise Invalid({"policy": [f"There is no policy named {name}."]})
    return policy


def _describe(workload: Workload) -> dict[str, Any]:
    return {
        "name": workload.name,
        "description": workload.description,
        "position": workload.position,
        "match": workload.match,
        "policy": workload.policy.name,
    }
