"""The results page as Markdown, from the document that was measured. Every number and every finding is computed."""

from collections.abc import Callable, Iterable, Sequence

from router.sim.metrics import RunSummary
from tests.benchmarks.results import plan
from tests.benchmarks.results.measure import CaseResult, Results

OURS = "multiplicative"
MIXED_AIM = 0.1
NOTABLE = 0.02
"""Differences below this share are called even."""
MAIN = f"{plan.MAIN_SHARE:.0%}"

Metric = Callable[[RunSummary], float]
METRICS: dict[str, Metric] = {
    "mean TTFT": lambda run: run.ttft_s.mean,
    "p99 TTFT": lambda run: run.ttft_s.p99,
    "mean TPOT": lambda run: run.tpot_s.mean,
    "p99 TPOT": lambda run: run.tpot_s.p99,
}


def page(results: Results) -> str:
    """Write the page."""
    parts = [
        _introduction(results),
        "## First table: 70 % of saturation\n\n" + _first_table(results.main),
        "## What came out\n\n" + _findings(results),
        "## Every policy at 50 %, 70 % and 85 % of saturation\n\n" + "\n\n".join(map(_case, results.main)),
        "## The linear combination, swept\n\n" + _linear(results.linear),
        "## Past saturation: the exponent on the queued part\n\n" + _past_saturation(results),
        "## A hot prefix\n\n" + _case(results.thinking),
        "## A mixed fleet: 8 x A100 and 8 x H100\n\n" + _mixed(results.mixed),
        "## Real traces\n\n" + _recorded(results.recorded),
    ]
    return "\n\n".join(parts) + "\n"


def _introduction(results: Results) -> str:
    slo = results.slo
    return (
        "# Results\n\n"
        "The comparisons of [the paper](https://arxiv.org/abs/2603.15202), rerun in the simulator of this repository. "
        "`make results` writes this page anew; nothing in it is typed by hand. "
        "How the simulator works, and what it leaves out, is in [simulator.md](simulator.md).\n\n"
        f"- **Fleet**: {plan.FLEET} instances of the profile `a100-80g` (a 30B-A3B model on an A100-80G), unless a "
        "table says otherwise. Metrics are read every 200 ms and known 200 ms later; own bookings are known at once.\n"
        "- **Load**: shares of the *best* policy's saturation rate, found by bisection for "
        f"{', '.join(f'`{name}`' for name in plan.CONTENDERS)}. A rate is sustained while at least 95 % of what "
        "arrives in the measured span ends in it.\n"
        "- **Where numbers come from**: ChatBot, Coder, API, AgentTool and Thinking are **calibrated generators** "
        "(their means are published, the structure of their sessions is assumed); Mooncake, Claude Code and Azure are "
        "**real traces**. Hardware costs are a model, not a measurement.\n"
        f"- The first 10 % of the requests are warm-up. SLO: TTFT <= {slo.ttft_s:g} s and TPOT <= "
        f"{slo.tpot_s * 1000:g} ms. One seed; differences below 2 % are called even."
    )


def _first_table(cases: Sequence[CaseResult]) -> str:
    header = ("workload", "policy", "TTFT mean", "TTFT p99", "TPOT mean", "TPOT p99", "KV hit ratio")
    rows = []
    for result in cases:
        runs = {run.policy: run for run in result.runs[MAIN]}
        for name in plan.HEADLINE:
            run = runs[name]
            label = f"{result.case.title} ({run.requests_per_s:.0f} req/s)" if name == plan.HEADLINE[0] else ""
            rows.append((label, _policy(name), *(_ms(metric(run)) for metric in METRICS.values()), _pct(run.hit_ratio)))
    note = (
        "\n\nAll four are calibrated generators. `llm_d_predict` is an oracle: it predicts with the very cost model "
        "that the simulated engines run on. `llm_d_predict_off` has that model wrong by 30 %."
    )
    return _table(header, rows) + note


def _findings(results: Results) -> str:
    shares = list(results.main[0].runs)
    against = _table(
        ("workload", "against", *METRICS, "hit ratio (points)"),
        [_against(result, rival) for result in results.main for rival in plan.HEADLINE if rival != OURS],
    )
    losses = _table(
        ("workload", "figure", *(f"at {share}" for share in shares)),
        [_losses(result, name) for result in results.main for name in METRICS],
    )
    return (
        f"The product against each policy of the first table, at {MAIN} (negative times are better):\n\n{against}\n\n"
        "**Where we lose**: the best rival of each cell that beats the product by 2 % or more, and by how much. Rivals "
        f"that win on one figure often pay on another; the full tables below show both.\n\n{losses}\n\n"
        + _linear_finding(results.linear)
    )


