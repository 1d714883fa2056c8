"""``envkit loader-grid [PROFILE]``: how long input takes with which settings of DataLoader, as a table and a plot.

With ``--start-method`` or ``--persistent-workers``: what the end of an epoch costs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from envkit.analysis.result import conclude
from envkit.bench import record
from envkit.bench.arms import Arm, View
from envkit.bench.run import read
from envkit.bench.study import REFERENCE_PROFILE
from envkit.cli import measuring, measuring_options, user_command
from envkit.cli.arguments import counts, no_effect, refuse, words_of
from envkit.cli.commands import messages
from envkit.cli.commands.help_messages import LoaderGridBudget
from envkit.cli.messages import OptionAlone
from envkit.cli.parser import Parser
from envkit.common import atomic, extras
from envkit.common.errors import MEASURED, InputError
from envkit.common.messages import MissingExtra
from envkit.rendering import text
from envkit.report import epoch_ends, grid, model, pictures, terminal
from envkit.worker.workloads import find, loader, loader_epochs
from envkit.worker.workloads.loader import Settings

WORKERS, BATCHES, PREFETCH = (0, 1, 2, 4), (16, 32, 64, 128), (2,)
# Of what is measured with ends of epochs.
EPOCH_WORKERS, EPOCH_BATCHES = (2,), (32,)
PERSISTENT = {"no": False, "yes": True}
GRID_OPTIONS, EPOCH_OPTIONS = ("--workers", "--batches", "--prefetch"), ("--start-method", "--persistent-workers")
BLOCKS = 3
PICTURE = "grid.png"
# What says how to train other workloads than the loader with its settings.
NOT_HERE = (
    "workload", "user_command", *user_command.OPTIONS, "full", "epochs", "until", "scale", "data",
)  # fmt: skip


def add_arguments(parser: Parser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="?",
                        help=f"name of a profile, or a YAML file (default: {REFERENCE_PROFILE})")  # fmt: skip
    group = parser.add_argument_group("the grid")
    group.add_argument("--workers", metavar="LIST", type=counts(0),
                       help=f"measure these numbers of DataLoader workers (default: {_listed(WORKERS)})")  # fmt: skip
    group.add_argument("--batches", metavar="LIST", type=counts(1),
                       help=f"measure these batch sizes, in images (default: {_listed(BATCHES)})")  # fmt: skip
    group.add_argument("--prefetch", metavar="LIST", type=counts(1), advanced=True,
                       help=f"let each worker make this many batches ahead (default: {_listed(PREFETCH)})")  # fmt: skip
    group.add_argument("--pin-memory", action="store_true", advanced=True,
                       help="measure each setting with pinned memory too; needs an accelerator")  # fmt: skip
    group = parser.add_argument_group(
        "ends of epochs",
        "Either option measures the time to begin the next epoch, by default with "
        f"{_listed(EPOCH_WORKERS)} workers and batches of {_listed(EPOCH_BATCHES)}.",
    )
    group.add_argument("--start-method", metavar="LIST", type=words_of(loader_epochs.STARTS, "start method"),
                       help="start DataLoader's workers by these methods: "
                       f"{', '.join(loader_epochs.STARTS)} (default: all)")  # fmt: skip
    group.add_argument("--persistent-workers", metavar="LIST", type=words_of(tuple(PERSISTENT), "answer"),
                       help="yes: keep workers between epochs; no: start new ones (default: both)")  # fmt: skip
    measuring_options.add(parser, budget=text(LoaderGridBudget(BLOCKS)), refused=NOT_HERE)


def run(arguments: argparse.Namespace) -> int:
    invocation, tell = measuring.invocation(arguments, resumed_by="loader-grid"), partial(_tell, as_json=arguments.json)
    if measuring.goes_on_alone(arguments):
        return measuring.resume(arguments.resume, invocation, tell)
    _require(arguments)
    profile = arguments.profile or REFERENCE_PROFILE
    arms = [Arm(name, profile, arguments.engine or "local", name) for name in workloads(arguments)]
    study = measuring_options.study(arguments, f"loader-grid-{Path(profile).stem}", arms, view=View.LOADERS)
    study = replace(study, workload="loader")
    if arguments.blocks is None and arguments.budget is None:
        if arguments.half_width is not None:
            raise InputError(OptionAlone("--half-width", "--budget"))
        study = study.with_stopping(blocks=BLOCKS)
    return measuring.run(study, invocation, tell)


def ends_epochs(arguments: argparse.Namespace) -> bool:
    return bool(arguments.start_method or arguments.persistent_workers)


def cells(arguments: argparse.Namespace) -> list[Settings]:
    """The grid's cells: without workers nothing is made ahead, and there is one for each size of a batch."""
    usual = (EPOCH_WORKERS, EPOCH_BATCHES) if ends_epochs(arguments) else (WORKERS, BATCHES)
    settings = []
    for pin in (False, True) if arguments.pin_memory else (False,):
        for workers in arguments.workers or usual[0]:
            for prefetch in (arguments.prefetch or PREFETCH) if workers else (0,):
                settings += [Settings(workers, batch, prefetch, pin) for batch in arguments.batches or usual[1]]
    return settings


