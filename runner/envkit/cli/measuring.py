"""Shared by all commands that measure: start or resume a run, report it, and set the exit status."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit import engines
from envkit.analysis.result import Result, conclude
from envkit.bench import decide, early_checks, measure, record, resuming, room, seal, writes
from envkit.bench.context import recorded_context
from envkit.bench.job import Job
from envkit.bench.messages import START_AGAIN, Interrupted, NotInEffect, TargetNotReached, WorkerFailed
from envkit.bench.prepare import Prepared, begin, prepare
from envkit.bench.private_values import hidden
from envkit.bench.problems import restored
from envkit.bench.record import Event, Record
from envkit.bench.requirements import require_nodes
from envkit.bench.room import TooShort
from envkit.bench.run import Run
from envkit.bench.study import Study
from envkit.cli.arguments import is_quiet, is_value, option
from envkit.cli.ending import end_with, error
from envkit.cli.measuring_messages import (
    NoRoom,
    NoRoomToStart,
    NoVerdictOfRun,
    OptionBesideResume,
    OutputElsewhere,
    RecordReplaced,
)
from envkit.common.errors import FAILED, INTERRUPTED, MEASURED, InputError
from envkit.common.folders import quoted, short
from envkit.common.machine_lock import machine_lock
from envkit.common.progress import Progress, say
from envkit.messages import Message, message_of
from envkit.profiles.environment import Environment
from envkit.profiles.profile import Profile
from envkit.rendering import text
from envkit.report import model, terminal
from envkit.tuning import profile_file
from envkit.worker.request import UserCommand

RESULTS = Path("results")  # where one stands
# Prints another report than the usual one, from the folder of a completed run. Returns the exit status.
Report = Callable[[Path], int]
Require = Callable[[Prepared], None]


@dataclass(frozen=True)
class Invocation:
    """How a run was asked for, which is no part of what it measures."""

    output: Path | None = None  # the folder of its record; None: a new one among the results
    json: bool = False
    quiet: bool = False  # show no progress
    resumed_by: str | None = "bench"  # the command that goes on with it; None: it is started again
    dry_run: bool = False
    resume: Path | None = None  # the folder of the record to go on with, of which this command is the intent
    # What --json prints of a run that was cut short, of a command that says more than the run; None: what the run has.
    cut_short: Callable[[Result, Path], dict[str, object]] | None = None


def invocation(arguments: argparse.Namespace, resumed_by: str | None = "bench") -> Invocation:
    """Return how the run was asked for. Raise InputError as ``require_folder`` does."""
    require_folder(arguments)
    quiet = is_quiet(arguments)
    return Invocation(arguments.output, arguments.json, quiet, resumed_by, arguments.dry_run, arguments.resume)


def require_folder(arguments: argparse.Namespace) -> None:
    """Raise InputError if --output names another folder than --resume."""
    output, resume = arguments.output, arguments.resume
    if output is not None and resume is not None and output.absolute() != resume.absolute():
        raise InputError(OutputElsewhere(str(output), str(resume)))


def run(study: Study, invocation: Invocation, report: Report | None = None, require: Require | None = None) -> int:
    """Measure and return the exit status. ``require`` may refuse the prepared run with InputError."""
    if invocation.dry_run:
        print(json.dumps(study.anywhere().to_json(), indent=1))
        return MEASURED
    if invocation.resume is None:
        early_checks.require(study, invocation.output)
    with machine_lock():
        engines.remove_leftovers()
        return run_locked(study, invocation, report, require=require)


def run_locked(
    study: Study,
    invocation: Invocation,
    report: Report | None = None,
    left_out: Mapping[str, Message] | None = None,
    made: Mapping[Path, Profile] | None = None,
    require: Require | None = None,
    advice: Mapping[str, object] | None = None,
) -> int:
    """``run``, for a command that holds the machine already and has removed what was left behind.

    ``left_out`` are the profiles that the command chose not to measure, and why; ``made`` are those that it made for
    the run, by the files in which they are kept. ``advice`` is what --json has of the advice before a race.
    """
    if invocation.resume is not None:
        with _needing_room(invocation):
            return _go_on_as_asked(study, invocation.resume, invocation, report, made or {})
    prepared = prepare(study, {str(path): made_profile for path, made_profile in (made or {}).items()})
    room.require(prepared.job.study)
    if require is not None:
        require(prepared)
    with _needing_room(invocation), Record.create(invocation.output or new_folder(study.title)) as opened:
        for path, made_profile in (made or {}).items():
            profile_file.write(made_profile, path, private=True)
        events = [begin(opened, prepared, results())]
        if left_out:
            events.append(
                opened.append("left-out", profiles={name: reason.to_json() for name, reason in left_out.items()})
            )
        if advice is not None:
            context = prepared.job.context
            events.append(opened.append("advice", **hidden({"document": advice}, context.kept, context.inherited)))
        if not invocation.quiet:
            say_of_shared(study.user_command)
        job = prepared.job
        if report is None and not invocation.quiet and job.study.lacks_blocks:  # else the command reports no verdict
            say_of_few_blocks(job.study.stopping.blocks, job.study.fewest_blocks, job.study.sharing)
        return _measure(job, opened, events, invocation, report)


def recorded_left_out(folder: Path) -> dict[str, Message]:
    """Return the profiles that a command left out when it began the run in ``folder``, and why."""
    with record.reading(folder):
        recorded = [event["profiles"] for event in record.read(folder) if event["event"] == "left-out"]
        return {str(name): restored(reason) for of_one in recorded for name, reason in of_one.items()}


def say_of_few_blocks(blocks: int, fewest: int, comparisons: int) -> None:
    """Say, before anything is measured, that so few ``blocks`` can give no verdict on so many ``comparisons``."""
    print(text(NoVerdictOfRun(blocks, comparisons, fewest)), file=sys.stderr)


def say_of_shared(command: UserCommand | None) -> None:
    """Name the links through which copies of a user's folder write elsewhere, before anything is measured."""
    if (message := writes.shared(command)) is not None:
        say(message)


