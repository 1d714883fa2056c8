"""A command of the user's own in the place of a workload: its options. A workload file can keep them."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from envkit.bench.plan import UserCommand
from envkit.bench.specification import EVERY
from envkit.cli.arguments import count, refuse
from envkit.cli.parser import Parser
from envkit.cli.workload_file import WARMUP_STEPS, load, require_metric, words
from envkit.common.errors import InputError
from envkit.common.suggestion import suggestion
from envkit.worker.user_command.losses import parse_losses
from envkit.worker.user_command.metric import MetricError
from envkit.worker.user_command.units import CHOICES
from envkit.worker.workloads import WORKLOADS, find

SUFFIXES = (".yaml", ".yml")
# What says how to train the kit's own workloads, and which of its data.
NOT_WITH_IT = (
    "full", "epochs", "until", "steps", "warmup_steps", "data", "backend", "precision", "compile", "channels_last",
    "scale", "weak",
)  # fmt: skip
LONGEST_NAME = 60
# How the name of a workload says what DataLoader is given: without an end of an epoch, and with some.
LOADER = (
    "loader-w4-b64-p2 or, with epochs that end (fork, spawn or forkserver; 1 worker or more, batches of 80 images or "
    "fewer), loader-w2-b32-p2-spawn-persistent"
)


def add_options(parser: Parser) -> None:
    group = parser.add_argument_group("a command of your own")
    group.add_argument("--command", dest="user_command", metavar="COMMAND",
                       help="measure this training instead of a workload; it starts in this folder")  # fmt: skip
    group.add_argument("--metric", metavar="METRIC", advanced=True,
                       help="find steps by a regular expression: its lines end a step or, with a group, hold the time "
                       "or rate of one; or by a path into JSON lines, e.g. $.step_time (default: the whole command is "
                       "one step)")  # fmt: skip
    group.add_argument("--unit", metavar="UNIT", advanced=True,
                       help=f"read the metric's number in this unit: {', '.join(CHOICES)}; auto reads the unit behind "
                       "each number (default: s)")  # fmt: skip
    group.add_argument("--optimizer-steps", metavar="N", type=count, advanced=True,
                       help="time N steps of the torch optimizer, without a metric, then end the command")  # fmt: skip
    group.add_argument("--warmup-lines", metavar="N", type=count, advanced=True,
                       help="ignore the first N readings of the metric, or N steps of the optimizer (default with "
                       f"--optimizer-steps: {WARMUP_STEPS})")  # fmt: skip
    group.add_argument("--loss-metric", metavar="METRIC", advanced=True,
                       help="compare losses: a regular expression with a group around the loss, or a path into JSON "
                       "lines, e.g. $.loss (default: losses are not compared)")  # fmt: skip


def from_args(arguments: argparse.Namespace) -> tuple[str, UserCommand] | None:
    """The command that the user gave, with a name for it, or None for a workload of the kit's.

    Raises InputError for options that don't go together, and for what is no command, metric, unit or workload file.
    """
    if arguments.user_command is None:
        is_file = _is_file(arguments.workload)
        there, nowhere = f"is a key of {arguments.workload}; write it there", "means nothing without --command"
        why = there if is_file else f"{nowhere}; add it, or leave this out"
        refuse(arguments, ("metric", "unit", "warmup_lines", "loss_metric", "optimizer_steps"), why)
        if not is_file:
            return None
        found = load(Path(arguments.workload))
    else:
        if arguments.workload is not None:
            raise InputError("--command and --workload both say what to measure; leave one out")
        found = _from_options(arguments)
    for name in NOT_WITH_IT:
        fix = "give --warmup-lines" if name == "warmup_steps" else "give the command options of its own"
        refuse(arguments, [name], f"means nothing to a command of your own; leave it out, and {fix}")
    return found


def is_given(arguments: argparse.Namespace) -> bool:
    """Whether it is a command of the user's own that is to be measured."""
    return arguments.user_command is not None or _is_file(arguments.workload)


def _is_file(workload: str | None) -> bool:
    return workload is not None and Path(workload).suffix in SUFFIXES


def known_workload(text: str) -> str:
    """For argparse: the name of a workload, ``all``, or a workload file's. Raises ArgumentTypeError."""
    if text == EVERY or find(text) is not None or _is_file(text):
        return text
    if text.startswith("loader-"):
        raise argparse.ArgumentTypeError(f"no settings of the loader in '{text}'; write them as {LOADER}")
    known = ", ".join(WORKLOADS)
    raise argparse.ArgumentTypeError(
        f"no workload '{text}'{suggestion(text, WORKLOADS)}; there are: {known}, and a file like mine.yaml"
    )


def _from_options(arguments: argparse.Namespace) -> tuple[str, UserCommand]:
    try:
        argv = words(arguments.user_command)
    except ValueError as error:
        raise InputError(f"--command {' '.join(arguments.user_command.splitlines())}: {error}") from None
    if not argv:
        raise InputError("--command is empty; give what starts your training, as 'python train.py'")
    if arguments.optimizer_steps is not None:
        why = "means nothing with --optimizer-steps, which needs no pattern; leave one out"
        refuse(arguments, ("metric", "unit"), why)
    elif arguments.metric is None:
        refuse(arguments, ("unit",), "means nothing without --metric; add it, or leave this out")
        why = "means nothing without --metric or --optimizer-steps; add one, or leave this out"
        refuse(arguments, ("warmup_lines",), why)
    unit = arguments.unit
    if unit is not None and unit not in CHOICES:
        raise InputError(f"--unit {unit}: no such unit{suggestion(unit, CHOICES)}; there are: {', '.join(CHOICES)}")
    if arguments.metric is not None:
        try:
            require_metric(arguments.metric, unit)
        except MetricError as error:
            raise InputError(f"--metric '{arguments.metric}' {error}") from None
    if arguments.loss_metric is not None:
        try:
            parse_losses(arguments.loss_metric)
        except MetricError as error:
            raise InputError(f"--loss-metric '{arguments.loss_metric}' {error}") from None
    warmup = arguments.warmup_lines or (0 if arguments.optimizer_steps is None else WARMUP_STEPS)
    name = shortened(shlex.join(argv))
    read = (arguments.metric, unit or "s", warmup, arguments.loss_metric, arguments.optimizer_steps)
    return name, UserCommand(tuple(argv), str(Path.cwd().resolve()), *read)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
