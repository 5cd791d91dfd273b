"""Solving observed equations for the costs of an engine's steps: least squares of the relative error, robustly.

- Relative: a short decode step counts as much as a long prefill.
- Robust: equations whose residual is far beyond the usual one weigh little, in a few rounds of reweighting.
- With a prior: the given profile's costs, scaled to the pace that was observed, count like a few equations. They decide
  what the observations leave open (all batches of one size, all prompts of one length) and hardly anything else.
- No cost is negative: the most negative one is set to 0 and the rest is solved again.

Plain Python on purpose: five unknowns and a few hundred rows take about a millisecond, and a worker has no numpy.
"""

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec
from msgspec.structs import replace

from router.core.hardware import HardwareProfile
from router.state.pace.cost_row import CostRow, RowKind

ROUNDS = 4
PRIOR_WEIGHT = 0.02
"""Of each cost's prior, in equations that consist of this cost alone."""
TOLERANCE = 1.5
"""Residuals above this many times the usual size weigh less."""
LEAST_SPREAD = 0.005
"""The usual size of a relative residual is never taken for less."""

Vector = list[float]


class CostFit(msgspec.Struct, frozen=True, kw_only=True):
    """The costs that were found, and the equations behind them."""

    profile: HardwareProfile
    first_token_overhead_s: float
    """What a first token takes beyond prefill: the network, the tokenizer, the wait for the running step."""
    relative_error: float
    """Median size of the relative residuals."""


def fit_costs(rows: Iterable[CostRow], prior: HardwareProfile, name: str, source: str) -> CostFit | None:
    """Return the costs that explain the rows best; None without rows.

    :param prior: also says what no equation can: KV capacity and the limits of a step.
    """
    rows = list(rows)
    if not rows:
        return None
    expected = _scaled_prior(rows, prior)
    equations = [_equation(row) for row in rows]
    weights = trust = [row.weight for row in rows]
    costs, residuals = expected, Vector()
    for _ in range(ROUNDS):
        costs = _solve(equations, weights, expected)
        residuals = [_residual(equation, costs) for equation in equations]
        weights = [a * b for a, b in zip(trust, _weights(residuals), strict=True)]
    profile = replace(
        prior,
        name=name,
        t0_s=costs[0],
        prefill_s_per_token=costs[1],
        decode_s_per_sequence=costs[2],
        decode_s_per_kv_token=costs[3],
        source=source,
    )
    return CostFit(
        profile=profile,
        first_token_overhead_s=costs[4],
        relative_error=median(map(abs, residuals)),
    )


def _equation(row: CostRow) -> Vector:
    """Return the coefficients of ``equation @ costs = 1``."""
    first = 1.0 if row.kind is RowKind.FIRST else 0.0
    took_s = row.took_s
    return [
        row.steps / took_s,
        row.prefill_tokens / took_s,
        row.sequence_steps / took_s,
        row.kv_token_steps / took_s,
        first / took_s,
    ]


def _scaled_prior(rows: Sequence[CostRow], prior: HardwareProfile) -> Vector:
    """Return the prior's costs at the pace of the rows: twice as slow an engine is expected to be so in everything."""
    decode = _pace([row for row in rows if row.kind is RowKind.DECODE], prior)
    prefill = _pace([row for row in rows if row.kind is not RowKind.DECODE], prior)
    decode = decode or prefill or 1.0
    prefill = prefill or decode
    return [
        prior.t0_s * decode,
        prior.prefill_s_per_token * prefill,
        prior.decode_s_per_sequence * decode,
        prior.decode_s_per_kv_token * decode,
        0.0,
    ]


def _pace(rows: Sequence[CostRow], prior: HardwareProfile) -> float | None:
    """Return how many times as long as the prior says the rows took, in the middle."""
    costs = [prior.t0_s, prior.prefill_s_per_token, prior.decode_s_per_sequence, prior.decode_s_per_kv_token, 0.0]
    said = [1 + _residual(_equation(row), costs) for row in rows]
    known = [1 / share for share in said if share > 0]
    return median(known) if known else None


def _residual(equation: Vector, costs: Vector) -> float:
    a, b, c, d, e = equation
    t0, prefill, sequence, kv, first = costs
    return a * t0 + b * prefill + c * sequence + d * kv + e * first - 1


def _weights(residuals: Sequence[float]) -> Vector:
    limit = TOLERANCE * max(LEAST_SPREAD, 1.5 * median(map(abs, residuals)))
    return [1.0 if abs(r) <= limit else (limit / abs(r)) ** 2 for r in residuals]


def _solve(equations: Sequence[Vector], weights: Vector, prior: Vector) -> Vector:
    """Solve the weighted normal equations with costs of at least 0."""
    size = len(prior)
    matrix = [[0.0] * size for _ in range(size)]
    right = [0.0] * size
    for equation, weight in zip(equations, weights, strict=True):
        for i, value in enumerate(equation):
            if value:
                weighted = weight * value
                right[i] += weighted
                row = matrix[i]
                for j in range(i + 1):
                    row[j] += weighted * equation[j]
    for i in range(size):
        for j in range(i):
            matrix[j][i] = matrix[i][j]
    _add_prior(matrix, right, prior)
    kept = [i for i in range(size) if matrix[i][i] > 0]
    while kept:
        solved = _eliminate([[matrix[i][j] for j in kept] for i in kept], [right[i] for i in kept])
        worst = min(range(len(kept)), key=lambda i: solved[i] * matrix[kept[i]][kept[i]] ** 0.5)
        if solved[worst] >= 0:
            costs = [0.0] * size
            for i, value in zip(kept, solved, strict=True):
                costs[i] = value
            return costs
        del kept[worst]
    return [0.0] * size


def _add_prior(matrix: list[Vector], right: Vector, prior: Vector) -> None:
    """Add one weak equation for each cost: that it is the prior's. One of 0 is measured by the step overhead."""
    for i, cost in enumerate(prior):
        if cost > 0:
            matrix[i][i] += PRIOR_WEIGHT / cost**2
            right[i] += PRIOR_WEIGHT / cost
        elif matrix[i][i] > 0:
            matrix[i][i] *= 1 + 1e-9


def _eliminate(matrix: list[Vector], right: Vector) -> Vector:
    """Solve a symmetric positive definite system by Gaussian elimination, its unknowns scaled to a diagonal of 1."""
    size = len(right)
    scale = [matrix[i][i] ** -0.5 for i in range(size)]
    rows = [[matrix[i][j] * scale[i] * scale[j] for j in range(size)] + [right[i] * scale[i]] for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if abs(rows[i][i]) < 1e-12:
            rows[i][i] = 1e-12
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            if factor:
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    solved = [0.0] * size
    for i in reversed(range(size)):
        solved[i] = (rows[i][size] - sum(rows[i][j] * solved[j] for j in range(i + 1, size))) / rows[i][i]
    return [value * factor for value, factor in zip(solved, scale, strict=True)]
