"""Measure everything and write the results page: ``python -m tests.benchmarks.results``."""

import argparse
import os
from pathlib import Path

import msgspec

from tests.benchmarks.results.measure import Laboratory, Results
from tests.benchmarks.results.render import page

REPOSITORY = Path(__file__).resolve().parents[3]
DOCS = REPOSITORY / "docs"
SHARED = Path(os.environ.get("POINTSMAN_SHARED_MATERIAL", REPOSITORY.parent / "shared"))


def main() -> None:
    """Run the plan, or only render what was measured before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=SHARED / "traces", help="folder of the public traces")
    parser.add_argument("--to", type=Path, default=DOCS / "results.md")
    parser.add_argument("--data", type=Path, default=DOCS / "results.json", help="where the figures are kept")
    parser.add_argument("--render-only", action="store_true", help="write the page from the figures kept")
    parser.add_argument("--processes", type=int)
    args = parser.parse_args()
    if args.render_only:
        results = msgspec.json.decode(args.data.read_bytes(), type=Results)
    else:
        results = Laboratory(args.traces if args.traces.is_dir() else None, args.processes).results()
        args.data.write_bytes(msgspec.json.encode(results) + b"\n")
    args.to.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
