"""The pace of one instance, and one request's part in measuring it.

Measured is only what can be told apart: a first token where nothing else was queued when the request was placed nor
when it came, and the decode of streams of some length. Answers that come whole show neither; while there are such, the
engine's own count of running requests says how large the batch is.
"""

from msgspec.structs import replace

from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import A100_80G
from router.state.instance import Instance
from router.state.pace.cost_fit import CostFit, fit_costs
from router.state.pace.cost_row import CostRow, decode_row, first_token_row, prefill_row
from router.state.pace.cost_rows import CostRows
from router.state.pace.decode_load import DecodeLoad, DecodeTotals

ENOUGH_ROWS = 16
"""Observations of prefill, and of decode, from which the result stands for the instance."""
FIT_AFTER_ROWS = 16
"""New observations that make another fit worth its millisecond."""
FEWEST_STEPS = 8
"""Shorter outputs say little about a step."""
MEASURED_TOKENS = 4096
"""Prefill that an engine measured is put together until it is so much."""
BUSY_WEIGHT = 0.1
"""What decode counts for that began or ended while something was being prefilled."""
SAME_STEP_S = 0.002
"""First tokens this close together are of one step."""
WHOLE_ANSWERS_S = 60.0
"""How long after an answer that came whole others are expected to be under way."""


class PaceMeter:
    """Gathers observations of one instance, and keeps the last fit."""

    __slots__ = (
        "_fitted_rows",
        "_load",
        "_measured_s",
        "_measured_tokens",
        "_step_requests",
        "_step_s",
        "_whole_until_s",
        "fit",
        "fitted_s",
        "instance",
        "rows",
    )

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.rows = CostRows()
        self.fit: CostFit | None = None
        self.fitted_s = 0.0
        """When it was fitted last (monotonic)."""
        self._load = DecodeLoad()
        self._fitted_rows = 0
        self._whole_until_s = 0.0
        self._measured_tokens = 0
        self._measured_s = 0.0
        self._step_s = 0.0
        self._step_requests: list[RequestPace] = []
        """Those whose first tokens came with the newest step that brought any."""

    @property
    def observed(self) -> HardwareProfile | None:
        """The instance's own profile; None until enough was observed."""
        enough = min(self.rows.prefill_added, self.rows.decode_added) >= ENOUGH_ROWS
        return self.fit.profile if self.fit is not None and enough else None

    @property
    def prior(self) -> HardwareProfile:
        """The configured profile, or the default's proportions where there is none."""
        return self.instance.config.hardware or A100_80G

    @property
    def is_due(self) -> bool:
        """Whether so much is new that it should be fitted again."""
        return self.rows.added - self._fitted_rows >= FIT_AFTER_ROWS

    def refit(self, now_s: float) -> None:
        """Fit what was observed; takes about a millisecond."""
        self.fitted_s = now_s
        self._fitted_rows = self.rows.added
        name = self.instance.config.name
        source = f"observed at {name} by the router, in {len(self.rows)} requests"
        self.fit = fit_costs(self.rows, self._sized_prior(), profile_name(name), source)

    def forget(self) -> None:
        """Another engine stands behind the name now."""
        self.rows = CostRows()
        self.fit = None
        self._fitted_rows = 0

    def placed(self, now_s: float) -> "RequestPace":
        """A request is about to be booked here."""
        view = self.instance.view
        alone = view.waiting == 0 and view.queued_prefill_tokens == 0
        return RequestPace(self, self._load.totals(now_s) if alone else None)

    def measured(self, tokens: int, busy_s: float) -> None:
        """Take in what the engine itself says: so many more tokens prefilled in so many more busy seconds."""
        self._measured_tokens += tokens
        self._measured_s += busy_s
        if self._measured_tokens >= MEASURED_TOKENS:
            self.rows.add(prefill_row(self._measured_tokens, self._measured_s, self.prior.max_batch_tokens))
            self._measured_tokens, self._measured_s = 0, 0.0

    def totals(self, now_s: float) -> DecodeTotals:
        """Return the integrals up to now."""
        return self._load.totals(now_s)

    def batch_changed(self, now_s: float) -> None:
        """Requests began or ceased to decode here just now."""
        instance = self.instance
        sequences, known = instance.view.running, instance.reconciled
        if now_s < self._whole_until_s and known is not None:
            sequences = max(sequences, known.report.running or 0)
        own = instance.own_requests
        kv_tokens = instance.active_kv_tokens * sequences // own if own else 0
        self._load.change(sequences, kv_tokens, now_s)

    def prefilled(self, tokens: int) -> None:
        """So many tokens of a prompt were prefilled."""
        self._load.prefill_tokens += tokens

    def step_ended(self, request: "RequestPace", tokens: int, now_s: float) -> None:
        """A step ended with the first token of a request; its prefill is not in the way of others of that step."""
        if now_s - self._step_s > SAME_STEP_S:
            self._step_s = now_s
            self._step_requests.clear()
        for other in self._step_requests:
            other.prefilled_beside += tokens
        self._step_requests.append(request)

    def came_whole(self, now_s: float) -> None:
        """An answer came at once: what runs here is not all seen by its first tokens."""
        self._whole_until_s = now_s + WHOLE_ANSWERS_S

    def _sized_prior(self) -> HardwareProfile:
        """Return the prior with the KV capacity that the engine says."""
        known = self.instance.reconciled
        capacity = None if known is None else known.report.kv_capacity_tokens
        return self.prior if capacity is None else replace(self.prior, kv_capacity_tokens=capacity)


