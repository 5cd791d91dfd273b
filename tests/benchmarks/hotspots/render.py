"""The hotspots page as Markdown: what the rules are, and what was measured. Every number is computed."""

from collections.abc import Callable, Iterable, Sequence

from controlplane.policies.presets import GENTLE_COLD_START
from router.core.hotspot.window import BUCKETS, CAPACITY
from router.core.preload_budget import PreloadBudget
from router.core.terms import ColdStart, HotspotRule
from router.state.hotspot_detector import LEAST_REQUESTS
from tests.benchmarks.hotspots import plan
from tests.benchmarks.hotspots.measure import BurstRun, Event, Filling, NewInstance, Results
from tests.benchmarks.hotspots.plan import Treatment
from tests.benchmarks.joining_live import FIRST_S, Measured

_OURS = (plan.PLAINLY, plan.ALONE, plan.WIDENED)
_TITLES = {Event.JOIN: "An instance joins", Event.RESTART: "An instance restarts"}


def page(results: Results, live: Sequence[Measured]) -> str:
    """Write the page; ``live`` are the figures of instances that joined a running demo."""
    parts = [
        _INTRODUCTION,
        _rules(),
        "## Bursts\n\n" + _bursts(results.bursts),
        "## Ordinary traffic\n\n" + _ordinary(results),
        "## New instances\n\n" + _new_instances(results.new_instances),
        "## How many prefixes\n\n" + _fillings(results.fillings),
        "## Live\n\n" + _live(live),
        _WEAKNESSES,
    ]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """# Hotspots and cold starts

P-token x BS sends a request where its prefix is. That is right until one prefix draws more requests than the few
instances that hold it can serve: new tokens there are so few that the product wins against every other instance until
BS has grown by the ratio of the prefill, and BS is what every request there pays for with each of its tokens. A product
also likes an empty instance, which is idle because it holds nothing yet.

Both are terms of a policy, off unless they are set. The preset `protected` has both, and is what the demo runs:

    {"hotspot": {}, "cold_start": {"bs_floor_share": 0.5, "bs_cap_share": 1.0}}

This page was written by `python -m tests.benchmarks.hotspots`; nothing in its tables is typed by hand."""


def _rules() -> str:
    hot, cold, gentle = HotspotRule(), ColdStart(), ColdStart(**GENTLE_COLD_START)
    return f"""## The rules

**Class**: requests that share a prefix. The key is the chain hash at the first {hot.class_tokens} tokens
(`hotspot.class_tokens`), or at the deepest block before that which any instance holds. *M* are the ready instances that
hold it, *N* all ready ones, *x* the share of the class among the arrivals of a sliding window
(`hotspot.window_s`, {hot.window_s:g} s in {BUCKETS} buckets). Each bucket is a space-saving sketch of {CAPACITY}
counters, a constant: memory is bounded whatever arrives, and a count is too high by at most 1/{CAPACITY} of them.

**Stage 1** puts a class on watch when x * N > |M| and |M| < N, and releases it when that was false for a whole
window. A router evaluates it once a second, a control plane over the reports of all routers as soon as one shows it;
either may put a class on watch (`hotspot.stage1`). A window that does not cover its whole length yet is not judged:
in an empty fleet every class is new, and the first few of it look like a crowd. Nor is a class of fewer than
{LEAST_REQUESTS} requests in it: a few sessions alone in a fleet are no crowd either.

**Stage 2** looks at each request of a watched class. When over more than `hotspot.factor` ({hot.factor:g}) x |M| of
them in a row none was scored better outside M than inside, M is out for the class: *filtered: hotspot mitigation for
class 3f2a*. An instance that takes one of its requests holds the prefix from then on, so the class is copied to the
others one by one, and when all hold it nothing is filtered any more and BS alone decides. It ends with the watch, or
after `hotspot.max_duration_s` ({hot.max_duration_s:g} s). A request is never left without candidates.

**Preloading** brings the prefix of a class that is hot to every instance that lacks it, the least loaded first, two at
a time, as requests of one token that are booked like any other. Stage 2 would copy it as well, at the price of one
long prefill before a user's first token each time.

**Cold start**: an instance is cold when it joins a fleet at work, is *warming*, or lost its cache; for
`cold_start.duration_s` ({cold.duration_s:g} s) at most, and no longer when it holds `cold_start.warm_share` of the
mean prefix blocks of the warm ones. Meanwhile its BS is capped at `cold_start.bs_cap_share` ({cold.bs_cap_share:g})
of their mean (one request is always let in), and its P-token counts `cold_start.p_offset` ({cold.p_offset}) more.
`cold_start.bs_floor_share` (off) is ours: BS there counts as at least this share of the mean. *Gentle* is a floor of
{gentle.bs_floor_share:g} and a cap of {gentle.bs_cap_share:g}: the preset `gentle-start`, and a choice in the policy
editor."""


# -- bursts --


