"""Registering an instance by hand."""

from collections.abc import Mapping
from typing import Any

from django import forms

from controlplane.fleet.models import InstanceRole
from controlplane.fleet.spec import InstanceSpec
from router.config import MOST_RANKS, EventDirection, KvEventsConfig
from router.core.hardware_profiles import HARDWARE_PROFILES


class InstanceForm(forms.Form):
    """The settings of a new instance; what is left empty is found by the probe."""

    name = forms.CharField(max_length=100, help_text="Letters, digits and . _ : -", label="Name")
    url = forms.CharField(max_length=500, label="URL", help_text="Where the engine listens: http://10.0.0.7:8000")
    hardware = forms.ChoiceField(
        required=False, label="Hardware", help_text="Only read by policies that normalise for unequal hardware"
    )
    role = forms.ChoiceField(
        choices=InstanceRole.choices,
        initial=InstanceRole.BOTH,
        label="Role",
        help_text="Kept for your own tools: routing does not read it",
    )
    models = forms.CharField(
        required=False, label="Models", help_text="Apart by commas; empty: as the engine says of itself"
    )
    spot = forms.BooleanField(
        required=False, label="Spot instance", help_text="May be preempted at short notice; policies can use it less"
    )
    kv_events = forms.CharField(
        required=False,
        max_length=300,
        label="KV events",
        help_text="tcp://host:port, only for engines that do not tell it themselves (vLLM before 0.32)",
    )
    kv_replay = forms.CharField(
        required=False, max_length=300, label="KV event replay", help_text="Where missed events can be asked for"
    )
    kv_bind = forms.BooleanField(
        required=False,
        label="The engine connects to the KV event endpoint",
        help_text="Then the endpoint is an address of the routers' own, as in tcp://*:5557",
    )
    data_parallel_ranks = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_RANKS,
        label="Data-parallel ranks",
        help_text="Ranks behind the address, each routed to by itself as NAME#0, NAME#1, ...; empty: the probe counts "
        "them, 1: one engine, whatever it says",
    )

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, label_suffix="")
        hardware = self.fields["hardware"]
        assert isinstance(hardware, forms.ChoiceField)
        hardware.choices = [("", "not known"), *((name, name) for name in sorted(HARDWARE_PROFILES))]

    def spec(self) -> InstanceSpec:
        """Return the wanted settings; only after ``is_valid()``."""
        values = self.cleaned_data
        models = tuple(part.strip() for part in values["models"].split(",") if part.strip())
        return InstanceSpec(
            name=values["name"],
            url=values["url"],
            role=InstanceRole(values["role"]),
            hardware=values["hardware"],
            models=models or None,
            spot=values["spot"],
            kv_events=_kv_events(values),
            data_parallel_ranks=values["data_parallel_ranks"],
        )

    def add_faults(self, faults: dict[str, list[str]]) -> None:
        """Show what a service found wrong, at the field where it is wrong."""
        for field, texts in faults.items():
            for text in texts:
                self.add_error(field if field in self.fields else None, text)


def _kv_events(values: Mapping[str, Any]) -> KvEventsConfig | None:
    if not values["kv_events"]:
        return None
    direction = EventDirection.BIND if values["kv_bind"] else EventDirection.CONNECT
    return KvEventsConfig(endpoint=values["kv_events"], replay=values["kv_replay"] or None, direction=direction)