def profile_name(instance: str) -> str:
    """Return what an instance's observed profile is called; no colon, which separates a count in the simulator."""
    return f"observed-{instance.replace(':', '-')}"


class RequestPace:
    """What one request shows, told at its first token and at its end."""

    __slots__ = ("_calm", "_first", "_meter", "_placed", "prefilled_beside")

    def __init__(self, meter: PaceMeter, placed: DecodeTotals | None) -> None:
        self._meter = meter
        self._placed = placed
        """None once something else was in the way of its first token."""
        self._calm = False
        self._first: DecodeTotals | None = None
        self.prefilled_beside = 0
        """Tokens that were prefilled in the step of its first token and counted after it, its own among them."""

    def first_token(self, now_s: float, new_tokens: int) -> None:
        """The first token of a stream came, and the booking has been moved accordingly."""
        meter, placed = self._meter, self._placed
        first = self._first = meter.totals(now_s)
        self._calm = meter.instance.view.waiting == 0
        if placed is not None and not (self._calm and first.prefill_tokens == placed.prefill_tokens):
            self._placed = None
        meter.prefilled(new_tokens)
        self.prefilled_beside = new_tokens
        meter.step_ended(self, new_tokens, now_s)
        meter.batch_changed(now_s)

    def ended(self, now_s: float) -> None:
        """The booking has been released."""
        self._meter.batch_changed(now_s)

    def learn(self, now_s: float, uncached_tokens: int | None, output_tokens: int) -> None:
        """Take in what the engine counted, when the answer is whole and before the booking is released.

        :param uncached_tokens: of the prompt; None where the engine did not say.
        """
        first, meter = self._first, self._meter
        if first is None:
            meter.prefilled(uncached_tokens or 0)
            meter.came_whole(now_s)
            return
        if self._placed is not None and uncached_tokens and first.at_s > self._placed.at_s:
            meter.rows.add(self._first_token_row(self._placed, first, uncached_tokens))
        if output_tokens > FEWEST_STEPS and now_s > first.at_s:
            meter.rows.add(self._decode_row(first, meter.totals(now_s), output_tokens - 1))

    def _first_token_row(self, placed: DecodeTotals, first: DecodeTotals, uncached_tokens: int) -> CostRow:
        took_s = first.at_s - placed.at_s
        return first_token_row(
            uncached_tokens,
            took_s,
            sequences=(first.sequence_s - placed.sequence_s) / took_s,
            kv_tokens=(first.kv_token_s - placed.kv_token_s) / took_s,
            max_batch_tokens=self._meter.prior.max_batch_tokens,
        )

    def _decode_row(self, first: DecodeTotals, last: DecodeTotals, steps: int) -> CostRow:
        """Sequences are counted with what they have generated by the middle of the answer.

        While something is prefilled at either end, it is not known how much of it was in the way.
        """
        took_s = last.at_s - first.at_s
        sequences = (last.sequence_s - first.sequence_s) / took_s
        kv_tokens = (last.kv_token_s - first.kv_token_s) / took_s + sequences * steps / 2
        others = last.prefill_tokens - first.prefill_tokens - self.prefilled_beside
        calm = self._calm and self._meter.instance.view.waiting == 0
        weight = 1.0 if calm else BUSY_WEIGHT
        return decode_row(steps, took_s, sequences=sequences, kv_tokens=kv_tokens, prefill_tokens=others, weight=weight)
