"""The metrics of KV events and of pushed load, by instance; series go with the instance, or with its events."""

from collections.abc import Callable, Iterator

from router.proxy.plane import Plane
from router.proxy.text_format import Sample, TextFormat
from router.snapshot import EventsSample, Residency


def expose_events(plane: Plane, text: TextFormat, label: str) -> None:
    """Write them; ``label`` is that of an instance's name."""
    events = plane.events
    samples = [
        (i.config.name, EventsSample() if events is None else events.sample(plane.links[i.slot])) for i in plane.fleet
    ]

    def each(value: Callable[[EventsSample], float | None], followed: bool = True) -> Iterator[Sample]:
        for name, sample in samples:
            number = None if followed and sample.connected is None else value(sample)
            if number is not None:
                yield {label: name}, number

    text.gauge(
        "pointsman_instance_exact",
        "1 while the instance's residency is known by its KV events, 0 while it is estimated.",
        each(lambda s: int(s.residency is Residency.EVENTS), followed=False),
    )
    text.gauge(
        "pointsman_instance_events_connected",
        "1 while the publisher of KV events can be reached; absent where none is known.",
        each(lambda s: int(bool(s.connected))),
    )
    text.gauge(
        "pointsman_instance_events_lag_seconds",
        "Age of the newest KV events when they were applied, by the engine's clock.",
        each(lambda s: s.lag_s),
    )
    text.gauge("pointsman_instance_events_blocks", "KV blocks that the engine told it holds.", each(lambda s: s.blocks))
    text.counter("pointsman_instance_events_gaps_total", "Times that KV events were missed.", each(lambda s: s.gaps))
    text.counter(
        "pointsman_instance_events_restarts_total", "Restarts of the engine seen by events.", each(lambda s: s.restarts)
    )
    text.counter(
        "pointsman_instance_events_losses_total",
        "Times that missed events could not be had, and what was known was forgotten.",
        each(lambda s: s.losses),
    )
    text.counter(
        "pointsman_instance_events_unreadable_total",
        "Messages and events that could not be read.",
        each(lambda s: s.unreadable),
    )
    text.counter(
        "pointsman_instance_texts_learnt_total",
        "Texts whose tokens the engine's tokenizer told.",
        each(lambda s: s.learnt),
    )
    text.counter(
        "pointsman_instance_texts_dropped_total",
        "Texts that were not learnt: too many waited, or no tokens came.",
        each(lambda s: s.lessons_dropped),
    )
    text.gauge(
        "pointsman_instance_hit_error_blocks",
        "Predicted from events against reported hits: 95th percentile of the difference, in KV blocks.",
        each(lambda s: s.check_error_blocks),
    )
    text.gauge(
        "pointsman_instance_hit_wrong_ratio",
        "Share of the newest answers whose hit, predicted from events, was wrong by more than one block.",
        each(lambda s: s.check_wrong_share),
    )
    _pushed_load(plane, text, label)


def _pushed_load(plane: Plane, text: TextFormat, label: str) -> None:
    load = None if plane.events is None else plane.events.load
    links = [] if load is None else [(load, i.config.name, plane.links[i.slot]) for i in plane.fleet]
    ages = [({label: name}, age) for load, name, link in links if (age := load.age_s(link)) is not None]
    rates = [({label: name}, rate) for load, name, link in links if (rate := load.prefill_rate(link)) is not None]
    text.gauge(
        "pointsman_instance_pushed_load_age_seconds",
        "Age of the newest load that the engine pushed; absent where it pushes none.",
        ages,
    )
    text.gauge(
        "pointsman_instance_prefill_tokens_per_second",
        "Prefill rate while prefilling, as the engine measured it.",
        rates,
    )
