"""The options of all commands that measure, and the specification of a run that they make."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from envkit.bench.plan import MARGIN, REFERENCE_PROFILE, Arm
from envkit.bench.specification import FULL_TIMEOUT_S, PRECISION, TIMEOUT_S, Specification
from envkit.cli import engine_options, training_options, user_command
from envkit.cli.arguments import count, duration, refuse, share
from envkit.common.errors import InputError
from envkit.worker.measure.quality_target import TargetError, parse
from envkit.worker.workloads import DEFAULT, WORKLOADS, get

# What a run takes where no budget is given, in seconds.
BUDGET_S = 180.0


def add(
    parser: argparse.ArgumentParser,
    budget: str = "3m",
    blocks: str = "measure so many blocks, however long they take",
    refused: Collection[str] = (),
) -> None:
    """``budget`` is what the help names as the command's default, and ``blocks`` the help for that number.

    The help has no word of the options that are ``refused``: they are known, to say what to give instead.
    """
    engine_options.add(parser)
    full = "" if "full" in refused else ", with --full 2h"
    group = parser.add_argument_group("measuring")
    group.add_argument("--resume", metavar="DIR", type=Path, help="go on with the interrupted run in this folder")
    group.add_argument("--workload", type=user_command.known_workload, metavar="NAME",
                       help=f"to train: {', '.join(WORKLOADS)}; all, with bench (default: cnn); "
                       "or a file like x.yaml")  # fmt: skip
    training_options.add_options(group)
    group.add_argument("--full", action="store_true",
                       help="train all epochs once each; report their time, and accuracy after each epoch")  # fmt: skip
    group.add_argument("--epochs", metavar="N", type=count, help="with --full: so many of them (default: cnn 10)")
    group.add_argument("--until", metavar="TARGET", type=_target,
                       help="with --full: end a training after the first epoch that reached this METRIC=NUMBER, as "
                       "accuracy=0.85 or loss=0.4, and report the time to it")  # fmt: skip
    length = group.add_mutually_exclusive_group()
    length.add_argument(
        "--budget", metavar="TIME", type=duration, help=f"measure for so long, e.g. 60s (default: {budget})"
    )
    length.add_argument("--blocks", metavar="N", type=count, help=blocks)
    group.add_argument("--margin", metavar="SHARE", type=share,
                       help="the smallest difference that matters to you (default: 2%%)")  # fmt: skip
    group.add_argument("--half-width", metavar="SHARE", type=share,
                       help="stop early only when the interval's half-width is below this (default: 4%%)")  # fmt: skip
    group.add_argument(
        "--steps", metavar="N", type=count, help="timed steps per sample (default: by the machine's pace)"
    )
    group.add_argument(
        "--warmup-steps", metavar="N", type=count, help="untimed steps before them (default: by its pace)"
    )
    group.add_argument("--timeout", metavar="TIME", type=duration,
                       help=f"stop a worker that takes longer (default: 5m{full})")  # fmt: skip
    group.add_argument("--seed", metavar="N", type=count, help="of the random order of blocks (default: random)")
    add_worker_options(group)
    group.add_argument("--json", action="store_true", help="print JSON for scripts instead of the report")
    user_command.add_options(parser)
    parser.set_defaults(nproc=None, nodes=None, weak=False, dry_run=False)  # which not all of these commands have
    for action in parser._actions:  # of several modules, and argparse has no other list
        if action.dest in refused:
            action.help = argparse.SUPPRESS


def add_worker_options(group: argparse._ArgumentGroup, against_advice: bool = True) -> None:
    """Those of what workers are given and where that is recorded; and those of measuring ``against_advice``."""
    group.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    group.add_argument("--keep-env", metavar="NAME", action="append",
                       help="let workers inherit this variable although it can change the outcome")  # fmt: skip
    if against_advice:
        group.add_argument("--force", action="store_true", help="measure although it is known to be worthless")
        group.add_argument("--allow-unknown", action="store_true",
                           help="let a profile set variables that nothing is known to read")  # fmt: skip
    group.add_argument("--output", metavar="DIR", type=Path, help="folder for the record (default: in ./results)")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="print the specification of the run, as JSON, and measure nothing"
    )


def specification(
    arguments: argparse.Namespace, title: str, arms: Sequence[Arm], budget_s: float | None = None
) -> Specification:
    """What the options ask for; ``arms`` are measured, the first is the reference.

    ``budget_s`` is what the command takes where no budget is given, None for the usual one. Raises InputError for
    options that don't go together.
    """
    workload, command = user_command.from_args(arguments) or (arguments.workload or DEFAULT, None)
    require(arguments)
    asked = Specification(
        title=title,
        arms=tuple(arms),
        workload=workload,
        user_command=command,
        options=training_options.options(arguments),
        engine_options=engine_options.given(arguments),
        nproc=arguments.nproc or 1,
        nodes=arguments.nodes or 1,
        data=arguments.data,
        warmup_steps=arguments.warmup_steps or 0,
        steps=arguments.steps or 0,
        budget_s=arguments.budget or budget_s or BUDGET_S,
        open_ended=arguments.budget is None,
        blocks=arguments.blocks or 0,
        precision=arguments.half_width or PRECISION,
        margin=arguments.margin or MARGIN,
        timeout_s=arguments.timeout or (FULL_TIMEOUT_S if arguments.full else TIMEOUT_S),
        seed=arguments.seed,
        keep_env=tuple(arguments.keep_env or ()),
        force=arguments.force,
        allow_unknown=arguments.allow_unknown,
        weak=arguments.weak,
    )
    if not arguments.full:
        return asked
    first = asked.workloads[0] if asked.workloads else DEFAULT
    return replace(asked, epochs=arguments.epochs or get(first).epochs, until=arguments.until)


def against_baseline(profiles: list[str], engine: str) -> list[Arm]:
    """The baseline and each of ``profiles``, under one engine."""
    arms = [Arm(Path(name).stem, name, engine) for name in dict.fromkeys((REFERENCE_PROFILE, *profiles))]
    for number, arm in enumerate(arms):
        if arm.name in {earlier.name for earlier in arms[:number]}:
            own, two = "a profile of your own can't be called", "two profiles are called"
            raise InputError(f"{arm.profile}: {own if arm.name == REFERENCE_PROFILE else two} '{arm.name}'; rename it")
    return arms


def _target(text: str) -> str:
    try:
        parse(text)
    except TargetError as error:
        raise argparse.ArgumentTypeError(f"'{text}' {error}") from None
    return text


def require(arguments: argparse.Namespace) -> None:
    """Raise InputError for options of what to measure, and how long, that don't go together."""
    training_options.require_one(arguments)
    if arguments.epochs and not arguments.full:
        raise InputError(f"--epochs {arguments.epochs} means nothing without --full, which trains whole epochs; add it")
    if arguments.until and not arguments.full:
        raise InputError(f"--until {arguments.until} means nothing without --full, which trains whole epochs; add it")
    if arguments.full:
        why = "means nothing with --full, which trains whole epochs; leave it out"
        refuse(arguments, ("steps", "budget", "half_width"), why)
    if arguments.blocks and arguments.half_width is not None:
        raise InputError("--half-width means nothing with --blocks, which never stops early; leave one of them out")