def goes_on_alone(arguments: argparse.Namespace) -> bool:
    """Return whether --resume alone was given, for a run whose record carries this user's seal.

    Otherwise the command line says what to run, and the record must agree. Raise InputError if there is no record.
    """
    return arguments.resume is not None and is_alone(arguments, record.first(arguments.resume))


def is_alone(arguments: argparse.Namespace, first: Event, free: Collection[str] = ()) -> bool:
    """Return the same for a record that begins with ``first``; ``free`` are options that may stand beside --resume."""
    return not beside_resume(arguments, free) and seal.is_good(first)


def beside_resume(arguments: argparse.Namespace, free: Collection[str] = ()) -> list[str]:
    """Return the options beside --resume that say what to run, by argparse's names."""
    beside = ("command", "resume", "json", "quiet", "output", *free)
    return [name for name, value in vars(arguments).items() if name not in beside and is_value(value)]


def lacks_profile(arguments: argparse.Namespace, needs: Message, kind: str = "run") -> InputError:
    """Return the error for a command without a PROFILE: what it ``needs``, or why --resume alone is not enough."""
    if arguments.resume is None:
        return InputError(needs)
    first = record.first(arguments.resume, kind)
    if seal.is_good(first):
        return InputError(OptionBesideResume(option(beside_resume(arguments)[0])))
    return resuming.no_seal(arguments.resume, first, f"envkit {arguments.command} PROFILE OPTIONS")


def resume(folder: Path, invocation: Invocation, report: Report | None = None) -> int:
    """Go on with the run in ``folder`` by its record, and return the exit status.

    Raise InputError if the record carries no seal of this user's.
    """
    with machine_lock(), _needing_room(invocation):
        engines.remove_leftovers()
        first = record.first(folder)
        if not seal.is_good(first):
            command_line = f"envkit {invocation.resumed_by or 'bench'} PROFILE OPTIONS"
            raise resuming.no_seal(folder, first, command_line)
        with record.reading(folder):
            study = Study.from_json(first["study"])
            environments = {name: Environment.from_json(document) for name, document in first["environments"].items()}
        require_nodes(study.nodes, study.reference.engine)
        context = recorded_context(folder, first, study)
        job = Job(study, environments, context)
        return _go_on(folder, first, job, invocation, report)


def _go_on_as_asked(
    study: Study, folder: Path, invocation: Invocation, report: Report | None, made: Mapping[Path, Profile]
) -> int:
    """Go on with the run in ``folder`` by ``study``, prepared here as a new run is."""
    first = record.first(folder)
    with record.reading(folder):
        seed = resuming.seed_of(folder, first["study"])
    study = replace(study, seed=seed if study.seed is None else study.seed)
    prepared = prepare(study, {str(path): made_profile for path, made_profile in made.items()})
    job = prepared.job
    resuming.require_same_run(folder, first, job.study, job.environments, job.context)
    return _go_on(folder, first, job, invocation, report)


