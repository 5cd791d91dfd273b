"""Asking for a simulation by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from controlplane.lab.models import Trace
from controlplane.lab.own_traffic import own_choice
from controlplane.lab.policy_choice import STORED
from controlplane.lab.simulation_settings import DEFAULT_REQUESTS
from controlplane.policies.models import Policy
from router.core.hardware_profiles import HARDWARE_PROFILES
from router.core.scorers import SCORERS
from router.sim.command import SWEEP_SHARES
from router.sim.metrics import Slo
from router.sim.scenario import Observation
from router.sim.traces.generator_profiles import GENERATORS

OWN_MINUTES = (5, 15, 60)
FIRST_CHOICE = ("multiplicative", "vllm", "linear", "least_request")
_SHARES = ", ".join(f"{share:.0%}" for share in SWEEP_SHARES)


class SimulationForm(forms.Form):
    """The settings of a simulation; the laboratory checks what they mean."""

    name = forms.CharField(max_length=200, required=False, label="Name", help_text="To find it again; may be empty")
    trace = forms.ChoiceField(label="Trace", help_text="Which requests are simulated; files are taken in below")
    scorers = forms.MultipleChoiceField(
        required=False,
        label="Rules, with their published defaults",
        help_text="Each is run on the same requests; P-token x BS is multiplicative",
        widget=forms.CheckboxSelectMultiple,
    )
    stored = forms.MultipleChoiceField(
        required=False,
        label="Policies of this fleet, as they are live",
        help_text="By their live revisions at this moment",
        widget=forms.CheckboxSelectMultiple,
    )
    more = forms.CharField(
        max_length=2000,
        required=False,
        label="More, with parameters",
        help_text="scorer:name=value, apart by commas: linear:L=0.5, multiplicative:b=0.5:hotspot=1",
    )
    fleet = forms.CharField(
        max_length=500,
        label="Fleet",
        help_text=f"hardware:count, apart by commas. There are {', '.join(HARDWARE_PROFILES)}",
    )
    requests = forms.IntegerField(label="Requests", help_text="Most of one run; the first ones of the trace")
    rate_scales = forms.CharField(
        max_length=100, label="Rates", help_text="Times the trace's own rate: 1, or several: 0.5, 1, 2"
    )
    sweep = forms.BooleanField(
        required=False,
        label="Sweep the rate",
        help_text=f"Find where each policy saturates, then run all at {_SHARES} of the best",
    )
    duration_s = forms.FloatField(required=False, label="Seconds to generate", help_text="Generators only")
    requests_per_s = forms.FloatField(required=False, label="Requests/s to generate", help_text="Generators only")
    spread = forms.BooleanField(
        required=False, label="Spread batches", help_text="For recordings whose clock is coarse, such as Mooncake's"
    )
    seed = forms.IntegerField(label="Seed", help_text="The same seed gives the same numbers")
    warmup = forms.FloatField(label="Warm-up", help_text="Share of the first requests that is not measured")
    slo_ttft_s = forms.FloatField(label="SLO: first token (s)", help_text="Requests within it count as goodput")
    slo_tpot_s = forms.FloatField(label="SLO: per output token (s)", help_text="Beside the first: both must be met")
    report_delay_s = forms.FloatField(label="Metrics known after (s)", help_text="How late the router sees engines")
    kv_event_delay_s = forms.FloatField(
        required=False, label="KV events known after (s)", help_text="Empty: engines publish none"
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        traces: Iterable[Trace],
        policies: Iterable[Policy],
        recording: bool,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=dict(initial or {}), label_suffix="")
        generated = [(name, f"{name} · {profile.source}") for name, profile in GENERATORS.items()]
        own = [(str(trace.pk), f"{trace.name} · {trace.statistics['requests']:,} requests") for trace in traces]
        recorded = [(own_choice(minutes), f"the last {minutes} minutes of this fleet") for minutes in OWN_MINUTES]
        groups = [("Generated", generated)]
        groups += [("Recorded by your routers", recorded)] if recording else []
        groups += [("Your traces", own)] if own else []
        _choices(self.fields["trace"], groups)
        _choices(self.fields["scorers"], [(name, name) for name in SCORERS])
        _choices(self.fields["stored"], [(f"{STORED}{policy.name}", policy.name) for policy in policies])
        for field in self.fields.values():
            if not isinstance(field, forms.BooleanField | forms.MultipleChoiceField):
                field.widget.attrs["class"] = "input"

    def settings(self) -> dict[str, Any]:
        """Return what is asked for; only after ``is_valid()``."""
        values = dict(self.cleaned_data)
        values.pop("name")
        more = [part.strip() for part in values.pop("more").split(",") if part.strip()]
        policies = [*values.pop("scorers"), *values.pop("stored"), *more]
        rates = [part.strip() for part in values.pop("rate_scales").split(",") if part.strip()]
        return {**values, "policies": policies, "rate_scales": [_number(rate) for rate in rates]}

    def add_faults(self, faults: Mapping[str, Iterable[str]]) -> None:
        """Show what a service found wrong, at the field where it is wrong."""
        for field, texts in faults.items():
            for text in texts:
                at = "more" if field == "policies" else field
                self.add_error(at if at in self.fields else None, text)


def first_settings(fleet: str | None) -> dict[str, Any]:
    """Return what a new form holds."""
    return {
        "trace": "chatbot",
        "scorers": list(FIRST_CHOICE),
        "fleet": fleet or "a100-80g:8",
        "requests": DEFAULT_REQUESTS,
        "rate_scales": "1",
        "seed": 0,
        "warmup": 0.1,
        "slo_ttft_s": Slo().ttft_s,
        "slo_tpot_s": Slo().tpot_s,
        "report_delay_s": Observation().report_delay_s,
    }


def settings_like(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a form holds that asks for the same again."""
    policies = settings["policies"]
    return {
        **settings,
        "name": name,
        "scorers": [choice for choice in policies if choice in SCORERS],
        "stored": [choice for choice in policies if choice.startswith(STORED) and "@" not in choice],
        "more": ", ".join(choice for choice in policies if choice not in SCORERS and not _is_live(choice)),
        "rate_scales": ", ".join(f"{rate:g}" for rate in settings["rate_scales"]),
    }


def _is_live(choice: str) -> bool:
    return choice.startswith(STORED) and "@" not in choice


def _number(text: str) -> float | str:
    """Return a number, or the text itself for the laboratory to refuse."""
    try:
        return float(text)
    except ValueError:
        return text


def _choices(field: forms.Field, choices: Any) -> None:
    assert isinstance(field, forms.ChoiceField)
    field.choices = choices
