"""The options of ``envkit tune``, and what its trials are to train."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from envkit.bench.arms import Arm
from envkit.bench.study import REFERENCE_PROFILE
from envkit.cli import measuring_options, rank_options, submission, training_options, user_command
from envkit.cli.argument_messages import EVERY_RANK, SEARCH_ON_N, SEARCH_ON_THESE
from envkit.cli.arguments import count, duration, no_effect, option
from envkit.cli.engine_options import add as add_engine_options
from envkit.cli.messages import OptionAlone
from envkit.cli.parser import Parser
from envkit.common.errors import InputError
from envkit.tuning import space_file
from envkit.tuning.study import SearchSettings, TuningStudy
from envkit.worker.workloads import WORKLOADS

BUDGET_S = 1200.0
SPACE = "default"
NUMERICS = ("same", "any")
# Rounds of --exhaustive.
GRID_BLOCKS = 6
# Options of other commands that measure, which a tuning does not have.
NOT_HERE: dict[str, object] = {
    "full": False, "epochs": None, "until": None, "half_width": None, "margin": None, "force": False,
    "allow_unknown": False,
}  # fmt: skip


def add_arguments(parser: Parser) -> None:
    group = parser.add_argument_group("search")
    spaces = ", ".join(space_file.names())
    group.add_argument("--budget", metavar="TIME", type=duration,
                       help="search and confirm in this time, e.g. 1h (default: 20m; 5m with --nodes)")  # fmt: skip
    group.add_argument("--space", metavar="SPACE", help=f"search {spaces}, or a YAML file (default: {SPACE})")
    group.add_argument("--numerics", choices=NUMERICS, metavar="WHICH", advanced=True,
                       help="same: search settings that keep the results; any: search all (default: same)")  # fmt: skip
    group.add_argument("--space-only", action="store_true", advanced=True,
                       help="search the space alone, without the shipped profiles")  # fmt: skip
    group.add_argument("--exhaustive", action="store_true", advanced=True,
                       help="measure every candidate of a small space, to check the search")  # fmt: skip
    group.add_argument("--blocks", metavar="N", type=count, advanced=True,
                       help=f"with --exhaustive: run N trials of each candidate (default: {GRID_BLOCKS})")  # fmt: skip
    group.add_argument("--seed", metavar="N", type=count, advanced=True, help="seed the search (default: 1)")
    measuring_options.add_max_memory(parser, "search")
    group = parser.add_argument_group("what to train")
    group.add_argument("--workload", type=user_command.known_workload, metavar="NAME",
                       help=f"tune for {', '.join(WORKLOADS)}, or a file like mine.yaml (default: cnn)")  # fmt: skip
    user_command.add_options(parser)
    training_options.add_options(parser)
    rank_options.add_option(parser, EVERY_RANK)
    group = parser.add_argument_group("workers", advanced=True)
    group.add_argument("--steps", metavar="N", type=count,
                       help="time N steps per sample (default: the workload's, and 30%% of it in trials)")  # fmt: skip
    group.add_argument("--warmup-steps", metavar="N", type=count, help="run N untimed steps first")
    group.add_argument("--timeout", metavar="TIME", type=duration, help="stop a worker that takes longer (default: 5m)")
    measuring_options.add_worker_options(parser, against_advice=False)
    add_engine_options(parser)
    submission.add_job_options(parser, SEARCH_ON_THESE, SEARCH_ON_N)
    group = parser.add_argument_group("output")
    group.add_argument("--profile", metavar="FILE", type=Path, advanced=True,
                       help="write the profile to FILE (default: HOST-tuned.yaml in envprofiles/local, or in "
                       "~/.config/envkit/profiles if pip installed envkit)")  # fmt: skip
    group.add_argument("--resume", metavar="DIR", type=Path, help="continue the interrupted search in this folder")
    measuring_options.add_output(parser)
    group.add_argument("--details", action="store_true", help="add what failed or was left out, and what mattered")
    parser.set_defaults(**NOT_HERE)


def require(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that don't go together."""
    if arguments.blocks and not arguments.exhaustive:
        raise InputError(OptionAlone("--blocks", "--exhaustive", instead="--budget"))
    if not arguments.exhaustive:
        return
    for name in ("profile", "space_only"):
        if getattr(arguments, name):
            raise InputError(no_effect(option(name), "--exhaustive"))
    if arguments.budget:
        raise InputError(no_effect("--budget", "--exhaustive", "--blocks"))


def tuning(arguments: argparse.Namespace, default: Path) -> TuningStudy:
    """Return what the options say; ``default`` is where the profile goes if they don't say. Raises InputError."""
    require(arguments)
    rank_options.require(arguments)
    space = space_file.find(arguments.space or SPACE)
    reference = Arm(REFERENCE_PROFILE, REFERENCE_PROFILE, arguments.engine or "local")
    trained = measuring_options.study(arguments, f"tune-{space.stem}", [reference])
    return TuningStudy(
        study=replace(trained, seed=arguments.seed or 1, nodes=1),
        settings=SearchSettings(
            budget_s=0.0 if arguments.exhaustive else arguments.budget or BUDGET_S,
            numerics=arguments.numerics or "same",
            blocks=(arguments.blocks or GRID_BLOCKS) if arguments.exhaustive else 0,
            profile=str((arguments.profile or default).absolute()),
        ),
        space=str(space.absolute()),
        space_only=arguments.space_only,
    )