def _bursts(runs: Sequence[BurstRun]) -> str:
    text = (
        f"{plan.FLEET} instances (`a100-80g`) under generated `thinking` traffic, {plan.BASE_RATE} requests a second; "
        f"in minute 11 a burst of {plan.SHAPES[0].duration_s:g} s whose requests share a prefix. Figures are of all "
        f"that arrived during the burst and {plan.AFTER_S:g} s after it, whatever it was. *Best* is the best of "
        f"{_names(plan.BASELINES)}, for each figure apart. Targets: p99 TTFT within {plan.TTFT_TARGET:.0%}, p99 TPOT "
        f"within {plan.TPOT_TARGET:.0%} of the best.\n\n"
    )
    ours = [treatment.title for treatment in _OURS]
    header = ("burst", "p99 TTFT, best", *ours, "p99 TPOT, best", *ours, "targets")
    rows = [_shape_row(name, [run for run in runs if run.shape == name]) for name in _shapes(runs)]
    parts = [_table(header, rows), "Every policy:"]
    parts += [f"**{name}** ({_describe(name)})\n\n" + _shape_table(runs, name) for name in _shapes(runs)]
    return text + "\n\n".join(parts)


def _shape_row(name: str, runs: Sequence[BurstRun]) -> tuple[str, ...]:
    ours = [_under(treatment, runs) for treatment in _OURS]
    whole = ours[-1]
    ttft = _best(runs, lambda run: run.ttft_p99_s)
    tpot = _best(runs, lambda run: run.tpot_p99_s)
    met = (
        whole.ttft_p99_s <= ttft.ttft_p99_s * (1 + plan.TTFT_TARGET),
        whole.tpot_p99_s <= tpot.tpot_p99_s * (1 + plan.TPOT_TARGET),
    )
    return (
        name,
        f"{_ms(ttft.ttft_p99_s)} (`{ttft.policy}`)",
        *(_against(run.ttft_p99_s, ttft.ttft_p99_s) for run in ours),
        f"{_ms(tpot.tpot_p99_s)} (`{tpot.policy}`)",
        *(_against(run.tpot_p99_s, tpot.tpot_p99_s) for run in ours),
        "both met"
        if all(met)
        else "missed: " + ", ".join(n for n, ok in zip(("TTFT", "TPOT"), met, strict=True) if not ok),
    )


def _shape_table(runs: Sequence[BurstRun], name: str) -> str:
    header = ("policy", "TTFT mean", "TTFT p99", "TPOT mean", "TPOT p99", "mitigations", "kept away", "preloads")
    rows = [
        (
            f"`{run.policy}`" + (" and preloading" if run.preload else ""),
            _ms(run.ttft_mean_s),
            _ms(run.ttft_p99_s),
            _ms(run.tpot_mean_s),
            _ms(run.tpot_p99_s),
            str(run.mitigations),
            str(run.mitigated_requests),
            str(run.preloads),
        )
        for run in runs
        if run.shape == name
    ]
    return _table(header, rows)


def _under(treatment: Treatment, runs: Sequence[BurstRun]) -> BurstRun:
    return next(run for run in runs if (run.policy, run.preload) == (treatment.policy, treatment.preload))


def _best(runs: Sequence[BurstRun], figure: Callable[[BurstRun], float]) -> BurstRun:
    return min((run for run in runs if run.policy in plan.BASELINES), key=figure)


def _shapes(runs: Sequence[BurstRun]) -> list[str]:
    return list(dict.fromkeys(run.shape for run in runs))


def _describe(name: str) -> str:
    shape = next(shape for shape in plan.SHAPES if shape.name == name)
    return (
        f"{shape.requests_per_s:g} a second, {shape.shared_tokens:,} shared and {shape.own_tokens} own tokens, "
        f"{shape.output_tokens:,} output tokens"
    )


# -- ordinary traffic --


def _ordinary(results: Results) -> str:
    rows = [
        (
            run.workload.generator,
            f"{run.workload.requests_per_s:g}",
            f"{run.workload.duration_s:g}",
            str(run.mitigations),
            str(run.preloads),
        )
        for run in results.ordinary
    ]
    total = sum(run.mitigations for run in results.ordinary if run.workload.generator != "thinking")
    others = sum(run.mitigations for run in results.ordinary if run.workload.generator == "thinking")
    return (
        f"Generated traffic without a burst on {plan.FLEET} instances, with mitigation and preloading on: {total} "
        f"mitigations in the four ordinary workloads, {others} in the calm `thinking` traffic below the bursts, whose "
        "windows hold the fewest requests.\n\n"
        + _table(("workload", "requests/s", "seconds", "mitigations", "preloads"), rows)
        + "\n\nWhat it costs: `track_class_us_p50` beside `hash_match_decide_us_p50` in `pointsman bench decision`; "
        "a test of the benchmarks keeps it below a twentieth."
    )


# -- new instances --


