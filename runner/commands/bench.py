"""``runner bench PROFILE``: measure a profile against the baseline."""

from __future__ import annotations

import argparse
from pathlib import Path

from runner import engines, profile
from runner.commands import measuring
from runner.errors import InputError
from runner.plan import REFERENCE_PROFILE, Arm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="?", help="name of a profile, or a YAML file")
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    measuring.add_measuring_options(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.profile is None and arguments.resume is None:
        raise InputError(f"bench needs a PROFILE; there are: {', '.join(profile.names())}")
    title = Path(arguments.profile or "").stem
    engine = arguments.engine or "local"
    arms = [
        Arm(Path(name).stem, name, engine) for name in dict.fromkeys((REFERENCE_PROFILE, arguments.profile)) if name
    ]
    if len({arm.name for arm in arms}) < len(arms):
        raise InputError(f"{arguments.profile}: a profile of your own can't be called '{REFERENCE_PROFILE}'; rename it")
    return measuring.run(arguments, title, arms)
