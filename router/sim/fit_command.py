"""Fit a hardware profile to measured engine steps: a CSV file in, a profile as JSON out."""

import argparse
import sys
from pathlib import Path

import msgspec

from router.sim.errors import SimError
from router.sim.fitting import COLUMNS, fit_profile, read_step_rows

HELP = "fit a hardware profile to measured engine steps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("rows", type=Path, help=f"CSV file with the columns {', '.join(COLUMNS)}")
    parser.add_argument("--name", required=True, help="name of the profile")
    parser.add_argument("--kv-capacity-tokens", type=int, required=True, help="KV tokens that the engine can hold")
    parser.add_argument("--max-batch-tokens", type=int, default=8192, help="its token budget a step")
    parser.add_argument("--max-sequences", type=int, default=256, help="its most sequences a step")


def run(args: argparse.Namespace) -> int:
    """Print the fitted profile and its error; 2 when the rows cannot be fitted."""
    try:
        fit = fit_profile(
            read_step_rows(args.rows),
            args.name,
            kv_capacity_tokens=args.kv_capacity_tokens,
            max_batch_tokens=args.max_batch_tokens,
            max_sequences=args.max_sequences,
        )
    except SimError as error:
        sys.stderr.write(f"pointsman fit-profile: {error}\n")
        return 2
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(fit)).decode() + "\n")
    return 0