def _go_on(folder: Path, first: Event, job: Job, invocation: Invocation, report: Report | None) -> int:
    """Measure what the record in ``folder`` lacks; ``first`` is its first event, which the caller checked."""
    with Record.reopen(folder) as opened:
        events = record.read(folder)  # again, now that nobody else can be writing
        require_unchanged(folder, first, events)
        resuming.require_numbers(folder, events)
        with record.reading(folder):
            model.report_of(conclude(Run.parse(events)), str(folder), full=False)  # else measuring more is in vain
        events.append(opened.append("resume", command=sys.argv))
        return _measure(job, opened, events, invocation, report)


@contextlib.contextmanager
def _needing_room(invocation: Invocation) -> Iterator[None]:
    """Raise InputError, with what to do, where the record can't be written."""
    try:
        yield
    except record.RecordFull as error:
        problem = message_of(error)
        goes_on = invocation.resumed_by is not None and record.is_begun(error.folder)
        again = _go_on_with(invocation, error.folder) if goes_on else None
        raise InputError(NoRoomToStart(problem) if again is None else NoRoom(problem, again)) from None


def require_unchanged(folder: Path, first: Event, events: Sequence[Event]) -> None:
    """Raise InputError if the record no longer begins with ``first``. Call this once the record is locked."""
    if events[0] != first:
        raise InputError(RecordReplaced(str(folder)))


def _measure(job: Job, opened: Record, events: list[Event], invocation: Invocation, report: Report | None) -> int:
    """Measure, record how it ended, report, and return the exit status."""
    folder = opened.path.parent
    try:
        stopping = job.study.stopping
        with Progress(
            0.0 if job.study.epochs or stopping.blocks else stopping.budget_s, quiet=invocation.quiet
        ) as progress:
            reason = measure.measure(job, opened, events, progress)
    except KeyboardInterrupt:
        reason = decide.INTERRUPTED
    events.append(opened.append("end", reason=reason))
    result = conclude(Run.parse(events))
    status = FAILED if reason == decide.FAILED or result.not_in_effect or result.not_reached else MEASURED
    unfinished = reason in (decide.INTERRUPTED, decide.TOO_SHORT)
    if report is not None and not unfinished and status == MEASURED:
        return report(folder)
    document = invocation.cut_short(result, folder) if invocation.cut_short else model.to_json(result, str(folder))
    document = {**document, "record": str(folder)}
    if not invocation.json:
        terminal.show(model.report_of(result, str(short(folder))), terminal.console())
    if reason == decide.TOO_SHORT:
        need = room.need(Run.parse(events).measuring(job.study))
        assert need is not None, "a worker ended"
        again = None if invocation.resumed_by is None else _go_on_with(invocation, folder)
        raise TooShort(room.refusal(need, job.study, again), document)
    if reason == decide.INTERRUPTED:
        return end_with(_interrupted(invocation, folder), INTERRUPTED, invocation.json, document)
    if invocation.json:
        problem = _problem(reason, result)
        print(json.dumps(document if problem is None else {**document, **error(problem)}))
    return status


def _interrupted(invocation: Invocation, folder: Path) -> Message:
    return (
        Interrupted(fix=START_AGAIN) if invocation.resumed_by is None else Interrupted(_go_on_with(invocation, folder))
    )


def _problem(reason: str, result: Result) -> Message | None:
    """Return why a run that ended has exit status 1, or None. The report for people says it in its own words."""
    no_effect = tuple(arm.arm for arm in result.measured if not arm.in_effect)
    if reason == decide.FAILED:
        return WorkerFailed() if result.failures else NotInEffect(no_effect)  # a race goes on without such an arm
    if result.not_in_effect:
        return NotInEffect(no_effect)
    return TargetNotReached() if result.not_reached else None


def _go_on_with(invocation: Invocation, folder: Path) -> str:
    return go_on_with(str(invocation.resumed_by), folder)


def go_on_with(command: str, folder: Path, kind: str = "run") -> str:
    """Return the command that goes on with a record: --resume alone, or with the whole command if it has no seal."""
    alone = f"envkit {command} --resume {quoted(folder)}"
    with contextlib.suppress(InputError):
        if not seal.is_good(record.first(folder, kind)):
            options, training = record.split_command(sys.argv[1:])
            resume_option = (
                [] if any(word.partition("=")[0] == "--resume" for word in options) else ["--resume", str(folder)]
            )
            return shlex.join(["envkit", *options, *resume_option, *training])
    return alone


def results() -> Path:
    """The folder of runs that nobody named a folder for."""
    return RESULTS.absolute()


def new_folder(title: str) -> Path:
    """Return a folder that is not there yet, for a run that nobody named one for."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{title}"
    numbered = (results() / f"{name}-{number}" for number in itertools.count(2))  # runs that began in the same second
    return next(folder for folder in itertools.chain([results() / name], numbered) if not folder.exists())
