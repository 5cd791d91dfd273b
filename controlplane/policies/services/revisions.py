"""Policies and their revisions: drafted, published, brought back. A revision is never changed; a new one is made."""

import re
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, Q
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.errors import Conflict, InUse, Invalid, NameTaken, NotFound, RevisionRequired, StaleRevision
from controlplane.policies.content import complete, parse
from controlplane.policies.defaults import DEFAULT_POLICY
from controlplane.policies.document import PolicyDocument
from controlplane.policies.models import Policy, PolicyRevision, Workload
from controlplane.publication import configuration_changed

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@transaction.atomic
def create_policy(
    *, actor: Actor, name: str, content: Mapping[str, Any], description: str = "", message: str = ""
) -> Policy:
    """Make a policy whose first revision is published at once.

    :raises Invalid: for a name or content that cannot be.
    :raises NameTaken: when a policy has the name.
    """
    check_name(name)
    parse(content, name=name, revision=1)
    try:
        with transaction.atomic():
            policy = Policy.objects.create(name=name, description=description)
    except IntegrityError as error:
        raise NameTaken(f"There is already a policy named {name}.") from error
    _publish(actor, policy, content, message or "First revision.", None)
    configuration_changed()
    return policy


@transaction.atomic
def save_draft(*, actor: Actor, name: str, content: Mapping[str, Any], expected: int | None = None) -> Policy:
    """Keep content as the draft of a policy; what routes traffic stays as it is.

    :param expected: number of the revision that the draft was begun from; the live one by default.
    :raises Invalid: for content that cannot be.
    """
    policy = _locked(name)
    parse(content, name=name, revision=1)
    base = expected if expected is not None else _live_number(policy)
    return _set_draft(actor, policy, dict(content), base)


@transaction.atomic
def discard_draft(*, actor: Actor, name: str) -> Policy:
    """Forget the draft of a policy."""
    return _set_draft(actor, _locked(name), None, None)


@transaction.atomic
def publish(
    *, actor: Actor, name: str, message: str, expected: int | None, content: Mapping[str, Any] | None = None
) -> PolicyRevision:
    """Publish the draft of a policy, or the content given, as its next revision.

    :param expected: number of the revision that the caller has seen as the live one.
    :raises RevisionRequired: without ``expected``.
    :raises StaleRevision: when the live one is another.
    :raises Conflict: when there is neither draft nor content.
    :raises Invalid: for content that cannot be, or a blank message.
    """
    policy = _locked(name)
    _check_expected(policy, expected)
    chosen = policy.draft if content is None else content
    if chosen is None:
        raise Conflict(f"Policy {name} has no draft to publish.")
    return _replace_live(actor, policy, chosen, message, None)


@transaction.atomic
def roll_back(*, actor: Actor, name: str, to: int, message: str, expected: int | None) -> PolicyRevision:
    """Publish the content of an earlier revision as the next one; raises as :func:`publish`."""
    policy = _locked(name)
    _check_expected(policy, expected)
    earlier = policy.revisions.filter(number=to).first()
    if earlier is None:
        raise NotFound(f"Policy {name} has no revision {to}.")
    return _replace_live(actor, policy, earlier.content, message, to)


@transaction.atomic
def bring_in(*, actor: Actor, document: PolicyDocument, message: str) -> tuple[Policy, bool]:
    """Make the policy of a document, or keep its content as the draft of the one there is; return it, and whether new.

    :raises Invalid: for a name or content that cannot be.
    """
    if Policy.objects.filter(name=document.name).exists():
        return save_draft(actor=actor, name=document.name, content=document.content), False
    made = create_policy(
        actor=actor,
        name=document.name,
        content=document.content,
        description=document.description,
        message=message,
    )
    return made, True


@transaction.atomic
def delete_policy(*, actor: Actor, name: str) -> None:
    """Delete a policy that no workload uses.

    :raises InUse: when one does, or it is the default one.
    """
    policy = _locked(name)
    users = sorted(Workload.objects.filter(Q(policy=policy) | Q(shadow_policy=policy)).values_list("name", flat=True))
    if users or name == DEFAULT_POLICY:
        why = f"workloads use it: {', '.join(users)}" if users else "it is the default one"
        raise InUse(f"Policy {name} cannot be deleted: {why}.", workloads=users)
    before = _describe(policy)
    policy.live = None
    policy.save(update_fields=["live"])
    policy.delete()
    record(actor=actor, action="policy.delete", target=("policy", policy.pk, name), before=before)
    configuration_changed()


def check_name(name: str) -> None:
    """Refuse a name that cannot be.

    :raises Invalid: saying what a name is.
    """
    if not _NAME.fullmatch(name):
        raise Invalid({"name": ["It must be 1 to 64 letters, digits or . _ - and begin with a letter or digit."]})


def _set_draft(actor: Actor, policy: Policy, draft: dict[str, Any] | None, base: int | None) -> Policy:
    before = policy.draft
    policy.draft, policy.draft_base = draft, base
    policy.draft_author = "" if draft is None else actor.label
    policy.draft_at = None if draft is None else timezone.now()
    policy.save()
    if draft != before:
        action = "policy.discard_draft" if draft is None else "policy.draft"
        record(actor=actor, action=action, target=("policy", policy.pk, policy.name), before=before, after=draft)
    return policy


def _replace_live(
    actor: Actor, policy: Policy, content: Mapping[str, Any], message: str, restores: int | None
) -> PolicyRevision:
    if not message.strip():
        raise Invalid({"message": ["Say why: it is what others will read in the history."]})
    revision = _publish(actor, policy, content, message.strip(), restores)
    configuration_changed()
    return revision


def _publish(
    actor: Actor, policy: Policy, content: Mapping[str, Any], message: str, restores: int | None
) -> PolicyRevision:
    last = policy.revisions.aggregate(last=Max("number"))["last"] or 0
    parse(content, name=policy.name, revision=last + 1)
    before = _describe(policy)
    policy.live = PolicyRevision.objects.create(
        policy=policy,
        number=last + 1,
        content=dict(content),
        message=message,
        author=actor.label,
        user_id=actor.user_id,
        restores=restores,
    )
    policy.draft = policy.draft_base = policy.draft_at = None
    policy.draft_author = ""
    policy.save()
    record(
        actor=actor,
        action="policy.rollback" if restores else "policy.publish" if last else "policy.create",
        target=("policy", policy.pk, policy.name),
        before=before,
        after=_describe(policy),
        message=message,
    )
    return policy.live


def _locked(name: str) -> Policy:
    policy = Policy.objects.select_for_update().filter(name=name).first()
    if policy is None:
        raise NotFound(f"There is no policy named {name}.")
    return policy


def _live_number(policy: Policy) -> int:
    return 0 if policy.live is None else policy.live.number


def _check_expected(policy: Policy, expected: int | None) -> None:
    live = _live_number(policy)
    if expected is None:
        raise RevisionRequired(f'Send If-Match: "{live}" with the revision that you have seen.', live=live)
    if expected != live:
        raise StaleRevision(f"The live revision of {policy.name} is {live}, not {expected}.", live=live)


def _describe(policy: Policy) -> dict[str, Any] | None:
    if policy.live is None:
        return None
    return {"revision": policy.live.number, **complete(policy.live.content)}
