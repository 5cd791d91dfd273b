"""What exists from the start: the default policy and workload, and the plain baselines to compare with.

Made after every migration where missing; never changed afterwards.
"""

from typing import Any

from django.apps import AppConfig
from django.db import transaction

from controlplane.policies.models import Policy, PolicyRevision, Workload
from router.core.request import DEFAULT_WORKLOAD
from router.core.scorers import SCORERS

DEFAULT_POLICY = "default"
_BASELINES = ("round_robin", "random", "least_request")
_AUTHOR = "system"


def ensure_defaults(sender: AppConfig | None = None, using: str = "default", **_: Any) -> None:
    """Make what is missing (receiver of ``post_migrate``)."""
    if using != "default":
        return
    with transaction.atomic():
        _ensure_policy(DEFAULT_POLICY, "P-token x BS, the plain product: every optional term is off.", {})
        for name in _BASELINES:
            _ensure_policy(name, f"A baseline to compare with: {SCORERS[name].meaning}.", {"scorer": name})
        if not Workload.objects.filter(name=DEFAULT_WORKLOAD).exists():
            Workload.objects.create(
                name=DEFAULT_WORKLOAD,
                description="Everything that no other workload matches.",
                position=2**31 - 1,
                policy=Policy.objects.get(name=DEFAULT_POLICY),
            )


def _ensure_policy(name: str, description: str, content: dict[str, Any]) -> None:
    if Policy.objects.filter(name=name).exists():
        return
    policy = Policy.objects.create(name=name, description=description)
    policy.live = PolicyRevision.objects.create(
        policy=policy, number=1, content=content, author=_AUTHOR, message="Made with the database."
    )
    policy.save(update_fields=["live"])
