"""Shared by ``envkit submit`` and ``envkit fleet``: a submission, from its first job to its last.

Each node has a record of its own in the submission's folder, which has one too: of its settings, its jobs and how they
ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envkit import __version__
from envkit.bench import record
from envkit.bench.messages import Interrupted
from envkit.bench.record import Event, Record
from envkit.cli import measuring, measuring_options, rank_options, submitted
from envkit.cli.arguments import count, duration, is_quiet, no_effect, node_names, option
from envkit.cli.ending import error
from envkit.cli.measuring_messages import NoRoom, NoRoomToStart
from envkit.cli.messages import OptionAlone
from envkit.cli.parser import Parser
from envkit.cli.submission_messages import (
    IS_SAFE,
    NOTHING_SUBMITTED,
    Cancelling,
    JobNotStarted,
    JobRefused,
    JobStillQueued,
    JointUnfinished,
    NodeOutOfService,
    NodesUnfinished,
    NotCancelled,
    PerhapsSubmitted,
    Replaced,
    ResumedByAnother,
    Submitted,
    UnfitFolderName,
)
from envkit.cluster.slurm import collect as collecting
from envkit.cluster.slurm import node_status, script, table
from envkit.cluster.slurm.collect import NodeResult, collect
from envkit.cluster.slurm.follow import Followed, NotStarted, View, follow
from envkit.cluster.slurm.settings import FILE_NAME, TOGETHER, Settings
from envkit.common import atomic, yamlfile
from envkit.common.errors import INTERRUPTED, MEASURED, InputError
from envkit.common.folders import quoted
from envkit.engines.slurm import client
from envkit.engines.slurm.client import NoAnswer, Refused
from envkit.messages import Message, message_of
from envkit.rendering import text
from envkit.tuning.session import SPACE_FILE
from envkit.tuning.shared_trials import FILE_NAME as JOURNAL
from envkit.tuning.shared_trials import storage_in
from envkit.tuning.study import TuningStudy

SUMMARY = "summary.json"
# What may change from one job of a submission to the next: how it queues, and not what it measures.
WITH_RESUME = ("command", "resume", "json", "quiet", "partition", "time_limit", "sbatch", "start_within", "detach")
# Options of a job, beside its nodes.
OF_JOB = ("partition", "time_limit", "sbatch", "start_within", "detach", "dry_run")
# A network file system shows another machine's files after some seconds.
FILES_PATIENCE_S = 10.0
# Prints what a submission found, of which the last argument is the document that is kept; returns an exit status.
Show = Callable[[Settings, Path, Sequence[NodeResult], dict[str, object]], int]


def add_arguments(parser: Parser, nodelist: str, together: str, nodes: str | None = None) -> None:
    """``nodelist``, ``together`` (of --nproc) and ``nodes`` are what the help says of these options.

    Without ``nodes`` there is no such option.
    """
    group = parser.add_argument_group("engine")
    group.add_argument("--engine", help=f"start workers with: {', '.join(submitted.OPTIONS)} (default: local)")
    add_job_options(parser, nodelist, nodes, advanced=False)
    rank_options.add_option(parser, together)
    rank_options.add_weak_option(parser)
    measuring_options.add(
        parser, budget=f"{measuring_options.BUDGET}; {rank_options.BUDGET}", refused=("image",), engine=None
    )


def add_job_options(parser: Parser, nodelist: str, nodes: str | None = None, advanced: bool = True) -> None:
    """Add the options of a job, by the same words in the help as above; all are ``advanced`` where a command usually
    measures on this machine."""
    group = parser.add_argument_group("job", advanced=True)
    if nodes is not None:
        group.add_argument("--nodes", metavar="N", type=count, advanced=advanced, help=nodes)
    group.add_argument("--nodelist", metavar="NODES", type=node_names, advanced=advanced, help=nodelist)
    group.add_argument("--partition", metavar="NAME", advanced=advanced,
                       help="use this partition (default: the cluster's default)")  # fmt: skip
    group.add_argument("--time-limit", metavar="TIME", type=duration,
                       help="limit the job's time, e.g. 30m (default: the budget and some reserve)")  # fmt: skip
    group.add_argument("--sbatch", metavar="OPTION", action="append",
                       help="pass another option to sbatch, e.g. account=physics; can be repeated")  # fmt: skip
    group.add_argument("--start-within", metavar="TIME", type=duration,
                       help="cancel a job that has not started after TIME, and say why it waits")  # fmt: skip
    group.add_argument("--detach", action="store_true",
                       help="submit and return; --resume DIR follows the job later")  # fmt: skip
    group.add_argument("--dry-run", action="store_true", help="print the batch script and submit nothing")


def is_given(arguments: argparse.Namespace) -> bool:
    """Return whether a command that can measure here measures, or resumes, on nodes.

    Raise InputError for options of a job without nodes.
    """
    if arguments.resume is not None:
        return record.is_submission(arguments.resume)
    if arguments.nodes is not None or arguments.nodelist is not None:
        return True
    for name in OF_JOB:
        if getattr(arguments, name):
            raise InputError(OptionAlone(option(name), "--nodes"))
    return False


def run(
    arguments: argparse.Namespace,
    show: Show,
    with_resume: Collection[str] = (),
    settings: Callable[[argparse.Namespace], Settings] = submitted.settings,
) -> int:
    """Submit, or go on; ``with_resume`` are options that may be given again besides those that all have.

    ``settings`` makes what is submitted of the options, and raises InputError.
    """
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a connection that is lost ends the view, and not the job
    try:
        if arguments.resume is None:
            return _start(arguments, show, settings)
        return _resume(arguments, show, {*WITH_RESUME, *with_resume}, settings)
    except record.RecordFull as error:  # a job that was submitted goes on all the same
        problem = message_of(error)
        begun = record.is_begun(error.folder)
        fix = NoRoom(problem, _go_on(arguments, error.folder)) if begun else NoRoomToStart(problem)
        raise InputError(fix) from None


def _start(arguments: argparse.Namespace, show: Show, make: Callable[[argparse.Namespace], Settings]) -> int:
    _require_following(arguments)
    if not arguments.dry_run:
        client.require()
    settings = make(arguments)
    title = settings.study.title if settings.tuning else f"{settings.by}-{settings.study.title}"
    folder = (arguments.output or measuring.new_folder(title)).absolute()
    if not str(folder).isprintable():
        raise InputError(UnfitFolderName(str(folder)))
    if arguments.dry_run:
        batch = script.render(settings, folder, _job_name(settings, 1), settings.nodes, settings.nodelist)
        print(json.dumps({"script": batch, "settings": settings.to_json()}) if arguments.json else batch.rstrip("\n"))
        return MEASURED
    submitted.require_on_cluster(settings, settings.nodelist)
    wanted, out = _in_service(settings, settings.nodelist)
    with Record.create(folder) as opened:
        if settings.tuning:
            _begin_tuning(settings.tuning, folder)
        first: dict[str, object] = {"schema": record.SCHEMA, "kit_version": __version__, "command": sys.argv}
        events = [opened.append_sealed("submit", **first, settings=settings.to_json())]
        try:
            job = _submit(settings, opened, events, settings.nodes, wanted, (), out)
        except Refused as error:
            _discard(folder)
            raise InputError(JobRefused(error.said, NOTHING_SUBMITTED)) from None
        except NoAnswer as error:
            raise InputError(PerhapsSubmitted(error.message, _go_on(arguments, folder))) from None
        if not arguments.json:
            submitted.say_of_few_blocks(settings)
        return _follow(settings, opened, job, arguments, show)


def _begin_tuning(tuning: TuningStudy, folder: Path) -> None:
    """Have what its nodes share. Raises InputError where they can't."""
    atomic.write(folder / SPACE_FILE, yamlfile.content(Path(tuning.space)), private=True)
    try:
        storage_in(folder)
    except InputError:
        _discard(folder)
        raise


