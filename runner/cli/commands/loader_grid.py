"""``envkit loader-grid [PROFILE]``: how long input takes with which settings of DataLoader, as a table and a plot."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from runner import engines
from runner.analysis.summary import summarise
from runner.bench import record
from runner.bench.plan import REFERENCE_PROFILE, Arm
from runner.cli import measuring, measuring_options
from runner.cli.arguments import counts, refuse
from runner.common import atomic
from runner.common.errors import MEASURED, InputError
from runner.report import grid, pictures, terminal
from runner.worker.workloads.loader import Settings, settings_of

WORKERS, BATCHES, PREFETCH = (0, 1, 2, 4), (16, 32, 64, 128), (2,)
BLOCKS = 3
PICTURE = "grid.png"
# What says how to train other workloads than the loader with its settings.
NOT_HERE = (
    "workload", "user_command", "metric", "unit", "warmup_lines", "loss_metric", "full", "epochs", "until", "scale",
    "data",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="?",
                        help=f"name of a profile, or a YAML file (default: {REFERENCE_PROFILE})")  # fmt: skip
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    group = parser.add_argument_group("the grid")
    group.add_argument("--workers", metavar="LIST", type=counts(0),
                       help=f"numbers of DataLoader workers (default: {_listed(WORKERS)})")  # fmt: skip
    group.add_argument("--batches", metavar="LIST", type=counts(1),
                       help=f"sizes of a batch, in images (default: {_listed(BATCHES)})")  # fmt: skip
    group.add_argument("--prefetch", metavar="LIST", type=counts(1),
                       help=f"batches that each worker makes ahead (default: {_listed(PREFETCH)})")  # fmt: skip
    group.add_argument("--pin-memory", action="store_true",
                       help="measure each with pinned memory too, which takes an accelerator")  # fmt: skip
    measuring_options.add(parser, budget=f"{BLOCKS} blocks, however long they take", refused=NOT_HERE)


def run(arguments: argparse.Namespace) -> int:
    how, tell = measuring.invocation(arguments, resumed_by="loader-grid"), partial(_tell, as_json=arguments.json)
    if arguments.resume is not None:
        return measuring.resume_given(arguments, how, tell)
    _require(arguments)
    profile = arguments.profile or REFERENCE_PROFILE
    arms = [Arm(one.workload, profile, arguments.engine or "local", one.workload) for one in cells(arguments)]
    asked = measuring_options.specification(arguments, f"loader-grid-{Path(profile).stem}", arms)
    asked = replace(asked, workload="loader")
    if arguments.blocks is None and arguments.budget is None:
        if arguments.half_width is not None:
            raise InputError(f"--half-width means nothing to {BLOCKS} blocks, which never stop early; add --budget")
        asked = replace(asked, blocks=BLOCKS)
    return measuring.run(asked, how, tell)


def cells(arguments: argparse.Namespace) -> list[Settings]:
    """The grid's cells: without workers nothing is made ahead, and there is one for each size of a batch."""
    found = []
    for pin in (False, True) if arguments.pin_memory else (False,):
        for workers in arguments.workers or WORKERS:
            for prefetch in (arguments.prefetch or PREFETCH) if workers else (0,):
                found += [Settings(workers, batch, prefetch, pin) for batch in arguments.batches or BATCHES]
    return found


def _require(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that mean nothing here, for too few cells, and for settings that can't be."""
    refuse(arguments, NOT_HERE, "means nothing to loader-grid, which measures the loader; leave it out")
    if arguments.prefetch and not any(arguments.workers or WORKERS):
        raise InputError("--prefetch means nothing without workers; leave it out, or give more --workers")
    wanted = cells(arguments)
    for one in wanted:
        if settings_of(one.workload) != one:
            raise InputError(f"{one.workload}: too large a number; give fewer workers, or smaller batches")
    if len(wanted) < 2:
        raise InputError("loader-grid compares settings, and this is one; give more --workers, --batches or --prefetch")


def _tell(folder: Path, as_json: bool) -> int:
    events = record.read(folder)
    with record.reading(folder):
        summary = summarise(events)
        drawn = pictures.png(summary)
    path = folder / PICTURE
    atomic.write(path, drawn)
    if as_json:
        print(json.dumps({"cells": grid.to_json(summary), "record": str(folder), "picture": str(path)}))
    else:
        out = terminal.console()
        terminal.show(summary, str(folder), out)
        terminal.item(out, "picture", str(path))
    return MEASURED


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
