"""A comparison as JSON: ``{"runs": [...], "provenance": {...}}``, one flat object a run."""

from typing import Any

import msgspec

from router.sim.report.comparison import Comparison
from router.sim.runner import RunReport


def comparison_json(comparison: Comparison) -> bytes:
    """Serialise the figures (not the curves) of a comparison."""
    document = {
        "runs": [run_object(run) for run in comparison.runs],
        "saturation": comparison.saturation,
        "provenance": comparison.provenance,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def run_object(run: RunReport) -> dict[str, Any]:
    """Return one run as plain values."""
    figures: dict[str, Any] = msgspec.to_builtins(run.summary)
    return {**figures, "rate_scale": run.rate_scale}