def _require_following(arguments: argparse.Namespace) -> None:
    """Raise InputError for an option that takes a runner that stays, beside one by which it goes."""
    if arguments.detach and arguments.start_within:
        raise InputError(no_effect("--start-within", "--detach"))


def _discard(folder: Path) -> None:
    """Leave nothing of a submission that never was one."""
    for name in (FILE_NAME, script.NAME, record.FILE_NAME, SPACE_FILE, JOURNAL):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _resume(
    arguments: argparse.Namespace, show: Show, free: Collection[str], make: Callable[[argparse.Namespace], Settings]
) -> int:
    measuring.require_folder(arguments)
    _require_following(arguments)
    folder = arguments.resume.absolute()
    first = record.first(folder, "submit")
    with record.reading(folder):
        settings = Settings.from_json(first["settings"])
    if arguments.command != settings.by:
        again = f"envkit {settings.by} --resume {quoted(folder)}"
        raise InputError(ResumedByAnother(str(arguments.resume), again))
    if not measuring.is_alone(arguments, first, free):
        settings = submitted.again(arguments, first, settings, make)
    options = tuple(submitted.sbatch_option(word) for word in arguments.sbatch or ())
    settings = replace(
        settings,
        partition=arguments.partition or settings.partition,
        minutes=submitted.in_minutes(arguments.time_limit) if arguments.time_limit else settings.minutes,
        options=options or settings.options,
    )
    with Record.reopen(folder) as opened:
        events = record.read(folder, "submit")
        measuring.require_unchanged(folder, first, events)
        job = _unreported_job(settings, events)
        if job is not None:
            return _follow(settings, opened, job, arguments, show)  # it went on, or ended, while nobody looked
        results = collect(folder, settings, None)
        settled = [node.name for node in results if node.settled]
        missing = settings.runs - len(settled)
        if missing <= 0:
            return _report(settings, folder, None, results, arguments, show, interrupted=False)
        nodes, wanted, unwanted = _next_nodes(settings, folder, results, missing)
        submitted.require_on_cluster(settings, wanted)
        wanted, out = _in_service(settings, wanted)
        try:
            job = _submit(settings, opened, events, nodes, wanted, unwanted, out)
        except Refused as error:
            raise InputError(JobRefused(error.said, IS_SAFE, str(folder))) from None
        return _follow(settings, opened, job, arguments, show)


