"""``runner calibrate``: measure the baseline against itself, which shows how small a difference can be seen here."""

from __future__ import annotations

import argparse

from runner import engines
from runner.commands import measuring, measuring_options
from runner.errors import InputError
from runner.plan import REFERENCE_PROFILE, Arm

BUDGET_S = 180.0
REFUSED = ("full", "epochs")
AGAIN = "again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    measuring_options.add(parser, budget="3m", refused=REFUSED)


def run(arguments: argparse.Namespace) -> int:
    for name in REFUSED:
        if getattr(arguments, name):
            raise InputError(f"calibrate takes no --{name}: one training each does not show how much they vary")
    engine = arguments.engine or "local"
    if arguments.resume is None:
        arguments.usual_budget = BUDGET_S
    arms = [Arm(name, REFERENCE_PROFILE, engine) for name in (REFERENCE_PROFILE, AGAIN)]
    return measuring.run(arguments, "calibration", arms)
