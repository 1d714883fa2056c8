"""A user's training command (``-- python train.py``) instead of a workload: its options. A workload file keeps them."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TypedDict

from envkit.bench.study import EVERY
from envkit.cli.arguments import count, no_effect, option, options_given
from envkit.cli.messages import BadOptionValue, OptionAlone
from envkit.cli.parser import BadValue, Parser
from envkit.cli.workload_file import WARMUP_STEPS, load, losses_problem, metric_problem
from envkit.cli.workload_messages import (
    OPTIONS_OF_COMMAND,
    BadLoader,
    BadMetric,
    KeyOfFile,
    NotOfCommand,
    StartsCommand,
    TwoTrainings,
    UnknownWorkload,
)
from envkit.common.errors import InputError
from envkit.common.messages import UnknownWord
from envkit.common.suggestion import nearest
from envkit.profiles import profile
from envkit.worker.request import UserCommand
from envkit.worker.user_command.units import CHOICES
from envkit.worker.workloads import WORKLOADS, find

SUFFIXES = (".yaml", ".yml")
# The options of the command, which a workload file has as keys.
OPTIONS = ("metric", "unit", "warmup_lines", "loss_metric", "optimizer_steps", "whole_command", "link", "in_place")
# What says how to train the kit's own workloads, and which of its data.
NOT_WITH_IT = (
    "full", "epochs", "until", "steps", "warmup_steps", "data", "backend", "precision", "compile", "channels_last",
    "scale", "weak",
)  # fmt: skip
LONGEST_NAME = 60
_SHOWN: set[tuple[str, UserCommand]] = set()


class FolderOptions(TypedDict):
    """Fields of UserCommand that say where each start takes place."""

    in_place: bool
    links: tuple[str, ...]


def add_options(parser: Parser) -> None:
    group = parser.add_argument_group(
        "your training", "Put it last, after --, as in: -- python train.py. The steps of its torch optimizer are timed."
    )
    parser.set_defaults(user_command=None)  # what follows --
    group.add_argument("--metric", metavar="METRIC",
                       help="read step times from its output: a regular expression for lines that end a step or, with "
                       "a group, hold its time or rate; or a path into JSON lines, as $.step_time")  # fmt: skip
    group.add_argument("--unit", metavar="UNIT", advanced=True,
                       help=f"read the metric's number in this unit: {', '.join(CHOICES)}; auto reads the unit behind "
                       "each number (default: s)")  # fmt: skip
    group.add_argument("--optimizer-steps", metavar="N", type=count, advanced=True,
                       help="time N steps in each sample, then end the training (default: as many as fill some "
                       "seconds, by the machine's pace)")  # fmt: skip
    group.add_argument("--whole-command", action="store_true", advanced=True,
                       help="time all of it as one step, from start to end")  # fmt: skip
    group.add_argument("--warmup-lines", metavar="N", type=count, advanced=True,
                       help="leave out the first N steps, or the metric's first N readings (default: by the machine's "
                       f"pace; with --optimizer-steps {WARMUP_STEPS}, with --metric none)")  # fmt: skip
    group.add_argument("--loss-metric", metavar="METRIC", advanced=True,
                       help="compare losses: a regular expression for lines that hold one, with a group around it, or "
                       "a path into JSON lines, as $.loss (default: losses are not compared)")  # fmt: skip
    add_folder_options(group)


def add_folder_options(group: argparse._ArgumentGroup | Parser) -> None:
    """Add the options that say where each start takes place."""
    group.add_argument("--link", metavar="PATH", action="append", advanced=True,
                       help="link to PATH, which the training only reads, in the fresh copy of this folder that each "
                       "start gets")  # fmt: skip
    group.add_argument("--in-place", action="store_true", advanced=True,
                       help="start it in this folder itself; it may overwrite files, or continue from "
                            "them")  # fmt: skip


def folder_options(arguments: argparse.Namespace) -> FolderOptions:
    """Return these fields of UserCommand. Raise InputError if they don't go together."""
    if arguments.in_place and arguments.link:
        raise InputError(no_effect("--link", "--in-place"))
    return {"in_place": arguments.in_place, "links": tuple(arguments.link or ())}


