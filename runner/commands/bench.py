"""``runner bench PROFILE...``: measure profiles against the baseline."""

from __future__ import annotations

import argparse
from pathlib import Path

from runner import engines, profile
from runner.commands import measuring
from runner.errors import InputError
from runner.plan import REFERENCE_PROFILE, Arm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="*", help="name of a profile, or a YAML file")
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    measuring.add_measuring_options(parser)


def run(arguments: argparse.Namespace) -> int:
    if not arguments.profile and arguments.resume is None:
        raise InputError(f"bench needs a PROFILE; there are: {', '.join(profile.names())}")
    title = "+".join(Path(name).stem for name in arguments.profile)
    return measuring.run(arguments, title, against_baseline(arguments.profile, arguments.engine or "local"))


def against_baseline(profiles: list[str], engine: str) -> list[Arm]:
    """The baseline and each of ``profiles``, under one engine."""
    arms = [Arm(Path(name).stem, name, engine) for name in dict.fromkeys((REFERENCE_PROFILE, *profiles))]
    for number, arm in enumerate(arms):
        if arm.name in {earlier.name for earlier in arms[:number]}:
            taken = (
                "a profile of your own can't be called" if arm.name == REFERENCE_PROFILE else "two profiles are called"
            )
            raise InputError(f"{arm.profile}: {taken} '{arm.name}'; rename it")
    return arms
