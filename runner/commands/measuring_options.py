"""The options of all commands that measure, and which of them don't go together."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path

from runner import engine_options
from runner.arguments import count, duration, share
from runner.commands import own_command, training
from runner.errors import InputError
from runner.worker.workloads import WORKLOADS


def add(
    parser: argparse.ArgumentParser,
    budget: str = "4m",
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
    group.add_argument("--workload", type=own_command.known_workload, metavar="NAME",
                       help=f"to train: {', '.join(WORKLOADS)}; all, with bench (default: cnn); "
                       "or a file like x.yaml")  # fmt: skip
    training.add_options(group)
    group.add_argument("--full", action="store_true", help="train all epochs once each and report time and accuracy")
    group.add_argument("--epochs", metavar="N", type=count, help="with --full: so many of them (default: cnn 10)")
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
    own_command.add_own_command_options(parser)
    parser.set_defaults(usual_budget=None)  # what a command takes where none is given, if not the usual one
    for action in parser._actions:  # of several modules, and argparse has no other list
        if action.dest in refused:
            action.help = argparse.SUPPRESS


def add_worker_options(group: argparse._ArgumentGroup) -> None:
    """Those of what workers are given, of what they may be, and of where it is recorded."""
    group.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    group.add_argument("--keep-env", metavar="NAME", action="append",
                       help="let workers inherit this variable although it can change the outcome")  # fmt: skip
    group.add_argument("--force", action="store_true", help="measure although it is known to be worthless")
    group.add_argument("--allow-unknown", action="store_true",
                       help="let a profile set variables that nothing is known to read")  # fmt: skip
    group.add_argument("--output", metavar="DIR", type=Path, help="folder for the record (default: in results/)")


def require(arguments: argparse.Namespace) -> None:
    """Raise InputError for options of what to measure, and how long, that don't go together."""
    training.require_one(arguments)
    if arguments.epochs and not arguments.full:
        raise InputError(f"--epochs {arguments.epochs} means nothing without --full, which trains whole epochs; add it")
    for name in ("steps", "budget", "half_width"):
        if arguments.full and getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} means nothing with --full, which trains whole epochs; leave it out")
    if arguments.blocks and arguments.half_width is not None:
        raise InputError("--half-width means nothing with --blocks, which never stops early; leave one of them out")