def from_args(arguments: argparse.Namespace) -> tuple[str, UserCommand] | None:
    """Return the command that the user gave, with a name for it, or None for a workload of the kit's.

    Raise InputError for options that don't go together, and for what is no command, metric, unit or workload file.
    """
    if arguments.user_command is None:
        if not _is_file(arguments.workload):
            for name in options_given(arguments, OPTIONS):
                raise InputError(OptionAlone(name, "a command", "-- python train.py"))
            return None
        for name in options_given(arguments, OPTIONS):
            raise InputError(KeyOfFile(name, arguments.workload))
        training = load(Path(arguments.workload))
        _show(arguments.workload, training[1])
    else:
        if arguments.workload is not None:
            raise InputError(TwoTrainings(arguments.workload))
        training = _from_options(arguments)
    for name in options_given(arguments, NOT_WITH_IT):
        raise InputError(NotOfCommand(name, "--warmup-lines" if name == "--warmup-steps" else OPTIONS_OF_COMMAND))
    return training


def _show(file: str, command: UserCommand) -> None:
    """Show, once, what a file has started, before it is: the command line does not say it."""
    if (file, command) not in _SHOWN:
        _SHOWN.add((file, command))
        profile.announce(StartsCommand(file, command.folder, command.argv))


def is_given(arguments: argparse.Namespace) -> bool:
    """Return whether the options name a user's command to measure."""
    return arguments.user_command is not None or _is_file(arguments.workload)


def _is_file(workload: str | None) -> bool:
    return workload is not None and Path(workload).suffix in SUFFIXES


def known_workload(text: str) -> str:
    """Return the name of a workload, ``all``, or a workload file's, for argparse. Raise BadValue for another."""
    if text == EVERY or find(text) is not None or _is_file(text):
        return text
    if text.startswith("loader-"):
        raise BadValue(BadLoader(text))
    raise BadValue(UnknownWorkload(text, tuple(WORKLOADS), nearest(text, WORKLOADS)))


def _from_options(arguments: argparse.Namespace) -> tuple[str, UserCommand]:
    argv, unit = arguments.user_command, arguments.unit
    _require_one_timing(arguments)
    if arguments.metric is None and unit is not None:
        raise InputError(OptionAlone("--unit", "--metric"))
    if unit is not None and unit not in CHOICES:
        raise InputError(BadOptionValue("--unit", UnknownWord("unit", unit, tuple(CHOICES), nearest(unit, CHOICES))))
    if arguments.metric is not None and (problem := metric_problem(arguments.metric, unit)):
        raise InputError(BadMetric("--metric", arguments.metric, problem))
    if arguments.loss_metric is not None and (problem := losses_problem(arguments.loss_metric)):
        raise InputError(BadMetric("--loss-metric", arguments.loss_metric, problem))
    has_no_steps = arguments.whole_command or arguments.metric is not None
    steps = None if has_no_steps else arguments.optimizer_steps or 0
    warmup = arguments.warmup_lines or (WARMUP_STEPS if steps else 0)
    read = (arguments.metric, unit or "s", warmup, arguments.loss_metric, steps)
    return shortened(shlex.join(argv)), UserCommand(
        tuple(argv), str(Path.cwd().resolve()), *read, **folder_options(arguments)
    )


def _require_one_timing(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that time a command in different ways."""
    if arguments.whole_command:
        for name in ("metric", "unit", "optimizer_steps", "warmup_lines"):
            if getattr(arguments, name) is not None:
                raise InputError(no_effect(option(name), "--whole-command"))
    if arguments.optimizer_steps:
        for name in ("metric", "unit"):
            if getattr(arguments, name) is not None:
                raise InputError(no_effect(option(name), "--optimizer-steps"))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
