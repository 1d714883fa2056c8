"""The options of all commands that measure, and the study that they make."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from envkit.bench.arms import Arm, View
from envkit.bench.study import (
    FULL_TIMEOUT_S,
    MARGIN,
    REFERENCE_PROFILE,
    TIMEOUT_S,
    StoppingRule,
    Study,
    WorkloadSpec,
)
from envkit.cli import engine_options, training_options, user_command
from envkit.cli.argument_messages import N_BLOCKS, START_WORKERS
from envkit.cli.arguments import add_output_options, count, duration, limit, no_effect, refuse, share
from envkit.cli.measuring_messages import NameOfReference, NameTaken, NotATarget
from envkit.cli.messages import OptionAlone
from envkit.cli.parser import BadValue, Parser
from envkit.common.errors import InputError
from envkit.messages import message_of
from envkit.worker.measure.quality_target import TargetError, parse
from envkit.worker.request import FullTraining
from envkit.worker.workloads import DEFAULT, WORKLOADS, get

# What a run takes where no budget is given, in seconds.
BUDGET_S = 180.0
BUDGET = f"{BUDGET_S / 60:g}m"


def add(
    parser: Parser,
    budget: str = BUDGET,
    blocks: str = N_BLOCKS,
    refused: Collection[str] = (),
    engine: str | None = START_WORKERS,
    every: str = "",
) -> None:
    """``budget`` is what the help names as the command's default, and ``blocks`` the help for that number.

    ``engine`` is as for ``engine_options.add``, and ``every`` what --workload takes besides.

    The help has no word of the options that are ``refused``: they are known, to say what to give instead.
    """
    group = parser.add_argument_group("what to train")
    group.add_argument("--workload", type=user_command.known_workload, metavar="NAME",
                       help=f"train {', '.join(WORKLOADS)}, {every}or a YAML file (default: cnn)")  # fmt: skip
    user_command.add_options(parser)
    _add_length(parser, budget, blocks)
    training_options.add_options(parser)
    group = parser.add_argument_group("full trainings", advanced=True)
    group.add_argument("--full", action="store_true",
                       help="train all epochs; report time and accuracy of each epoch")  # fmt: skip
    group.add_argument("--epochs", metavar="N", type=count, help="with --full: train N epochs (default: cnn 10)")
    group.add_argument("--until", metavar="TARGET", type=_target,
                       help="with --full: end after the first epoch that reaches TARGET, for example accuracy=0.85 or "
                       "loss=0.4, and report the time to it")  # fmt: skip
    engine_options.add(parser, engine=engine)
    full = "" if "full" in refused else "; 2h with --full"
    add_worker_options(parser)
    group = parser.add_argument_group("workers", advanced=True)
    group.add_argument("--timeout", metavar="TIME", type=duration,
                       help=f"stop a worker that takes longer (default: 5m{full})")  # fmt: skip
    group = parser.add_argument_group("output")
    group.add_argument("--resume", metavar="DIR", type=Path, help="continue the interrupted run in this folder")
    add_output(parser)
    # which not all of these commands have
    parser.set_defaults(nproc=None, nodes=None, weak=False, dry_run=False, max_memory=None)
    for action in parser._actions:  # of several modules, and argparse has no other list
        if action.dest in refused:
            action.help = argparse.SUPPRESS


def _add_length(parser: Parser, budget: str, blocks: str) -> None:
    group = parser.add_argument_group("how long")
    length = group.add_mutually_exclusive_group()
    length.add_argument(
        "--budget", metavar="TIME", type=duration, help=f"measure for this long, e.g. 60s or 10m (default: {budget})"
    )
    length.add_argument("--blocks", metavar="N", type=count, advanced=True, help=blocks)
    group.add_argument("--margin", metavar="SHARE", type=share, advanced=True,
                       help="set the smallest relevant difference (default: 2%%)")  # fmt: skip
    group.add_argument("--half-width", metavar="SHARE", type=share, advanced=True,
                       help="stop early only if the interval's half-width is at most SHARE (default: 4%%, or half of a "
                       "larger gain)")  # fmt: skip
    group.add_argument("--steps", metavar="N", type=count, advanced=True,
                       help="time N steps per sample (default: from the pace of the machine)")  # fmt: skip
    group.add_argument("--warmup-steps", metavar="N", type=count, advanced=True,
                       help="run N untimed steps first (default: from the pace of the machine)")  # fmt: skip
    group.add_argument("--seed", metavar="N", type=count, advanced=True,
                       help="seed the random order of blocks (default: random)")  # fmt: skip


def add_keep_arms(parser: Parser) -> None:
    """Add the option to measure all profiles to the end, after ``add``."""
    group = parser.add_argument_group("how long")
    group.add_argument("--keep-arms", action="store_true", advanced=True,
                       help="measure all profiles to the end (default: drop those that can't be the "
                       "fastest)")  # fmt: skip


def add_max_memory(parser: Parser, group_name: str = "how long") -> None:
    """Add the limit on peak memory, to the group of options of that name."""
    group = parser.add_argument_group(group_name)
    group.add_argument("--max-memory", metavar="SHARE", type=limit, advanced=True,
                       help="rule out profiles whose peak memory is above the baseline's by more than SHARE, e.g. "
                       "10%% (default: no limit)")  # fmt: skip


def add_output(parser: Parser) -> None:
    """Add where the record goes, and what is printed."""
    group = parser.add_argument_group("output")
    group.add_argument("--output", metavar="DIR", type=Path, help="write the record to DIR (default: in ./results)")
    add_output_options(parser)


def add_worker_options(parser: Parser, against_advice: bool = True) -> None:
    """Add what workers are given, and, with ``against_advice``, the options that override checks."""
    group = parser.add_argument_group("workers", advanced=True)
    group.add_argument("--data", metavar="DIR",
                       help="read Fashion-MNIST's four files from DIR, or 'synthetic' to generate data")  # fmt: skip
    group.add_argument("--keep-env", metavar="NAME", action="append",
                       help="pass this variable on to workers although it can change the outcome")  # fmt: skip
    if against_advice:
        group.add_argument("--force", action="store_true", help="measure despite failed preflight checks")
        group.add_argument("--allow-unknown", action="store_true",
                           help="allow a profile to set variables that no known program reads")  # fmt: skip


def add_dry_run(parser: Parser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--dry-run", action="store_true", advanced=True,
                       help="print the study as JSON and measure nothing")  # fmt: skip


def study(
    arguments: argparse.Namespace,
    title: str,
    arms: Sequence[Arm],
    budget_s: float | None = None,
    view: View = View.EFFECTS,
    drop_arms: bool = False,
) -> Study:
    """Return what the options ask for; ``arms`` are measured, the first is the reference.

    ``budget_s`` is what the command takes where no budget is given, None for the usual one. With ``drop_arms`` profiles
    that can't be the fastest leave the run. Raises InputError for options that don't go together.
    """
    workload, command = user_command.from_args(arguments) or (arguments.workload or DEFAULT, None)
    require(arguments)
    stopping = StoppingRule(
        budget_s=arguments.budget or budget_s or BUDGET_S,
        blocks=arguments.blocks or 0,
        precision=arguments.half_width,
        margin=arguments.margin or MARGIN,
        timeout_s=arguments.timeout or (FULL_TIMEOUT_S if arguments.full else TIMEOUT_S),
        drop_arms=drop_arms,
        max_memory=arguments.max_memory,
        open_ended=arguments.budget is None,
    )
    made = Study(
        title=title,
        view=view,
        stopping=stopping,
        workload=workload,
        workloads={workload: WorkloadSpec(arguments.warmup_steps or 0, arguments.steps or 0)},
        data=arguments.data,
        seed=arguments.seed,
        engine_options=engine_options.from_arguments(arguments),
        user_command=command,
        options=training_options.options(arguments),
        ranks=arguments.nproc or 1,
        nodes=arguments.nodes or 1,
        weak=arguments.weak,
        keep_env=tuple(arguments.keep_env or ()),
        force=arguments.force,
        allow_unknown=arguments.allow_unknown,
    ).with_arms(arms)
    if not arguments.full:
        return made
    first = next(iter(made.own_workloads), DEFAULT)
    return replace(made, full=FullTraining(arguments.epochs or get(first).epochs, arguments.until))


def against_baseline(profiles: list[str], engine: str) -> list[Arm]:
    """Return the baseline and each of ``profiles``, under one engine. Raise InputError for two of one name."""
    arms = [Arm(Path(name).stem, name, engine) for name in dict.fromkeys((REFERENCE_PROFILE, *profiles))]
    for number, arm in enumerate(arms):
        if arm.name in {earlier.name for earlier in arms[:number]}:
            problem = NameOfReference if arm.name == REFERENCE_PROFILE else NameTaken
            raise InputError(problem(arm.profile, arm.name))
    return arms


def _target(text: str) -> str:
    try:
        parse(text)
    except TargetError as error:
        raise BadValue(NotATarget(text, message_of(error))) from None
    return text


def require(arguments: argparse.Namespace) -> None:
    """Raise InputError for options of what to measure, and how long, that don't go together."""
    training_options.require_one(arguments)
    if arguments.epochs and not arguments.full:
        raise InputError(OptionAlone(f"--epochs {arguments.epochs}", "--full"))
    if arguments.until and not arguments.full:
        raise InputError(OptionAlone(f"--until {arguments.until}", "--full"))
    if arguments.full:
        refuse(arguments, ("steps", "budget", "half_width"), "--full")
    if arguments.blocks and arguments.half_width is not None:
        raise InputError(no_effect("--half-width", "--blocks"))
