"""``envkit calibrate``: measure the baseline against itself, which shows how small a difference can be seen here."""

from __future__ import annotations

import argparse

from envkit.bench.plan import REFERENCE_PROFILE, Arm
from envkit.cli import measuring, measuring_options
from envkit.cli.arguments import option
from envkit.cli.commands.messages import NoInterval
from envkit.cli.parser import Parser
from envkit.common.errors import InputError

BUDGET_S = 180.0
REFUSED = ("full", "epochs", "until")
AGAIN = "again"


def add_arguments(parser: Parser) -> None:
    measuring_options.add(parser, budget="3m", refused=REFUSED)
    measuring_options.add_dry_run(parser)


def run(arguments: argparse.Namespace) -> int:
    for name in REFUSED:
        if getattr(arguments, name):
            raise InputError(NoInterval("calibrate", option(name)))
    how = measuring.invocation(arguments)
    if measuring.goes_on_alone(arguments):
        return measuring.resume(arguments.resume, how)
    arms = [Arm(name, REFERENCE_PROFILE, arguments.engine or "local") for name in (REFERENCE_PROFILE, AGAIN)]
    asked = measuring_options.specification(arguments, "calibration", arms, BUDGET_S)
    return measuring.run(asked, how)
