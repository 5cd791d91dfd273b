"""The command `pointsman` (and `python manage.py`): Django's commands, ours, and the router's, which need no Django."""

import os
import sys
from collections.abc import Sequence

from router import cli

_DATA_DIR_OPTION = "--data-dir"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in cli.COMMANDS:
        return cli.main(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    _set_data_dir(arguments)
    from django.core.management import execute_from_command_line  # slow, and only needed from here on

    if arguments:
        arguments[0] = arguments[0].replace("-", "_") if not arguments[0].startswith("-") else arguments[0]
    execute_from_command_line(["pointsman", *arguments])
    return 0


def _set_data_dir(arguments: Sequence[str]) -> None:
    """Settings are read before a command sees its options, so this one option is looked for here."""
    for position, argument in enumerate(arguments):
        if argument == _DATA_DIR_OPTION and position + 1 < len(arguments):
            os.environ["POINTSMAN_DATA_DIR"] = arguments[position + 1]
        elif argument.startswith(f"{_DATA_DIR_OPTION}="):
            os.environ["POINTSMAN_DATA_DIR"] = argument.partition("=")[2]


if __name__ == "__main__":
    sys.exit(main())
