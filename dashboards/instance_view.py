"""An instance as the pages show it: its row, and what router workers say of it now."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from controlplane.fleet.lifecycle import Event, possible
from controlplane.fleet.models import Instance
from controlplane.telemetry.frame import InstanceRow


class InstanceLine(msgspec.Struct, frozen=True):
    """One line of the list. ``live`` is None while no worker knows the instance."""

    instance: Instance
    live: InstanceRow | None
    shown_state: str


class Action(msgspec.Struct, frozen=True):
    """Something that can be done to an instance; ``possible`` in its present state."""

    key: str
    label: str
    help: str
    possible: bool


ACTIONS = (
    ("drain", Event.DRAIN, "Drain", "Takes no new requests; finishes those it has"),
    ("undrain", Event.UNDRAIN, "Bring back", "Back into rotation once a probe passes"),
    ("maintenance", Event.MAINTAIN, "Maintenance", "Out of rotation at once"),
)


def lines(instances: Iterable[Instance], live: Mapping[str, InstanceRow]) -> Iterator[InstanceLine]:
    """Pair rows with what workers say."""
    for instance in instances:
        row = live.get(str(instance.pk))
        yield InstanceLine(instance, row, shown_state(instance, row))


def shown_state(instance: Instance, live: InstanceRow | None) -> str:
    """Return the state in one word: what routers did to it (``ejected``) goes before what it should be."""
    return "ejected" if live is not None and live.ejected and not live.stale else instance.state


def actions(instance: Instance) -> tuple[Action, ...]:
    """Return what can be done; what would change nothing is not offered."""
    return tuple(
        Action(key, label, text, possible(instance.life, event) and _changes(instance, key))
        for key, event, label, text in ACTIONS
    )


def _changes(instance: Instance, key: str) -> bool:
    out = {"draining", "drained", "maintenance"}
    if key == "undrain":
        return instance.state in out
    return instance.state != "maintenance" if key == "maintenance" else instance.state not in out
