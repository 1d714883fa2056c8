"""The options of ``envkit tune``, and what its trials are to train."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from envkit import engines
from envkit.bench.plan import REFERENCE_PROFILE, Arm
from envkit.cli import measuring_options, rank_options, submission, training_options, user_command
from envkit.cli.arguments import count, duration
from envkit.cli.engine_options import add as add_engine_options
from envkit.common.errors import InputError
from envkit.tuning import space_file
from envkit.tuning.specification import TuningSpecification
from envkit.worker.workloads import WORKLOADS

BUDGET_S = 1200.0
SPACE = "default"
NUMERICS = ("same", "any")
# Rounds of --exhaustive.
GRID_BLOCKS = 6
# Options of other commands that measure, which a tuning does not have.
NOT_HERE: dict[str, Any] = {
    "full": False, "epochs": None, "until": None, "half_width": None, "margin": None, "force": False,
    "allow_unknown": False,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    add_engine_options(parser)
    group = parser.add_argument_group("searching")
    spaces = ", ".join(space_file.names())
    group.add_argument("--resume", metavar="DIR", type=Path, help="go on with the interrupted tuning in this folder")
    group.add_argument("--space", metavar="SPACE", help=f"what to search: {spaces}, or a YAML file (default: {SPACE})")
    group.add_argument(
        "--budget", metavar="TIME", type=duration, help="for search and confirmation together (default: 20m)"
    )
    group.add_argument("--numerics", choices=NUMERICS, metavar="WHICH",
                       help="same: nothing that may change the results (default); any: that too")  # fmt: skip
    group.add_argument("--space-only", action="store_true",
                       help="search the space alone: shipped profiles don't compete, nor are confirmed")  # fmt: skip
    group.add_argument("--exhaustive", action="store_true",
                       help="measure every candidate of a small space, to judge the search by")  # fmt: skip
    group.add_argument("--blocks", metavar="N", type=count,
                       help=f"with --exhaustive: trials of each candidate (default: {GRID_BLOCKS})")  # fmt: skip
    group.add_argument("--seed", metavar="N", type=count, help="of all chance in the search (default: 1)")
    group.add_argument("--profile", metavar="FILE", type=Path,
                       help="write the profile there (default: HOST-tuned.yaml in envprofiles/local, or in "
                       "~/.config/envkit/profiles where pip installed envkit)")  # fmt: skip
    group = parser.add_argument_group("measuring")
    group.add_argument("--workload", type=user_command.known_workload, metavar="NAME",
                       help=f"tune for: {', '.join(WORKLOADS)} (default: cnn); or a file, as mine.yaml")  # fmt: skip
    training_options.add_options(group)
    rank_options.add_option(group, "each has the environment that is searched for")
    group.add_argument("--steps", metavar="N", type=count,
                       help="timed steps per trial and sample (default: 30%% of the workload's, then all)")  # fmt: skip
    group.add_argument("--warmup-steps", metavar="N", type=count, help="untimed steps before them")
    group.add_argument("--timeout", metavar="TIME", type=duration, help="stop a worker that takes longer (default: 5m)")
    measuring_options.add_worker_options(group, against_advice=False)
    group.add_argument("--json", action="store_true", help="print JSON for scripts instead of the report")
    submission.add_job_options(
        parser, "on these among them, as node1,node2 or node[1-2]",
        "search on so many nodes of a Slurm cluster together, and confirm on all of them (budget: 5m of each)",
    )  # fmt: skip
    user_command.add_options(parser)
    parser.set_defaults(**NOT_HERE)


def require(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that don't go together."""
    if arguments.blocks and not arguments.exhaustive:
        raise InputError("--blocks means nothing without --exhaustive, which has no budget; give --budget instead")
    if arguments.exhaustive and arguments.profile:
        raise InputError("--profile means nothing with --exhaustive, which writes no profile; leave it out")
    if arguments.exhaustive and arguments.space_only:
        raise InputError("--space-only means nothing with --exhaustive, which has no shipped profiles; leave it out")
    if arguments.exhaustive and arguments.budget:
        raise InputError("--budget means nothing with --exhaustive, which measures everything; give --blocks instead")


def asked(arguments: argparse.Namespace, default: Path) -> TuningSpecification:
    """What the options say; ``default`` is where the profile goes if they don't say. Raises InputError."""
    require(arguments)
    rank_options.require(arguments)
    space = space_file.find(arguments.space or SPACE)
    reference = Arm(REFERENCE_PROFILE, REFERENCE_PROFILE, arguments.engine or "local")
    trained = measuring_options.specification(arguments, f"tune-{space.stem}", [reference])
    return TuningSpecification(
        specification=replace(trained, seed=arguments.seed or 1, nodes=1),
        space=str(space.absolute()),
        budget_s=0.0 if arguments.exhaustive else arguments.budget or BUDGET_S,
        numerics=arguments.numerics or "same",
        space_only=arguments.space_only,
        blocks=(arguments.blocks or GRID_BLOCKS) if arguments.exhaustive else 0,
        profile=str((arguments.profile or default).absolute()),
    )