def _next_nodes(
    settings: Settings, folder: Path, results: Sequence[NodeResult], missing: int
) -> tuple[int, Sequence[str], Sequence[str]]:
    """How many nodes the next job takes, those that it must have, and those that it must not.

    It must have those that were asked for by name, and those with most samples so far, but for the latter that are out
    of service: others take their place. A run of several nodes together goes on where it was: on other ones its times
    could not be compared with those that it has. Raises InputError where those can't have it.
    """
    if settings.joint:
        return settings.nodes, _as_before(settings, folder) or settings.nodelist, ()
    settled = [node.name for node in results if node.settled]
    wanted = [name for name in settings.nodelist if name not in {*settled}]
    begun = [node for node in results if not node.settled and record.is_begun(folder / node.name)]
    begun.sort(key=lambda node: -node.samples)
    more = [node.name for node in begun if node.name not in settings.nodelist]
    out = client.out_of_service(more)
    for name, reason in out.items():
        print(f"envkit: {text(Replaced(name, reason))}", file=sys.stderr)
    return missing, [*wanted, *(name for name in more if name not in out)][:missing], settled


def _as_before(settings: Settings, folder: Path) -> list[str]:
    """Return the nodes that the run of several nodes together began on, if it did.

    Raise InputError if one of them is out of service.
    """
    place = folder / TOGETHER
    status = node_status.read(place)
    if status is None or not record.is_begun(place):
        return []
    nodes = submitted.hosts(status.nodes)
    for name, state in client.out_of_service(nodes).items():
        raise InputError(NodeOutOfService(name, state))
    return nodes


def _in_service(settings: Settings, wanted: Sequence[str]) -> tuple[Sequence[str], Mapping[str, str]]:
    """Return the nodes of a fleet that can start a job, and why the others can't: nothing waits for the latter."""
    return submitted.in_service(wanted) if settings.fleet else (wanted, {})


def _unreported_job(settings: Settings, events: Sequence[Event]) -> str | None:
    """A job that the runner did not see end, if Slurm still knows of it. Raises NoAnswer.

    It is known by its name: a number may have been noted by nobody, and be given to another job in time. A fleet
    that was not submitted to its end is begun anew.
    """
    kinds = ("submitting", "submitted", "ended")
    last = next((event for event in reversed(events) if event["event"] in kinds), None)
    if last is None or last["event"] == "ended":
        return None
    client.require()
    attempts = sum(event["event"] == "submitting" for event in events)
    job = client.find(_job_name(settings, attempts))
    if job is not None and settings.fleet and last["event"] == "submitting":
        _cancel(job)
        return None
    return job


def _job_name(settings: Settings, attempt: int) -> str:
    """Return the job's name, which later attempts look for."""
    return f"envkit-{settings.id}-{attempt}"


def _submit(
    settings: Settings,
    opened: Record,
    events: Sequence[Event],
    nodes: int,
    wanted: Sequence[str],
    unwanted: Sequence[str],
    out: Mapping[str, str],
) -> str:
    """The number of the new job, or the numbers. Raises Refused.

    ``out`` are nodes of a fleet that have none now, and why.
    """
    folder = opened.path.parent
    name = _job_name(settings, 1 + sum(event["event"] == "submitting" for event in events))
    batch = script.render(settings, folder, name, nodes, wanted, unwanted)
    settings.write(folder)  # again where it goes on: the file may have been edited
    atomic.write(folder / script.NAME, batch.encode(), private=True)
    fields = {"nodes": nodes, "wanted": [*wanted], "unwanted": [*unwanted], "out": {**out}}
    opened.append("submitting", name=name, **fields, script=batch)
    try:
        path = folder / script.NAME
        job = client.submit_each(path, wanted) if settings.fleet else client.submit(path)
    except KeyboardInterrupt:
        with contextlib.suppress(NoAnswer):
            if submitted_already := client.find(name):
                _cancel(submitted_already)
        raise
    opened.append("submitted", name=name, job=job)
    return job


