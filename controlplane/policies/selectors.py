"""What reads rows of the policies app."""

from django.db.models import QuerySet

from controlplane.errors import NotFound
from controlplane.policies.content import parse
from controlplane.policies.models import Policy, PolicyRevision, ShadowHour, Workload
from router.core.policy import Policy as RoutingPolicy
from router.core.request import DEFAULT_WORKLOAD


def policies() -> QuerySet[Policy]:
    """Return all policies with their live revisions, by name."""
    return Policy.objects.select_related("live")


def live_policies() -> list[RoutingPolicy]:
    """Return what is live of every policy, by name, as routers use it."""
    revisions = ((policy.name, policy.live) for policy in policies().order_by("name"))
    return [parse(live.content, name=name, revision=live.number) for name, live in revisions if live is not None]


def policy_named(name: str) -> Policy:
    """Return a policy.

    :raises NotFound: when there is none of that name.
    """
    policy = policies().filter(name=name).first()
    if policy is None:
        raise NotFound(f"There is no policy named {name}.")
    return policy


def default_policy() -> Policy:
    """Return the policy that routes what no rule of a workload matches; there always is one."""
    return workload_named(DEFAULT_WORKLOAD).policy


def revisions(name: str) -> QuerySet[PolicyRevision]:
    """Return the revisions of a policy, newest first.

    :raises NotFound: when there is no such policy.
    """
    return policy_named(name).revisions.all()


def workloads() -> QuerySet[Workload]:
    """Return all workloads with their policies, in the order in which their rules are tried."""
    return Workload.objects.select_related("policy", "policy__live", "shadow_policy")


def workload_named(name: str) -> Workload:
    """Return a workload.

    :raises NotFound: when there is none of that name.
    """
    workload = workloads().filter(name=name).first()
    if workload is None:
        raise NotFound(f"There is no workload named {name}.")
    return workload


def shadow_hours(workload: str) -> QuerySet[ShadowHour]:
    """Return how often a workload's shadow policies would have gone elsewhere, newest hour first.

    :raises NotFound: when there is no such workload.
    """
    return ShadowHour.objects.filter(workload=workload_named(workload).name)
