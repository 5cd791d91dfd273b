"""The demo's policy: what the product does beyond the plain product, switched on."""

from controlplane.accounts.actor import SYSTEM
from controlplane.policies.models import Policy
from controlplane.policies.presets import PRESETS
from controlplane.policies.services.revisions import create_policy
from controlplane.policies.services.workloads import change_workload
from router.core.request import DEFAULT_WORKLOAD

NAME = "demo"
PRESET = "protected"


def ensure_demo_policy() -> None:
    """Route the default workload by a policy with every protection; once: what people change later stays changed."""
    if Policy.objects.filter(name=NAME).exists():
        return
    content = next(preset.content for preset in PRESETS if preset.name == PRESET)
    create_policy(
        actor=SYSTEM,
        name=NAME,
        content=content,
        description="The demo's: hot prefixes are spread, new instances start gently.",
        message="Made for the demo.",
    )
    change_workload(actor=SYSTEM, name=DEFAULT_WORKLOAD, policy=NAME)
