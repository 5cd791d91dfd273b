"""Policies: drafts apart from what is live, immutable revisions, conflicts, going back."""

import pytest

from controlplane.accounts.models import AuditEntry
from controlplane.bridge.publisher import current
from controlplane.errors import Conflict, InUse, Invalid, NameTaken, NotFound, RevisionRequired, StaleRevision
from controlplane.policies.content import complete, field_names
from controlplane.policies.models import Policy, Workload
from controlplane.policies.services import revisions, workloads
from router.config import parse_config
from tests.controlplane.conftest import ACTOR

pytestmark = pytest.mark.django_db


def live(name: str) -> Policy:
    return Policy.objects.select_related("live").get(name=name)


def test_the_defaults_exist_from_the_start() -> None:
    assert set(Policy.objects.values_list("name", flat=True)) >= {"default", "round_robin", "random", "least_request"}
    assert Workload.objects.get(name="default").policy.name == "default"
    content = complete(live("default").live.content)
    assert (content["scorer"], content["a"], content["b"], content["c"]) == ("multiplicative", 1.0, 1.0, None)


def test_a_draft_changes_nothing_that_is_live() -> None:
    before = current()[0]
    revisions.save_draft(actor=ACTOR, name="default", content={"a": 2.0})
    assert current()[0] == before
    policy = live("default")
    assert (policy.draft, policy.draft_base, policy.draft_author) == ({"a": 2.0}, 1, "tester")
    revisions.discard_draft(actor=ACTOR, name="default")
    assert live("default").draft is None
    noted = AuditEntry.objects.order_by("id").values_list("action", "before", "after")
    assert list(noted) == [("policy.draft", None, {"a": 2.0}), ("policy.discard_draft", {"a": 2.0}, None)]


def test_publishing_a_draft_makes_a_revision_that_routers_get() -> None:
    revisions.save_draft(actor=ACTOR, name="default", content={"a": 2.0})
    revision = revisions.publish(actor=ACTOR, name="default", message="Heavier prefill.", expected=1)
    assert (revision.number, revision.author, revision.message) == (2, "tester", "Heavier prefill.")
    document = parse_config(current()[1])
    (policy,) = (p for p in document.policies if p.name == "default")
    assert (policy.a, policy.revision) == (2.0, 2)
    assert live("default").draft is None


def test_publishing_needs_the_revision_that_was_seen() -> None:
    with pytest.raises(RevisionRequired):
        revisions.publish(actor=ACTOR, name="default", message="x", expected=None, content={})
    revisions.publish(actor=ACTOR, name="default", message="x", expected=1, content={"b": 2})
    with pytest.raises(StaleRevision, match="is 2, not 1"):
        revisions.publish(actor=ACTOR, name="default", message="x", expected=1, content={"b": 3})


def test_there_must_be_something_to_publish_and_a_reason() -> None:
    with pytest.raises(Conflict, match="no draft"):
        revisions.publish(actor=ACTOR, name="default", message="x", expected=1)
    with pytest.raises(Invalid, match="message"):
        revisions.publish(actor=ACTOR, name="default", message=" ", expected=1, content={})


def test_going_back_is_a_new_revision_with_the_old_content() -> None:
    revisions.publish(actor=ACTOR, name="default", message="x", expected=1, content={"a": 3})
    back = revisions.roll_back(actor=ACTOR, name="default", to=1, message="Worse.", expected=2)
    assert (back.number, back.restores, back.content) == (3, 1, {})
    with pytest.raises(NotFound):
        revisions.roll_back(actor=ACTOR, name="default", to=9, message="x", expected=3)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"a": -1}, "a"),
        ({"a": "much"}, "a"),
        ({"alpha": 1}, "alpha"),
        ({"scorer": "magic"}, "scorer"),
        ({"params": {"magic": 1}}, "params"),
        ({"hotspot": {"factor": -3}}, "hotspot"),
        ({"normalize_hardware": 1}, "normalize_hardware"),
        ({"name": "x"}, "name"),
        ({"revision": 7}, "revision"),
        ({"a": None}, "a"),
    ],
)
def test_content_that_cannot_be_is_refused_by_field(content: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        revisions.publish(actor=ACTOR, name="default", message="x", expected=1, content=content)
    assert field in caught.value.fields
    assert live("default").live.number == 1


def test_every_field_of_the_router_is_a_field_of_the_policy() -> None:
    assert {"scorer", "a", "b", "c", "normalize_hardware", "params"} <= set(field_names())
    assert set(complete({})) == set(field_names())


def test_names_are_unique_and_plain() -> None:
    revisions.create_policy(actor=ACTOR, name="chat", content={"a": 2})
    with pytest.raises(NameTaken):
        revisions.create_policy(actor=ACTOR, name="chat", content={})
    with pytest.raises(Invalid, match="name"):
        revisions.create_policy(actor=ACTOR, name="a b", content={})


def test_a_policy_in_use_is_not_deleted() -> None:
    revisions.create_policy(actor=ACTOR, name="chat", content={"a": 2})
    workloads.create_workload(actor=ACTOR, name="chat", policy="chat")
    with pytest.raises(InUse, match="chat"):
        revisions.delete_policy(actor=ACTOR, name="chat")
    workloads.delete_workload(actor=ACTOR, name="chat")
    revisions.delete_policy(actor=ACTOR, name="chat")
    with pytest.raises(InUse):
        revisions.delete_policy(actor=ACTOR, name="default")
    assert not Policy.objects.filter(name="chat").exists()


def test_every_change_is_audited_with_before_and_after() -> None:
    revisions.publish(actor=ACTOR, name="default", message="Heavier.", expected=1, content={"a": 2})
    entry = AuditEntry.objects.first()
    assert entry is not None
    assert (entry.action, entry.message) == ("policy.publish", "Heavier.")
    assert (entry.before["a"], entry.after["a"]) == (1.0, 2.0)


def test_the_default_workload_stays_and_workloads_need_a_policy() -> None:
    with pytest.raises(InUse):
        workloads.delete_workload(actor=ACTOR, name="default")
    with pytest.raises(Invalid, match="no policy named"):
        workloads.create_workload(actor=ACTOR, name="chat", policy="missing")
    changed = workloads.change_workload(actor=ACTOR, name="default", policy="round_robin")
    assert changed.policy.name == "round_robin"
    document = parse_config(current()[1])
    assert {w.name: w.policy for w in document.workloads} == {"default": "round_robin"}
