"""``runner matrix [PROFILE...]``: measure every profile that applies here against the baseline, and rank them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner import catalogue, engines, profile
from runner.commands import measuring
from runner.environment import Environment
from runner.errors import InputError
from runner.plan import REFERENCE_PROFILE, Arm
from runner.preflight import preflight
from runner.profile import Profile
from runner.resolve import resolve

# As much for each profile as `bench` has; the more profiles share one error rate, the more blocks an interval takes.
BUDGET_PER_PROFILE_S = 120.0


@dataclass
class Choice:
    """``measured`` has, by what records call it, the name or file of each profile to measure; ``left_out`` why not."""

    measured: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="*",
                        help="names of profiles, or YAML files (default: all that are shipped)")  # fmt: skip
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    measuring.add_measuring_options(parser, budget="2m for each profile, the baseline too")


def run(arguments: argparse.Namespace) -> int:
    if arguments.resume is not None:
        return measuring.run(arguments, "matrix", [])
    named = arguments.profile or profile.names()
    loaded = {name: profile.load(name) for name in dict.fromkeys(named) if name != REFERENCE_PROFILE}
    engine = arguments.engine or "local"
    prefixes = {one.prefix[0] for one in loaded.values() if one.prefix}
    around = measuring.surroundings(arguments, [engine], sorted(prefixes))
    choice = choose(loaded, around.seen[engine]["inspection"], arguments.force, arguments.allow_unknown)
    if not choice.measured:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in choice.left_out.items())
        raise InputError(f"no profile is left to measure; {reasons}")
    arms = [Arm(REFERENCE_PROFILE, REFERENCE_PROFILE, engine)]
    arms += [Arm(name, given, engine) for name, given in choice.measured.items()]
    if arguments.budget is None and not arguments.full:
        arguments.budget = BUDGET_PER_PROFILE_S * len(arms)
    arguments.left_out = choice.left_out
    for name, reason in choice.left_out.items():
        print(f"left out {name}: {reason}", file=sys.stderr)
    print(f"to measure: {', '.join(choice.measured)}; each against {REFERENCE_PROFILE}", file=sys.stderr)
    return measuring.run(arguments, "matrix", arms)


def choose(loaded: Mapping[str, Profile], inspection: Mapping[str, Any], force: bool, allow_unknown: bool) -> Choice:
    """Which of the profiles to measure in the image that was inspected; ``loaded`` has them as they were named.

    Those that come to the same processes here are measured once, under all their names. Raises InputError for two
    different profiles of one name.
    """
    choice = Choice()
    alike: dict[tuple[Any, ...], list[str]] = {}
    for given, one in loaded.items():
        if one.name in {*choice.left_out, REFERENCE_PROFILE, *(name for names in alike.values() for name in names)}:
            raise InputError(f"{given}: another profile is called '{one.name}' too; rename it")
        try:
            environment = resolve(one, inspection)
            catalogue.require(environment, inspection, allow_unknown)
            preflight([(environment, inspection)], force)
        except InputError as error:
            choice.left_out[one.name] = str(error).removeprefix(f"profile '{one.name}'").lstrip(": ")
            continue
        if not environment.variables and not environment.prefix:
            choice.left_out[one.name] = f"it sets nothing here, and so is the same as {REFERENCE_PROFILE}"
            continue
        alike.setdefault(_process(environment), []).append(one.name)
    by_name = {one.name: given for given, one in loaded.items()}
    choice.measured = {_together(names): by_name[names[0]] for names in alike.values()}
    return choice


def _process(environment: Environment) -> tuple[Any, ...]:
    """What decides how a worker is started: profiles that agree in it are the same here."""
    return tuple(sorted(environment.variables.items())), environment.prefix


def _together(names: Sequence[str]) -> str:
    """``physical-cores = smt`` for profiles that are measured as one."""
    return " = ".join(names)
