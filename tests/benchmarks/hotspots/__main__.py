"""Measure everything and write the hotspots page: ``python -m tests.benchmarks.hotspots``."""

import argparse
from pathlib import Path

import msgspec

from tests.benchmarks.hotspots.measure import Results, results
from tests.benchmarks.hotspots.render import page
from tests.benchmarks.joining_live import Measured

DOCS = Path(__file__).resolve().parents[3] / "docs"
LIVE = DOCS / "hotspots-live.jsonl"
"""What ``tests.benchmarks.joining_live`` printed."""


def main() -> None:
    """Run the plan, or only render what was measured before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=DOCS / "hotspots.md")
    parser.add_argument("--data", type=Path, default=DOCS / "hotspots.json", help="where the figures are kept")
    parser.add_argument("--render-only", action="store_true", help="write the page from the figures kept")
    parser.add_argument("--processes", type=int)
    args = parser.parse_args()
    if args.render_only:
        measured = msgspec.json.decode(args.data.read_bytes(), type=Results)
    else:
        measured = results(args.processes)
        args.data.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    args.to.write_text(page(measured, live_figures()), encoding="utf-8")


def live_figures() -> list[Measured]:
    """Read what was measured live."""
    return [msgspec.json.decode(line, type=Measured) for line in LIVE.read_bytes().splitlines() if line]


if __name__ == "__main__":
    main()