def _against(result: CaseResult, rival: str) -> list[str]:
    runs = {run.policy: run for run in result.runs[MAIN]}
    ours, theirs = runs[OURS], runs[rival]
    changes = [f"{metric(ours) / metric(theirs) - 1:+.0%}" for metric in METRICS.values()]
    return [result.case.title, _policy(rival), *changes, f"{(ours.hit_ratio - theirs.hit_ratio) * 100:+.1f}"]


def _losses(result: CaseResult, name: str) -> list[str]:
    """Say who beats us on one figure at each load, and by how much."""
    metric = METRICS[name]
    cells = []
    for runs in result.runs.values():
        ours = next(metric(run) for run in runs if run.policy == OURS)
        rivals = [(metric(run) / ours - 1, run.policy) for run in runs if metric(run) < ours * (1 - NOTABLE)]
        change, rival = min(rivals, default=(0.0, ""))
        cells.append(f"`{rival}` {change:+.0%}" if rival else "nobody")
    return [result.case.title, name, *cells]


def _case(result: CaseResult) -> str:
    parts = [f"### {result.case.title}\n\n{result.case.origin.value}: {result.provenance}."]
    if result.saturation:
        rates = ", ".join(f"`{name}` {found.requests_per_s:.1f}" for name, found in result.saturation.items())
        parts.append(f"Saturation (requests/s): {rates}.")
    for share, runs in result.runs.items():
        rate = f"at {share} of saturation** ({runs[0].requests_per_s:.1f} requests/s)"
        parts.append(f"**{'closed loop**' if share == 'fixed' else rate}\n\n{_runs(runs)}")
    return "\n\n".join(parts)


def _runs(runs: Iterable[RunSummary]) -> str:
    header = ("policy", *METRICS, "hit ratio", "in SLO", "max / mean load", "computed though cached elsewhere")
    rows = [
        (
            _policy(run.policy),
            *(_ms(metric(run)) for metric in METRICS.values()),
            _pct(run.hit_ratio),
            _pct(run.slo_share),
            f"{run.load_max_over_mean:.2f}",
            _pct(run.cached_elsewhere_ratio),
        )
        for run in runs
    ]
    return _table(header, rows)


def _linear(cases: Sequence[CaseResult]) -> str:
    parts = [_linear_finding(cases)]
    for result in cases:
        runs = result.runs[MAIN]
        header = ("policy", *METRICS, "hit ratio")
        rows = [(_policy(r.policy), *(_ms(m(r)) for m in METRICS.values()), _pct(r.hit_ratio)) for r in runs]
        parts.append(f"### {result.case.title} at {MAIN}\n\n{_table(header, rows)}")
    return "\n\n".join(parts)


def _linear_finding(cases: Sequence[CaseResult]) -> str:
    parts = []
    for result in cases:
        runs = result.runs[MAIN]
        ours = next(run for run in runs if run.policy == OURS)
        swept = sorted((run for run in runs if run.policy != OURS), key=lambda run: run.ttft_s.mean)
        best, worst = swept[0], swept[-1]
        parts.append(
            f"{result.case.title}: best weight {best.policy.split('=')[1]} ({_versus(ours, best)}), "
            f"worst {worst.policy.split('=')[1]} ({_versus(ours, worst)})"
        )
    return "**Linear, swept** (mean TTFT of the product against it): " + "; ".join(parts) + "."


def _versus(ours: RunSummary, theirs: RunSummary) -> str:
    return f"{ours.ttft_s.mean / theirs.ttft_s.mean - 1:+.0%}"


def _past_saturation(results: Results) -> str:
    header = (
        "workload",
        "load",
        "policy",
        "goodput",
        "against the product",
        "in SLO",
        "mean TTFT",
        "against the product",
    )
    rows = []
    for past, stable in zip(results.past_saturation, results.main, strict=True):
        names = [run.policy for run in next(iter(past.runs.values()))]
        for share, runs in {**stable.runs, **past.runs}.items():
            by_name = {run.policy: run for run in runs}
            for name in names:
                labels = (past.case.title, share) if name == names[0] else ("", "")
                rows.append((*labels, _policy(name), *_goodput(by_name[name], by_name[OURS])))
    return (
        "The claim to check: c = 0.75 costs at most 2 % of TTFT at stable load and raises goodput past saturation by "
        "8 % to 67 %; c = 0 (`marginal_delay`) goes further and loses tails. Shares are of the rate that is still "
        "*sustained*; the SLO breaks before or after it, depending on the workload.\n\n" + _table(header, rows)
    )


