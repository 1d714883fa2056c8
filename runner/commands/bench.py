"""``runner bench PROFILE...``: measure profiles against the baseline, or one profile in two images."""

from __future__ import annotations

import argparse
from pathlib import Path

from runner import engines, profile
from runner.commands import against_image, measuring, measuring_options, own_command, ranks
from runner.errors import InputError
from runner.plan import REFERENCE_PROFILE, Arm
from runner.worker.workloads import ALL

# Of ``--workload all``, for each profile on each workload: eight samples of up to 12 s with their workers' starts.
# Eight are what intervals take that four comparisons share, and with one profile 15 minutes have room for an
# installation too (docs/workloads.md has a run on a slow machine).
BUDGET_EACH_S = 96.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="*", help="name of a profile, or a YAML file")
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    ranks.add_option(parser, "and measure how that scales")
    ranks.add_nodes_option(parser)
    each = f"with --workload all {BUDGET_EACH_S:g}s for each profile on each, the baseline too"
    measuring_options.add(parser, budget=f"4m; {each}; {ranks.BUDGET}")
    against_image.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    if not arguments.profile and arguments.resume is None:
        raise InputError(f"bench needs a PROFILE; there are: {', '.join(profile.names())}")
    title = "+".join(Path(name).stem for name in arguments.profile)
    against = against_image.given(arguments)
    if against is not None and arguments.resume is None:
        nodes = arguments.nodes or 1
        ranks.require_nodes(nodes, arguments.engine or "local")
        ranks.require(arguments, nodes)
        return measuring.run(arguments, f"{title}-images", against_image.arms(arguments, against))
    arms = against_baseline(arguments.profile, arguments.engine or "local")
    if arguments.resume is None:
        nodes = arguments.nodes or 1
        ranks.require_nodes(nodes, arguments.engine or "local")
        arms = ranks.arms(arguments, arms, nodes)
    if arguments.workload == own_command.EVERY and arguments.resume is None:
        arms = on_every_workload(arms)
        title = f"{title}-all"
        if arguments.budget is None and not arguments.full:
            arguments.usual_budget = BUDGET_EACH_S * len(arms)
    return measuring.run(arguments, title, arms)


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


def on_every_workload(arms: list[Arm]) -> list[Arm]:
    """The same on each of ALL: the baseline on a workload is what others are compared with there."""
    return [Arm(f"{arm.name} on {workload}", arm.profile, arm.engine, workload) for workload in ALL for arm in arms]