def _new_instances(found: Sequence[NewInstance]) -> str:
    text = (
        f"{plan.FLEET} instances under load; the last one joins, or restarts, {plan.EVENT_S:g} s into the trace. "
        f"Figures are of the requests that landed on it in the first {plan.FIRST_S:g} s, over {len(plan.SEEDS)} seeds. "
        "**Extra TTFT** is their mean minus that of the very same requests in a fleet where nothing happened; *against "
        "others* compares them with the other requests of that minute, which are of other lengths. The last "
        f"columns are the means of everything in it. Target: extra TTFT below {plan.EXTRA_TARGET_S * 1000:g} ms.\n\n"
    )
    parts = [
        f"**{_TITLES[event]}**\n\n" + _new_table([one for one in found if one.event == event])
        for event in (Event.JOIN, Event.RESTART)
    ]
    return text + "\n\n".join(parts)


def _new_table(found: Sequence[NewInstance]) -> str:
    header = (
        "workload",
        "handling",
        "requests",
        "TTFT",
        "extra TTFT",
        "against others",
        "everybody",
        "without the event",
    )
    rows = [
        (
            one.workload,
            one.handling,
            str(one.requests),
            _ms(one.ttft_mean_s),
            _ms(one.extra_s) + ("" if one.extra_s < plan.EXTRA_TARGET_S else " (missed)"),
            _ms(one.versus_others_s),
            _ms(one.all_s),
            _ms(one.calm_s),
        )
        for one in found
    ]
    return _table(header, rows)


def _fillings(found: Sequence[Filling]) -> str:
    rows = [
        (
            one.workload,
            str(one.prefixes),
            f"{one.sent:g}",
            str(one.requests),
            _ms(one.extra_s),
            f"{one.hit_ratio:.0%}",
        )
        for one in found
    ]
    return (
        f"An instance joins as above, under *{plan.JOINING[-1].title}*, and is sent so many of the hottest prefixes. "
        f"{PreloadBudget().most_prefixes} are the default, in the simulator and in the control plane "
        "(`POINTSMAN_PRELOAD_PREFIXES`).\n\n"
        + _table(("workload", "at most", "sent", "requests", "extra TTFT", "of their prompts cached"), rows)
    )


def _live(found: Sequence[Measured]) -> str:
    rows = [
        (
            one.handling,
            str(one.requests),
            _ms(one.ttft_mean_s),
            f"{_ms(one.others_ttft_mean_s)} ({(one.ttft_mean_s - one.others_ttft_mean_s) * 1000:+.0f} ms)",
            f"{_ms(one.before_ttft_mean_s)} ({(one.ttft_mean_s - one.before_ttft_mean_s) * 1000:+.0f} ms)",
            f"{one.hit_ratio:.0%}",
            str(one.preloads),
        )
        for one in found
    ]
    header = ("handling", "requests", "TTFT", "others", "the minute before", "of their prompts cached", "preloads")
    return (
        "The demo (8 simulated engines behind a real worker, its control plane and its load) gets a ninth engine: "
        f"first tokens of what landed there in its first {FIRST_S:g} s, beside the others' in that minute and "
        "everybody's in the minute before. Measured by `python -m tests.benchmarks.joining_live`, every process on two "
        "busy cores, so that times hold some waiting for a processor: two runs of one handling differ by some 10 ms. "
        "In brackets: how much more it took on the new instance. What the very same requests would have taken "
        "elsewhere is known in the simulator alone (above): what lands on an empty instance are other requests, "
        "with more to prefill.\n\n" + _table(header, rows)
    )


_WEAKNESSES = """## What to make of it

- Without mitigation the product lets BS at the holders grow to several times that of the others, and everything there
  pays for it with each token. Either remedy alone prevents that: mitigation copies the class to the rest of the fleet
  by its own requests, preloading ahead of them. Together they meet both targets in every shape; mitigation alone misses
  the first tokens of the longest prompts, because each copy costs one user a long prefill and p99 has no room for them.
- The minute that a class takes to be noticed (the window fills slowly against it) is why BS at the first holders still
  peaks. Preloading works where the control plane looks within a few seconds: at 10 s instead of 2 s most copies are
  made by users' requests again.
- The product fills an empty instance by itself: BS balances within seconds, and what lands there pays a prefill. The
  cap of the method keeps BS there below half of the others, so the product goes on to favour it for requests that
  would have hit elsewhere: fewer land there, and those that do pay more. The floor turns that around. The method's
  constants stay the default of the term; *gentle* with preloading is what we recommend.
- Live, at the demo's light load, every handling is within the target, and the published constants cost the most. The
  order of the others is hardly more than what two runs differ by; preloading alone was measured once. The simulator's
  heavier loads tell them apart.
- Preloads are modelled as the control plane makes them: the prefixes that different sessions had in common, within one
  budget for both (`PreloadBudget`), booked like requests. Traffic of few prefixes needs few of them; traffic of many
  (`agenttool`) gains by all.
- Traffic and hardware are models (see [simulator.md](simulator.md)); prefix hashes are exact, which a live router's,
  made of bytes, are nearly.
- In the first minute of a router no class is judged. A burst that begins then is mitigated later.
- A class can still be above its share by chance, and is copied for nothing: the cost is one prefill an instance, and
  hits where sessions are few and long."""


# -- text --


def _against(value: float, best: float) -> str:
    return f"{_ms(value)} ({value / best - 1:+.0%})"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if abs(seconds) >= 0.1 else f"{seconds * 1000:.1f} ms"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