def _goodput(run: RunSummary, product: RunSummary) -> tuple[str, str, str, str, str]:
    comparable = product.slo_share > 0.05
    change = f"{run.goodput_per_s / product.goodput_per_s - 1:+.0%}" if comparable else "the product has next to none"
    delay = f"{run.ttft_s.mean / product.ttft_s.mean - 1:+.0%}"
    return f"{run.goodput_per_s:.1f} req/s", change, _pct(run.slo_share), _ms(run.ttft_s.mean), delay


def _mixed(cases: Sequence[CaseResult]) -> str:
    header = ("workload", "load", "policy", "TTFT A100", "TTFT H100", "gap", "share A100", *METRICS)
    rows = []
    for result in cases:
        for share, runs in result.runs.items():
            for run in runs:
                names = (result.case.title, share) if run is runs[0] else ("", "")
                figures = (_ms(metric(run)) for metric in METRICS.values())
                rows.append((*names, _policy(run.policy), *_kinds(run), *figures))
    return (
        "The gap is the share by which the mean TTFT of the kind that answers sooner is below that of the other. "
        "The aim is a gap below 10 %. In these profiles an H100 prefills 3.2 times as fast as an A100, so a prompt "
        "that finds an empty queue waits 3.2 times as long on an A100. Normalised scores alone move work to the H100s "
        "and lower the mean TTFT of the fleet, but leave a gap; a smaller exponent on BS turns it around, or leaves "
        "the A100s idle where the H100s suffice. With `equalize_ttft` the router learns from observed first-token "
        "times which prompts suit which kind ([how](scheduling.md#unequal-hardware)).\n\n"
        f"{_mixed_finding(cases)}\n\n{_table(header, rows)}"
    )


def _mixed_finding(cases: Sequence[CaseResult]) -> str:
    """Say the range of the gap for the plain, the normalised and the learnt scores, and what the last one costs."""
    cells = [{run.policy: run for run in runs} for result in cases for runs in result.runs.values()]
    gaps = []
    for title, name in (("plain", OURS), ("normalised", plan.NORMALISED), ("learnt", plan.EQUALISED)):
        found = sorted(_gap(cell[name]) for cell in cells)
        gaps.append(f"{title} {_pct(found[0])} to {_pct(found[-1])}")
    closed = sum(_gap(cell[plan.EQUALISED]) < MIXED_AIM for cell in cells)
    return (
        f"**The gap**: {', '.join(gaps)}. Learnt, it is below 10 % in {closed} of {len(cells)} cells. "
        f"**What it gains and costs** over the whole fleet, against normalised scores: "
        f"{_changes(cells, plan.NORMALISED)}; against the plain product: {_changes(cells, OURS)}. The gap closes from "
        "both sides: requests on the H100s wait longer than they did, since long prompts join them. "
        "The learner starts from nothing in each run; what it gets wrong at first is in the figures, but for the "
        "warm-up that is left out of all of them."
    )


def _changes(cells: Sequence[dict[str, RunSummary]], against: str) -> str:
    """Return the range over all cells of what learning changes in each figure."""
    parts = []
    for name, metric in METRICS.items():
        found = sorted(metric(cell[plan.EQUALISED]) / metric(cell[against]) - 1 for cell in cells)
        parts.append(f"{name} {found[0]:+.0%} to {found[-1]:+.0%}")
    return ", ".join(parts)


def _kinds(run: RunSummary) -> tuple[str, str, str, str]:
    """Return the mean TTFT on each kind of hardware, the gap between them, and the share of the slow kind."""
    a100, h100 = run.ttft_mean_by_hardware_s["a100-80g"], run.ttft_mean_by_hardware_s["h100"]
    gap = "one kind idle" if 0 in (a100, h100) else _pct(_gap(run))
    return _ms(a100), _ms(h100), gap, _pct(run.request_share_by_hardware["a100-80g"])


def _gap(run: RunSummary) -> float:
    """Return the share by which the kind that answers sooner is below the other."""
    low, high = sorted(run.ttft_mean_by_hardware_s.values())
    return 1 - low / high


def _recorded(cases: Sequence[CaseResult]) -> str:
    if not cases:
        return "The public traces were not at hand when this page was made."
    return "\n\n".join(map(_case, cases))


def _policy(name: str) -> str:
    return f"**`{name}`**" if name == OURS else f"`{name}`"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.1 else f"{seconds * 1000:.1f} ms"


def _pct(share: float) -> str:
    return f"{share:.1%}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", "|" + "|".join("---" for _ in header) + "|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])
