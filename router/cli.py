"""The router's own command line: what runs without Django. ``python -m router.cli COMMAND``."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

COMMANDS = {
    "worker": "router.proxy.command",
    "engine": "router.engine.command",
    "replay": "router.replay.command",
    "simulate": "router.sim.command",
    "fit-profile": "router.sim.fit_command",
    "bench": "router.bench.command",
}
"""Each module has ``HELP``, ``add_arguments(parser)`` and ``run(args) -> int``; only the wanted one is imported."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="pointsman", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    wanted = arguments[0] if arguments and arguments[0] in COMMANDS else None
    for name in COMMANDS:
        if wanted is None or name == wanted:
            _add(subparsers, name)
    args = parser.parse_args(arguments)
    status: int = args.run(args)
    return status


def _add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str) -> None:
    module: ModuleType = import_module(COMMANDS[name])
    subparser = subparsers.add_parser(name, help=module.HELP, description=module.__doc__)
    module.add_arguments(subparser)
    subparser.set_defaults(run=module.run)


if __name__ == "__main__":
    sys.exit(main())
