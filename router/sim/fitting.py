"""Fitting a hardware profile to measured steps of a real engine.

Rows are ``(prefill tokens, decoding sequences, KV tokens, step time)``. The four costs are found by least squares of
the *relative* error, so that short decode steps count as much as long prefill steps, and none may be negative: a term
that would be is set to zero and the rest is fitted again.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from router.core.hardware import HardwareProfile
from router.sim.errors import ProfileError

COLUMNS = ("prefill_tokens", "sequences", "kv_tokens", "step_s")
MIN_ROWS = 8
TERMS = ("t0_s", "prefill_s_per_token", "decode_s_per_sequence", "decode_s_per_kv_token")

Floats = NDArray[np.float64]


class StepRow(msgspec.Struct, frozen=True):
    """One measured step."""

    prefill_tokens: int
    sequences: int
    kv_tokens: int
    step_s: float


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted profile and how well it describes the rows (relative errors of the step time)."""

    profile: HardwareProfile
    rows: int
    mean_relative_error: float
    p90_relative_error: float


def fit_profile(
    rows: Sequence[StepRow],
    name: str,
    *,
    kv_capacity_tokens: int,
    max_batch_tokens: int = 8192,
    max_sequences: int = 256,
) -> Fit:
    """Fit the cost model to measured steps.

    :raises ProfileError: when there are too few rows, or they do not tell the costs apart.
    """
    if len(rows) < MIN_ROWS:
        raise ProfileError(f"{len(rows)} rows are too few to fit four costs; measure at least {MIN_ROWS}")
    counts = np.array([(1, row.prefill_tokens, row.sequences, row.kv_tokens) for row in rows], dtype=np.float64)
    step_s = np.array([row.step_s for row in rows])
    if (step_s <= 0).any() or (counts < 0).any():
        raise ProfileError("every step must have lasted longer than 0 s, with counts of at least 0")
    costs = _non_negative_fit(counts / step_s[:, None])
    error = np.abs(counts @ costs / step_s - 1)
    profile = HardwareProfile(
        name=name,
        t0_s=float(costs[0]),
        prefill_s_per_token=float(costs[1]),
        decode_s_per_sequence=float(costs[2]),
        decode_s_per_kv_token=float(costs[3]),
        kv_capacity_tokens=kv_capacity_tokens,
        max_batch_tokens=max_batch_tokens,
        max_sequences=max_sequences,
        source=f"fitted to {len(rows)} measured steps",
    )
    return Fit(
        profile=profile,
        rows=len(rows),
        mean_relative_error=float(error.mean()),
        p90_relative_error=float(np.quantile(error, 0.9)),
    )


def read_step_rows(path: Path) -> list[StepRow]:
    """Read a CSV file with the columns ``prefill_tokens,sequences,kv_tokens,step_s``, in any order.

    :raises ProfileError: naming the first faulty line.
    """
    rows: list[StepRow] = []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if missing := [column for column in COLUMNS if column not in (reader.fieldnames or ())]:
                raise ProfileError(f"{path.name}: the columns {', '.join(missing)} are missing")
            for cells in reader:
                values = {column: cells[column] for column in COLUMNS}
                rows.append(msgspec.convert(values, StepRow, strict=False))
    except msgspec.ValidationError as error:
        raise ProfileError(f"{path.name}, line {len(rows) + 2}: {error}") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ProfileError(f"{path.name} cannot be read: {error}") from error
    return rows


def read_profile(path: Path) -> HardwareProfile:
    """Read a profile from JSON: what ``pointsman fit-profile`` prints, or the profile alone.

    :raises ProfileError: when there is none in it.
    """
    try:
        data = path.read_bytes()
        document = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(document.get("profile", msgspec.Raw(data)), type=HardwareProfile)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path.name}: no hardware profile: {error}") from error


def _non_negative_fit(scaled: Floats) -> Floats:
    """Solve ``scaled @ costs = 1`` by least squares with costs of at least 0, dropping the most negative term first."""
    kept = list(range(scaled.shape[1]))
    while kept:
        part = scaled[:, kept]
        norms = np.linalg.norm(part, axis=0)
        if (norms == 0).any():
            empty = [TERMS[kept[i]] for i in np.flatnonzero(norms == 0)]
            raise ProfileError(f"no row says anything about {', '.join(empty)}; measure steps that have both")
        if np.linalg.matrix_rank(part / norms, tol=1e-6) < len(kept):
            raise ProfileError("the rows do not tell the costs apart; vary prompt lengths and batch sizes separately")
        solved, *_ = np.linalg.lstsq(part / norms, np.ones(len(part)), rcond=None)
        solved = solved / norms
        if (solved >= 0).all():
            costs = np.zeros(scaled.shape[1])
            costs[kept] = solved
            return costs
        del kept[int(np.argmin(solved * norms))]
    raise ProfileError("no cost model with costs of at least 0 fits these rows")
