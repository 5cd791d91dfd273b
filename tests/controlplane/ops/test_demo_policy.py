"""The demo shows what the product does; the product's own default stays plain."""

import pytest

from controlplane.accounts.actor import SYSTEM
from controlplane.ops.demo_policy import NAME, ensure_demo_policy
from controlplane.policies.content import parse
from controlplane.policies.models import Policy, Workload
from controlplane.policies.services.workloads import change_workload

pytestmark = pytest.mark.django_db


def test_the_default_workload_is_protected_in_the_demo_alone() -> None:
    plain = Policy.objects.select_related("live").get(name="default").live
    assert plain is not None
    assert plain.content == {}
    ensure_demo_policy()
    policy = Workload.objects.select_related("policy__live").get(name="default").policy
    assert policy.name == NAME
    assert policy.live is not None
    found = parse(policy.live.content, name=NAME, revision=1)
    assert found.hotspot is not None
    assert found.cold_start is not None


def test_what_people_change_stays_changed() -> None:
    ensure_demo_policy()
    change_workload(actor=SYSTEM, name="default", policy="default")
    ensure_demo_policy()
    assert Workload.objects.get(name="default").policy.name == "default"
