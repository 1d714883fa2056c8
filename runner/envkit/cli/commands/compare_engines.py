"""``envkit compare-engines PROFILE``: what a container costs, as the same profile measured under several engines."""

from __future__ import annotations

import argparse
from pathlib import Path

from envkit import engines
from envkit.bench.arms import Arm
from envkit.bench.study import REFERENCE_PROFILE
from envkit.cli import measuring, measuring_options
from envkit.cli.commands.messages import TooFewEngines
from envkit.cli.messages import NeedsProfile
from envkit.cli.parser import Parser
from envkit.common.errors import InputError

DEFAULT = "local,docker,apptainer"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="?", help="name of a profile, or a YAML file")
    measuring_options.add(parser, engine=None)
    parser.add_argument_group("engine").add_argument(
        "--engines", metavar="LIST",
        help=f"compare these engines, the first is the reference: {', '.join(engines.ENGINES)} (default: {DEFAULT})",
    )  # fmt: skip
    measuring_options.add_dry_run(parser)


def run(arguments: argparse.Namespace) -> int:
    invocation = measuring.invocation(arguments)
    if measuring.goes_on_alone(arguments):
        return measuring.resume(arguments.resume, invocation)
    if arguments.profile is None:
        raise measuring.lacks_profile(arguments, NeedsProfile("compare-engines", REFERENCE_PROFILE))
    names = list(dict.fromkeys((arguments.engines or DEFAULT).split(",")))
    if len(names) < 2:
        raise InputError(TooFewEngines(arguments.engines, DEFAULT))
    arms = [Arm(name, arguments.profile, name) for name in names]
    title = f"{Path(arguments.profile).stem}-engines"
    return measuring.run(measuring_options.study(arguments, title, arms), invocation)
