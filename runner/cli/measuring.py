"""What all commands that measure have in common: starting or resuming a run, reporting it, and the exit status."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner import engines
from runner.analysis.summary import Summary, summarise
from runner.bench import measure, record, room
from runner.bench.context import recorded_context
from runner.bench.measure import Job
from runner.bench.plan import Plan
from runner.bench.prepare import begin, prepare
from runner.bench.record import Event, Record
from runner.bench.requirements import require_nodes
from runner.bench.room import TooShort
from runner.bench.specification import Specification
from runner.cli.arguments import refuse_others
from runner.common.errors import FAILED, INTERRUPTED, MEASURED, InputError
from runner.common.folders import quoted, short
from runner.common.machine_lock import machine_lock
from runner.common.progress import Progress
from runner.profiles.environment import Environment
from runner.profiles.profile import Profile
from runner.report import terminal
from runner.tuning import profile_file

RESULTS = Path("results")  # where one stands
# Given the folder of a run that was completed, says what it means in the report's place; returns the exit status.
Then = Callable[[Path], int]


@dataclass(frozen=True)
class Invocation:
    """How a run was asked for, which is no part of what it measures."""

    output: Path | None = None  # the folder of its record; None: a new one among the results
    json: bool = False
    resumed_by: str | None = "bench"  # the command that goes on with it; None: it is started again
    dry_run: bool = False
    # What --json prints of a run that was cut short, of a command that says more than the run; None: what the run has.
    cut_short: Callable[[Summary, Path], dict[str, Any]] | None = None


def invocation(arguments: argparse.Namespace, resumed_by: str | None = "bench") -> Invocation:
    return Invocation(arguments.output, arguments.json, resumed_by, arguments.dry_run)


def run(asked: Specification, how: Invocation, then: Then | None = None) -> int:
    """Measure; returns the exit status."""
    if how.dry_run:
        print(json.dumps(asked.anywhere().to_json(), indent=1))
        return MEASURED
    with machine_lock():
        engines.remove_leftovers()
        return run_locked(asked, how, then)


def run_locked(
    asked: Specification,
    how: Invocation,
    then: Then | None = None,
    left_out: Mapping[str, str] | None = None,
    made: Mapping[Path, Profile] | None = None,
) -> int:
    """``run``, for a command that holds the machine already and has removed what was left behind.

    ``left_out`` are the profiles that the command chose not to measure, and why; ``made`` are those that it made for
    the run, by the files in which they are kept.
    """
    prepared = prepare(asked, {str(path): one for path, one in (made or {}).items()})
    room.require(prepared.job.plan)
    with _needing_room(how), Record.create(how.output or new_folder(asked.title)) as opened:
        for path, one in (made or {}).items():
            profile_file.write(one, one.reason, one.source, path)
        events = [begin(opened, prepared, results())]
        if left_out:
            events.append(opened.append("left-out", profiles={**left_out}))
        if then is None and not how.json:  # else it is no verdict that the command reports
            say_of_few_blocks(prepared.job.plan)
        return _measure(prepared.job, opened, events, how, then)


def say_of_few_blocks(plan: Plan) -> None:
    """Say, before anything is measured, that so few blocks as were asked for can give no verdict."""
    blocks, fewest = plan.stopping.blocks, plan.fewest_blocks
    if 0 < blocks < fewest and plan.contrasts and not plan.one_run_each:
        compared = "a comparison" if plan.sharing == 1 else f"{plan.sharing} comparisons"
        say_no_verdict(blocks, f"{compared} can have no verdict with fewer than {fewest}")


def say_no_verdict(blocks: int, why: str) -> None:
    """It is no trouble, as many want no more than to see settings take effect."""
    print(f"--blocks {blocks}: {why}; that settings take effect is seen all the same", file=sys.stderr)


def resume(folder: Path, how: Invocation, then: Then | None = None) -> int:
    """Go on with the run in ``folder``; returns the exit status."""
    with machine_lock(), _needing_room(how):
        engines.remove_leftovers()
        return _resume(folder, how, then)


def resume_given(arguments: argparse.Namespace, how: Invocation, then: Then | None = None) -> int:
    """Go on with the run that ``--resume`` names. Raises InputError for options beside it."""
    why = "can't be given with --resume: the run keeps the settings it was started with"
    refuse_others(arguments, ("command", "resume", "json"), why)
    return resume(arguments.resume, how, then)


@contextlib.contextmanager
def _needing_room(how: Invocation) -> Iterator[None]:
    """Raise InputError, with what to do, where the record can't be written."""
    try:
        yield
    except record.RecordFull as error:
        go_on = f"what was recorded is safe: make room, then {_go_on_with(how, error.folder)}"
        fix = "make room, then start it again" if how.resumed_by is None else go_on
        raise InputError(f"{error}; {fix}") from None


def _resume(folder: Path, how: Invocation, then: Then | None) -> int:
    first = record.read(folder)[0]
    if first["schema"] < record.RESUMABLE:
        began = "an earlier version began this run, by other rules"
        raise InputError(f"--resume {folder}: {began}; start a new run")
    with record.reading(folder):
        plan = Plan.from_json(first["plan"])
        environments = {name: Environment.from_json(document) for name, document in first["environments"].items()}
    require_nodes(plan.nodes, plan.reference.engine)
    context = recorded_context(folder, first, plan)
    with Record.reopen(folder) as opened:
        events = record.read(folder)  # again, now that nobody else can be writing
        events.append(opened.append("resume", command=sys.argv))
        job = Job(plan, environments, context.engines, context.inherited, context.kept)
        return _measure(job, opened, events, how, then)


def _measure(job: Job, opened: Record, events: list[Event], how: Invocation, then: Then | None) -> int:
    """Measure, record how it ended, report, and return the exit status."""
    folder = opened.path.parent
    try:
        stopping = job.plan.stopping
        with Progress(0.0 if job.plan.epochs or stopping.blocks else stopping.budget_s, quiet=how.json) as progress:
            reason = measure.measure(job, opened, events, progress)
    except KeyboardInterrupt:
        reason = measure.INTERRUPTED
    events.append(opened.append("end", reason=reason))
    summary = summarise(events)
    status = FAILED if reason == measure.FAILED or summary.not_in_effect or summary.not_reached else MEASURED
    unfinished = reason in (measure.INTERRUPTED, measure.TOO_SHORT)
    if then is not None and not unfinished and status == MEASURED:
        return then(folder)
    if how.json:
        own = how.cut_short(summary, folder) if how.cut_short and unfinished else summary.to_json()
        print(json.dumps({**own, "record": str(folder)}))
    else:
        terminal.show(summary, str(short(folder)), terminal.console())
    if reason == measure.TOO_SHORT:
        found = room.need(events, job.plan)
        assert found is not None, "a worker ended"
        again = "" if how.resumed_by is None else f", or go on with: {_go_on_with(how, folder)}"
        raise TooShort(f"{room.refusal(found, job.plan)}{again}")
    if reason == measure.INTERRUPTED:
        # a run that nothing goes on with is so short that it is begun anew
        again = "start it again" if how.resumed_by is None else f"go on with: {_go_on_with(how, folder)}"
        print(f"envkit: interrupted; {again}", file=sys.stderr)
        return INTERRUPTED
    return status


def _go_on_with(how: Invocation, folder: Path) -> str:
    return f"envkit {how.resumed_by} --resume {quoted(folder)}"


def results() -> Path:
    """The folder of runs that nobody named a folder for."""
    return RESULTS.absolute()


def new_folder(title: str) -> Path:
    return results() / f"{time.strftime('%Y%m%d-%H%M%S')}-{title}"
