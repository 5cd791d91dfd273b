"""Workloads: made, changed, deleted. The default one always exists."""

from collections.abc import Mapping
from typing import Any

import msgspec
from django.db import IntegrityError, transaction

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.errors import InUse, Invalid, NameTaken, NotFound
from controlplane.policies.match import parse_match
from controlplane.policies.models import Policy, Workload
from controlplane.policies.services.revisions import check_name
from controlplane.publication import configuration_changed
from router.core.request import PRELOAD_WORKLOAD
from router.core.workload_match import WorkloadMatch

_MOST_CONCURRENT = 2**31 - 1


@transaction.atomic
def create_workload(*, actor: Actor, name: str, policy: str, **settings: Any) -> Workload:
    """Make a workload; ``settings`` are those of :func:`change_workload`.

    :raises Invalid: for a name, match or limit that cannot be, or a policy that does not exist.
    :raises NameTaken: when a workload has the name.
    """
    check_name(name)
    if name == PRELOAD_WORKLOAD:
        raise Invalid({"name": [f"{name} is the name that preloads are counted under; choose another."]})
    workload = Workload(name=name)
    _take_over(workload, {"policy": policy, **settings})
    try:
        with transaction.atomic():
            workload.save(force_insert=True)
    except IntegrityError as error:
        raise NameTaken(f"There is already a workload named {name}.") from error
    record(actor=actor, action="workload.create", target=("workload", workload.pk, name), after=_describe(workload))
    configuration_changed()
    return workload


@transaction.atomic
def change_workload(*, actor: Actor, name: str, **changes: Any) -> Workload:
    """Change a workload.

    ``changes`` may name ``policy`` and ``shadow_policy`` (by name; None ends the shadow), ``match``, ``description``,
    ``position`` and ``concurrent`` (None is no limit).

    :raises Invalid: for a match or a limit that cannot be, or a policy that does not exist.
    """
    workload = _locked(name)
    before = _describe(workload)
    _take_over(workload, changes)
    after = _describe(workload)
    if after != before:
        workload.save()
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


def _take_over(workload: Workload, settings: Mapping[str, Any]) -> None:
    for field, value in settings.items():
        if field == "policy":
            workload.policy = _policy(value, field)
        elif field == "shadow_policy":
            workload.shadow_policy = None if value is None else _policy(value, field)
        elif field == "match":
            workload.match = msgspec.to_builtins(_match(workload, value))
        elif field == "concurrent":
            workload.concurrent = _limit(value)
        else:
            setattr(workload, field, value)


def _match(workload: Workload, value: Mapping[str, Any]) -> WorkloadMatch:
    match = parse_match(value)
    if workload.is_default and not match.is_empty:
        raise Invalid({"match": ["The default workload is what no rule matches; it has none of its own."]})
    return match


def _limit(value: int | None) -> int | None:
    if value is not None and not 1 <= value <= _MOST_CONCURRENT:
        raise Invalid({"concurrent": [f"It must be 1 to {_MOST_CONCURRENT}; none is no limit."]})
    return value


def _locked(name: str) -> Workload:
    workload = (
        Workload.objects.select_for_update(of=("self",))
        .select_related("policy", "shadow_policy")
        .filter(name=name)
        .first()
    )
    if workload is None:
        raise NotFound(f"There is no workload named {name}.")
    return workload


def _policy(name: str, field: str) -> Policy:
    policy = Policy.objects.filter(name=name).first()
    if policy is None:
        raise Invalid({field: [f"There is no policy named {name}."]})
    return policy


def _describe(workload: Workload) -> dict[str, Any]:
    return {
        "name": workload.name,
        "description": workload.description,
        "position": workload.position,
        "match": workload.match,
        "policy": workload.policy.name,
        "shadow_policy": None if workload.shadow_policy is None else workload.shadow_policy.name,
        "concurrent": workload.concurrent,
    }
