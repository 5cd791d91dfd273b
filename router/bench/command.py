"""Measure how fast the router is on this machine."""

import argparse
import json
import sys
from importlib import import_module
from types import ModuleType

from rich.console import Console
from rich.table import Table

HELP = "measure how fast the router is on this machine"

BENCHES = {
    "decision": "router.bench.decision",
    "proxy": "router.bench.proxy",
    "sim": "router.bench.sim",
    "events": "router.bench.events",
}
"""Each module has ``HELP``, ``add_arguments(parser)`` and ``measure(args)``, which returns figures by name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one subcommand for each benchmark."""
    subparsers = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    for name, path in BENCHES.items():
        module: ModuleType = import_module(path)
        subparser = subparsers.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(subparser)
        subparser.add_argument("--output", choices=("table", "json"), default="table")
        subparser.set_defaults(measure=module.measure)


def run(args: argparse.Namespace) -> int:
    """Measure and print the figures."""
    figures: dict[str, float | str] = args.measure(args)
    if args.output == "json":
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    else:
        Console().print(_table(args.bench, figures))
    return 0


def _table(name: str, figures: dict[str, float | str]) -> Table:
    table = Table("figure", title=f"bench {name}")
    table.add_column("value", justify="right")
    for figure, value in figures.items():
        table.add_row(figure, value if isinstance(value, str) else f"{value:,.1f}")
    return table
