"""``runner submit PROFILE...``: measure on nodes of a Slurm cluster, each with a record of its own in one folder."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.text import Text

from runner import __version__, atomic, record, report
from runner.arguments import count, duration
from runner.commands import measuring, submitted
from runner.errors import BAD_INPUT, INTERRUPTED, MEASURED, InputError
from runner.record import Event, Record
from runner.slurm import client, roll_call, script, table
from runner.slurm import collect as collecting
from runner.slurm.client import Job, NoAnswer, Refused
from runner.slurm.collect import ABSENT, NodeResult, collect
from runner.slurm.follow import Followed, NotStarted, follow
from runner.slurm.settings import FILE_NAME, Settings
from runner.slurm.view import View

SUMMARY = "summary.json"
# What may change from one job of a submission to the next: how it queues, and not what it measures.
WITH_RESUME = ("command", "resume", "json", "partition", "time", "sbatch", "start_within", "detach")
# A network file system shows another machine's files after some seconds.
FILES_PATIENCE_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="*", help="name of a profile, or a YAML file")
    parser.add_argument("--engine", help=f"what starts the workers: {' or '.join(submitted.OPTIONS)} (default: local)")
    group = parser.add_argument_group("job")
    group.add_argument("--nodes", metavar="N", type=count, help="measure on so many nodes (default: 1)")
    group.add_argument("--nodelist", metavar="NODES", help="on these among them, as node1,node2 or node[1-2]")
    group.add_argument("--partition", metavar="NAME", help="of the cluster (default: the cluster's own)")
    group.add_argument("--time", metavar="TIME", type=duration,
                       help="time limit, e.g. 30m (default: from the budget, with room to spare)")  # fmt: skip
    group.add_argument("--sbatch", metavar="OPTION", action="append",
                       help="another option of sbatch, e.g. account=physics; can be repeated")  # fmt: skip
    group.add_argument("--start-within", metavar="TIME", type=duration,
                       help="cancel the job and say why it waits, if it has not started by then")  # fmt: skip
    group.add_argument("--detach", action="store_true", help="submit and return; --resume DIR follows the job later")
    group.add_argument("--dry-run", action="store_true", help="print the batch script, and submit nothing")
    measuring.add_measuring_options(parser)


def run(arguments: argparse.Namespace) -> int:
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a connection that is lost ends the view, and not the job
    return _start(arguments) if arguments.resume is None else _resume(arguments)


def _start(arguments: argparse.Namespace) -> int:
    if not arguments.dry_run:
        client.require()
    settings = submitted.settings(arguments)
    folder = (arguments.output or measuring.new_folder(f"submit-{settings.title}")).absolute()
    if not str(folder).isprintable():
        raise InputError(f"--output {str(folder)!r}: sbatch can't take such a name; give a plain one")
    if arguments.dry_run:
        print(script.render(settings, folder, _job_name(settings, 1), settings.nodes, settings.nodelist), end="")
        return MEASURED
    submitted.require_on_cluster(settings)
    with Record.create(folder) as opened:
        settings.write(folder)
        first = {"schema": record.SCHEMA, "runner_version": __version__, "command": sys.argv}
        events = [opened.append("submit", **first, settings=settings.to_json())]
        try:
            job = _submit(settings, opened, events, settings.nodes, settings.nodelist, ())
        except Refused as error:
            _discard(folder)
            raise InputError(f"sbatch refuses the job: {error}; nothing was submitted") from None
        return _follow(settings, opened, job, arguments)


def _discard(folder: Path) -> None:
    """Leave nothing of a submission that never was one."""
    for name in (FILE_NAME, script.NAME, record.FILE_NAME):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _resume(arguments: argparse.Namespace) -> int:
    for name, value in vars(arguments).items():
        if name not in WITH_RESUME and value not in (None, False, []):
            given = "PROFILE" if name == "profile" else f"--{name.removeprefix('own_').replace('_', '-')}"
            raise InputError(f"{given} can't be given with --resume: the submission keeps what it was started with")
    folder = arguments.resume.absolute()
    first = record.first(folder, "submit")
    with record.understood(folder):
        settings = Settings.from_json(first["settings"])
    options = tuple(submitted.sbatch_option(text) for text in arguments.sbatch or ())
    settings = replace(
        settings,
        partition=arguments.partition or settings.partition,
        minutes=submitted.time_limit(arguments) if arguments.time else settings.minutes,
        options=options or settings.options,
    )
    with Record.reopen(folder) as opened:
        events = record.read(folder, "submit")
        job = _unreported_job(events)
        if job is not None:
            return _follow(settings, opened, job, arguments)  # it went on, and may have ended, while nobody looked
        results = collect(folder, settings, None)
        settled = [one.name for one in results if one.settled]
        left = settings.nodes - len(settled)
        if left <= 0:
            return _report(settings, folder, None, results, arguments, interrupted=False)
        submitted.require_on_cluster(settings)
        try:
            job = _submit(settings, opened, events, left, _to_go_on(settings, results, left), settled)
        except Refused as error:
            raise InputError(f"sbatch refuses the job: {error}; what was measured is safe in {folder}") from None
        return _follow(settings, opened, job, arguments)


def _to_go_on(settings: Settings, results: Sequence[NodeResult], left: int) -> list[str]:
    """The nodes that the next job must have: those that were asked for by name, or those with most samples so far."""
    begun = sorted((one for one in results if not one.settled and one.summary), key=lambda one: -one.samples)
    if settings.nodelist:
        return [name for name in settings.nodelist if name not in {one.name for one in results if one.settled}]
    return [one.name for one in begun[:left]]


def _unreported_job(events: Sequence[Event]) -> str | None:
    """A job that the runner did not see end, if Slurm still knows of it. Raises NoAnswer.

    It is known by its name: a number may have been noted by nobody, and be given to another job in time.
    """
    last = next((event for event in reversed(events) if event["event"] in ("submitting", "ended")), None)
    if last is None or last["event"] == "ended":
        return None
    client.require()
    return client.find(str(last["name"]))


def _job_name(settings: Settings, attempt: int) -> str:
    """By which the job is found again."""
    return f"envkit-{settings.id}-{attempt}"


def _submit(
    settings: Settings, opened: Record, events: list[Event], nodes: int, wanted: Sequence[str], unwanted: Sequence[str]
) -> str:
    """The number of the new job. Raises Refused."""
    folder = opened.path.parent
    name = _job_name(settings, 1 + sum(event["event"] == "submitting" for event in events))
    text = script.render(settings, folder, name, nodes, wanted, unwanted)
    atomic.write(folder / script.NAME, text.encode())
    opened.append("submitting", name=name, nodes=nodes, wanted=[*wanted], unwanted=[*unwanted], script=text)
    try:
        job = client.submit(folder / script.NAME)
    except KeyboardInterrupt:
        if submitted_already := client.find(name):
            client.cancel(submitted_already)
        raise
    opened.append("submitted", name=name, job=job)
    return job


def _follow(settings: Settings, opened: Record, job: str, arguments: argparse.Namespace) -> int:
    """Until the job has ended, or was cancelled; returns the exit status."""
    folder = opened.path.parent
    go_on = f"runner submit --resume {_shown(folder)}"
    if arguments.detach:
        print(f"job {job} was submitted; follow it with: {go_on}")
        return MEASURED
    interrupted = False
    with View(quiet=arguments.json) as view:
        try:
            followed = follow(job, folder, view, arguments.start_within)
        except NotStarted as error:
            _cancel(job)
            opened.append("ended", job=job, state="never started", nodes=[])
            raise InputError(
                f"job {job} did not start within {arguments.start_within:g} s and was cancelled: Slurm says {error}; "
                f"wait longer with: {go_on} --start-within TIME"
            ) from None
        except KeyboardInterrupt:
            view.say(f"cancelling job {job}; what was measured stays (Ctrl-C again leaves without waiting for its end)")
            _cancel(job)
            followed = follow(job, folder, view)
            interrupted = True
    opened.append("ended", job=job, state=followed.job.state, nodes=followed.nodes)
    results = _collected(settings, folder, followed)
    return _report(settings, folder, followed.job, results, arguments, interrupted)


def _cancel(job: str) -> None:
    try:
        client.cancel(job)
    except (Refused, NoAnswer) as error:
        print(f"runner: job {job} could not be cancelled: {error}; do it with: scancel {job}", file=sys.stderr)


def _collected(settings: Settings, folder: Path, followed: Followed) -> list[NodeResult]:
    """What is in the folder, when its files have had time to come in sight."""
    end = time.monotonic() + FILES_PATIENCE_S
    ran = followed.job.state not in ("CANCELLED", "DEADLINE")
    while True:
        down = client.out_of_service(followed.nodes)
        results = collect(folder, settings, followed.job, followed.nodes, down)
        absent = ran and any(one.state == ABSENT for one in results)
        if not absent or time.monotonic() > end:
            return results
        time.sleep(1)


def _report(
    settings: Settings,
    folder: Path,
    job: Job | None,
    results: Sequence[NodeResult],
    arguments: argparse.Namespace,
    interrupted: bool,
) -> int:
    """Print and keep what was found; returns the exit status."""
    status = collecting.status(results, settings.nodes)
    document = _document(settings, folder, job, results)
    atomic.write(folder / SUMMARY, json.dumps(document).encode())
    if arguments.json:
        print(json.dumps(document))
    else:
        out = report.console()
        table.show(results, out)
        out.print(Text(f"record   {_shown(folder)}"), soft_wrap=True)
        out.print(Text(f"         of each node: runner report {_shown(folder)}/NODE"), soft_wrap=True)
    if job and collecting.not_shared(results, roll_call.read(folder, job.number), job):
        nodes = job.nodes or "its nodes"
        print(f"runner: job {job.number} left nothing on {nodes}: {roll_call.not_shared(folder)}", file=sys.stderr)
        return BAD_INPUT
    for line in table.problems(results):
        print(f"runner: {line}", file=sys.stderr)
    if status != MEASURED:
        measured = sum(one.settled for one in results)
        how = "interrupted" if interrupted else f"{measured} of {settings.nodes} nodes measured"
        print(f"runner: {how}; go on with: runner submit --resume {_shown(folder)}", file=sys.stderr)
    return INTERRUPTED if interrupted and status != MEASURED else status


def _document(settings: Settings, folder: Path, job: Job | None, results: Sequence[NodeResult]) -> dict[str, Any]:
    return {
        "record": str(folder),
        "job": job and {"number": job.number, "state": job.state, "nodes": job.nodes, "reason": job.reason},
        "settings": settings.to_json(),
        "nodes": [one.to_json() for one in results],
    }


def _shown(folder: Path) -> Path:
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