def workloads(arguments: argparse.Namespace) -> list[str]:
    """Return what is trained, by name: a cell, or one of each start method with workers that stay or don't."""
    grid_cells = cells(arguments)
    if not ends_epochs(arguments):
        return [cell.workload for cell in grid_cells]
    starts = arguments.start_method or loader_epochs.STARTS
    stay = [PERSISTENT[word] for word in arguments.persistent_workers or PERSISTENT]
    each = [(cell, start, persistent) for cell in grid_cells for start in starts for persistent in stay]
    return [loader_epochs.Settings(*settings).workload for settings in each]


def _require(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that mean nothing here, for too few cells, and for settings that can't be."""
    refuse(arguments, NOT_HERE, "loader-grid")
    if arguments.prefetch and not any(arguments.workers or WORKERS):
        raise InputError(no_effect("--prefetch", "--workers 0"))
    if ends_epochs(arguments):
        _require_epochs(arguments, cells(arguments))
    wanted = workloads(arguments)
    for name in wanted:
        if find(name) is None:
            raise InputError(messages.TooLargeSettings(name))
    if len(wanted) < 2:
        raise InputError(messages.OneCell((*GRID_OPTIONS, *(EPOCH_OPTIONS if ends_epochs(arguments) else ()))))


def _require_epochs(arguments: argparse.Namespace, wanted: Sequence[Settings]) -> None:
    """Raise InputError if there are no workers to start, or a sample is shorter than an epoch."""
    option_name = EPOCH_OPTIONS[0 if arguments.start_method else 1]
    if not all(cell.workers for cell in wanted):
        raise InputError(no_effect(option_name, "--workers 0"))
    for cell in wanted:
        steps, most = loader.PICTURES // cell.batch, loader.PICTURES // loader_epochs.LEAST_STEPS
        if steps < loader_epochs.LEAST_STEPS:
            least = loader_epochs.LEAST_STEPS
            raise InputError(messages.FewBatchesInEpoch(cell.batch, loader.PICTURES, least, option_name, most))
        if arguments.steps and arguments.steps < steps:
            raise InputError(messages.FewStepsInSample(arguments.steps, cell.batch, steps))


def _tell(folder: Path, as_json: bool) -> int:
    with record.reading(folder):
        result = conclude(read(folder))
        drawn = pictures.png(result) if extras.is_there("matplotlib") else None
    path = folder / PICTURE
    if drawn is None:
        print(
            f"envkit: {text(MissingExtra('the picture', 'matplotlib', extras.EXTRAS['matplotlib']))}", file=sys.stderr
        )
    else:
        atomic.write(path, drawn, private=True)
    if as_json:
        table = [*grid.to_json(result), *epoch_ends.to_json(result)]
        print(json.dumps({"cells": table, "record": str(folder), "picture": drawn and str(path)}))
    else:
        out = terminal.console()
        terminal.show(model.report_of(result, str(folder)), out)
        if drawn is not None:
            terminal.item(out, "picture", str(path))
    return MEASURED


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
