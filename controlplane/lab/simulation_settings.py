"""What one asks of a simulation: plain values, checked against types, ranges and limits."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import msgspec

from controlplane.errors import Invalid
from controlplane.lab.limits import MOST_INSTANCES, MOST_POLICIES, MOST_RATES, MOST_RUNS, Limits
from controlplane.plain_words import in_plain_words
from router.sim.command import SWEEP_SHARES
from router.sim.errors import ScenarioError
from router.sim.metrics import Slo
from router.sim.scenario import Observation, fleet_of

DEFAULT_REQUESTS = 2_000
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e6)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]


class SimulationSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One comparison.

    :param trace: name of a generator, id of a trace that was taken in, or ``own:MINUTES``: what the router workers
        recorded lately.
    :param policies: ``scorer[:name=value]...`` each, or ``policy:NAME[@REVISION]`` for a stored policy.
    :param fleet: ``PROFILE:COUNT,...``.
    :param as_registered: the instances that take requests now, by their names, instead of ``fleet``.
    :param requests: most requests of one run; of own traffic the newest, else the first.
    :param rate_scales: rates, as multiples of the trace's own, at which every policy is run.
    :param sweep: find the saturation of every policy instead, and run at shares of the best one.
    :param duration_s: seconds to generate; only for generators, as is ``requests_per_s``.
    """

    trace: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    policies: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=MOST_POLICIES)]
    fleet: Annotated[str, msgspec.Meta(min_length=1, max_length=500)] = "a100-80g:8"
    as_registered: bool = False
    requests: Annotated[int, msgspec.Meta(ge=10)] = DEFAULT_REQUESTS
    rate_scales: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1, max_length=MOST_RATES)] = (1.0,)
    sweep: bool = False
    spread: bool = False
    duration_s: Positive | None = None
    requests_per_s: Positive | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**32)] = 0
    warmup: Annotated[float, msgspec.Meta(ge=0, le=0.9)] = 0.1
    slo_ttft_s: Positive = Slo().ttft_s
    slo_tpot_s: Positive = Slo().tpot_s
    report_delay_s: Seconds = Observation().report_delay_s
    kv_event_delay_s: Seconds | None = None


def parse_settings(values: Mapping[str, Any], limits: Limits) -> SimulationSettings:
    """Return checked settings.

    :raises Invalid: naming every field that is at fault.
    """
    types = {field.name: field.type for field in msgspec.structs.fields(SimulationSettings)}
    faults: dict[str, list[str]] = {name: ["There is no such field."] for name in values if name not in types}
    required = [field.name for field in msgspec.structs.fields(SimulationSettings) if field.required]
    faults |= {name: ["It is required."] for name in required if name not in values}
    for name, value in values.items():
        if name in types:
            _note(faults, name, partial(msgspec.convert, value, type=types[name]))
    if faults:
        raise Invalid(faults)
    fitting = {"requests": min(DEFAULT_REQUESTS, limits.requests)}
    settings = msgspec.convert(fitting | dict(values), type=SimulationSettings)
    _check_limits(settings, limits)
    return settings


def _check_limits(settings: SimulationSettings, limits: Limits) -> None:
    faults: dict[str, list[str]] = {}
    if settings.requests > limits.requests:
        faults["requests"] = [f"At most {limits.requests} here (POINTSMAN_LAB_REQUESTS)."]
    rates = len(SWEEP_SHARES) if settings.sweep else len(settings.rate_scales)
    if rates * len(settings.policies) > MOST_RUNS:
        faults["policies"] = [f"{len(settings.policies)} policies at {rates} rates are more than {MOST_RUNS} runs."]
    if len(set(settings.rate_scales)) < len(settings.rate_scales):
        faults["rate_scales"] = ["One is named twice."]
    _note(faults, "fleet", lambda: _check_fleet(settings.fleet))
    if faults:
        raise Invalid(faults)


def _check_fleet(fleet: str) -> None:
    instances = len(fleet_of(fleet, 1)) if _counts(fleet) <= MOST_INSTANCES else MOST_INSTANCES + 1
    if instances > MOST_INSTANCES:
        raise ScenarioError(f"At most {MOST_INSTANCES} instances.")


def _counts(fleet: str) -> int:
    """Add up the counts that are numbers, before anything of that size is made."""
    counts = (part.partition(":")[2].strip() for part in fleet.split(","))
    return sum(int(count) for count in counts if count.isdecimal())


def _note(faults: dict[str, list[str]], name: str, check: Callable[[], object]) -> None:
    try:
        check()
    except msgspec.ValidationError as error:
        faults[name] = [in_plain_words(error)]
    except ScenarioError as error:
        faults[name] = [str(error)]