def _follow(settings: Settings, opened: Record, job: str, arguments: argparse.Namespace, show: Show) -> int:
    """Until the job has ended, or was cancelled; returns the exit status."""
    folder = opened.path.parent
    go_on = _go_on(arguments, folder)
    if arguments.detach:
        document = json.dumps({"job": job, "record": str(folder)})
        print(document if arguments.json else text(Submitted(job, go_on)))
        return MEASURED
    interrupted = False
    with View(quiet=is_quiet(arguments)) as view:
        try:
            followed = follow(job, folder, view, settings.joint, settings.fleet, arguments.start_within)
        except NotStarted as error:
            problem: type[JobNotStarted] = JobStillQueued
            if _cancel(job):
                problem = JobNotStarted
                opened.append("ended", job=job, state="never started", nodes=[])
            raise InputError(problem(job, arguments.start_within, error.job.why, go_on)) from None
        except KeyboardInterrupt:
            view.say(Cancelling(job))
            _cancel(job)
            followed = follow(job, folder, view, settings.joint, settings.fleet)
            interrupted = True
    opened.append("ended", job=job, state=followed.states, nodes=[*followed.nodes])
    results = _collected(settings, folder, followed, _left_out(folder))
    return _report(settings, folder, followed, results, arguments, show, interrupted)


def _cancel(job: str) -> bool:
    """Cancel ``job``, and return whether Slurm took it; if not, print how to do it by hand."""
    try:
        client.cancel(job)
    except (Refused, NoAnswer) as error:
        print(f"envkit: {text(NotCancelled(job, error.message, tuple(job.split(','))))}", file=sys.stderr)
        return False
    return True


def _go_on(arguments: argparse.Namespace, folder: Path) -> str:
    """The command that goes on with a submission, and judges by what this one was to judge by."""
    judged = getattr(arguments, "judged", None)
    by = f" --profile {shlex.quote(judged)}" if judged else ""
    again = measuring.go_on_with(arguments.command, folder, "submit")
    return again if by in again else f"{again}{by}"


def _left_out(folder: Path) -> dict[str, str]:
    """The nodes of a fleet that were given no job the last time, and why."""
    events = [event for event in record.read(folder, "submit") if event["event"] == "submitting"]
    with record.reading(folder):
        return {**events[-1].get("out", {})}


def _collected(settings: Settings, folder: Path, followed: Followed, out: Mapping[str, str]) -> list[NodeResult]:
    """Return the results in the folder, once a network file system has had time to show them.

    Name the nodes that were left ``out``.
    """
    end = time.monotonic() + FILES_PATIENCE_S
    while True:
        results = collect(folder, settings, followed)
        if not collecting.may_come(results, followed) or time.monotonic() > end:
            break
        time.sleep(1)
    down = {**out, **client.out_of_service({*collecting.in_doubt(results), *out})}
    return collect(folder, settings, followed, down) if down else results


def _report(
    settings: Settings,
    folder: Path,
    followed: Followed | None,
    results: Sequence[NodeResult],
    arguments: argparse.Namespace,
    show: Show,
    interrupted: bool,
) -> int:
    """Print and keep what was found, and return the exit status."""
    status = collecting.status(results, settings.runs)
    document = collecting.document(folder, settings, followed, results)
    atomic.write(folder / SUMMARY, json.dumps(document).encode(), private=True)
    problem = _unfinished(settings, results, _go_on(arguments, folder), interrupted)
    shown = show(settings, folder, results, document if status == MEASURED else {**document, **error(problem)})
    for reason in table.problems(results):
        print(f"envkit: {text(reason)}", file=sys.stderr)
    if status == MEASURED:
        return shown
    print(f"envkit: {text(problem)}", file=sys.stderr)
    return INTERRUPTED if interrupted else status


def _unfinished(settings: Settings, results: Sequence[NodeResult], again: str, interrupted: bool) -> Message:
    """Return why a submission is not done; ``again`` is the command that goes on with it."""
    if interrupted:
        return Interrupted(again)
    if settings.joint:
        return JointUnfinished(again)
    return NodesUnfinished(sum(node.settled for node in results), settings.nodes, again)
