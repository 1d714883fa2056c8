"""``runner bench PROFILE``: measure a profile against the baseline."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from runner import __version__, dataset, engines, measure, profile, record, report
from runner.arguments import count, duration, share
from runner.engines.base import PROJECT, EngineOptions
from runner.environment import Environment, clean
from runner.errors import FAILED, INTERRUPTED, MEASURED, InputError
from runner.inspect_image import inspect
from runner.machine_lock import machine_lock
from runner.measure import Job
from runner.plan import REFERENCE, Plan
from runner.progress import Progress
from runner.record import Event, Record
from runner.resolve import missing_command, resolve
from runner.summary import summarise
from runner.worker.workloads import WORKLOADS

BUDGET_S = 240.0
PRECISION = 0.04
TIMEOUT_S = 300.0
FULL_TIMEOUT_S = 7200.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="?", help="name of a profile, or a YAML file")
    parser.add_argument("--resume", metavar="DIR", type=Path, help="go on with the interrupted run in this folder")
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    parser.add_argument("--python", metavar="PATH", help="measure this interpreter; nothing is installed there")
    parser.add_argument("--workload", choices=sorted(WORKLOADS), help="the training job (default: cnn)")
    parser.add_argument("--full", action="store_true", help="train all epochs once each and report time and accuracy")
    parser.add_argument("--budget", metavar="TIME", type=duration, help="stop after this long, e.g. 60s (default: 4m)")
    parser.add_argument("--precision", metavar="SHARE", type=share,
                        help="stop when the interval's half-width is below this (default: 4%%)")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=count, help="timed steps per sample (default: the workload's)")
    parser.add_argument("--warmup-steps", metavar="N", type=count, help="untimed steps before them")
    parser.add_argument("--timeout", metavar="TIME", type=duration,
                        help="stop a worker that takes longer (default: 5m, with --full 2h)")  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=count, help="of the random order of blocks (default: random)")
    parser.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    parser.add_argument("--keep-env", metavar="NAME", action="append",
                        help="let workers inherit this variable although it can change the outcome")  # fmt: skip
    parser.add_argument("--output", metavar="DIR", type=Path, help="folder for the record (default: in results/)")
    parser.add_argument("--json", action="store_true", help="print JSON for scripts instead of the report")


def run(arguments: argparse.Namespace) -> int:
    with machine_lock():
        if arguments.resume is not None:
            return _resume(arguments)
        if arguments.profile is None:
            raise InputError(f"bench needs a PROFILE; there are: {', '.join(profile.names())}")
        return _start(arguments)


def _start(arguments: argparse.Namespace) -> int:
    chosen = {name: profile.load(name) for name in dict.fromkeys((REFERENCE, arguments.profile))}
    inherited, removed = clean(os.environ, arguments.keep_env or ())
    kept = {name: inherited[name] for name in arguments.keep_env or () if name in inherited}
    engine = engines.get(arguments.engine or "local", EngineOptions(arguments.python))
    inspection = inspect(engine, inherited)
    environments = {one.name: resolve(one, inspection) for one in chosen.values()}
    _check_prefixes(environments)
    data = dataset.find(arguments.data, _say)
    workload = WORKLOADS[arguments.workload or "cnn"]
    plan = Plan(
        profile=chosen[arguments.profile].name,
        engine=engine.name,
        python=arguments.python,
        workload=arguments.workload or "cnn",
        warmup_steps=arguments.warmup_steps or workload.warmup_steps,
        steps=arguments.steps or workload.steps,
        epochs=workload.epochs if arguments.full else 0,
        data=data.location,
        budget_s=arguments.budget or BUDGET_S,
        precision=arguments.precision or PRECISION,
        timeout_s=arguments.timeout or (FULL_TIMEOUT_S if arguments.full else TIMEOUT_S),
        seed=arguments.seed or secrets.randbelow(2**31),
    )
    folder = arguments.output or _new_folder(plan.profile)
    with Record.create(folder) as opened:
        job = Job(plan, environments, engine, inherited, kept)
        first = opened.append(
            "run",
            schema=record.SCHEMA,
            runner_version=__version__,
            command=sys.argv,
            plan=plan.to_json(),
            host=inspection,
            engine=engine.describe(),
            data_source=data.source,
            environments={name: environment.to_json() for name, environment in environments.items()},
            commands={name: shlex.join(engine.command(job.task(name))) for name in environments},
            removed_variables=removed,
            kept_variables=kept,
        )
        return _measure(job, opened, [first], arguments.json)


def _resume(arguments: argparse.Namespace) -> int:
    fixed = ("profile", "engine", "python", "workload", "budget", "precision", "steps", "warmup_steps", "timeout",
             "seed", "data", "keep_env", "output")  # fmt: skip
    for name in fixed:
        if getattr(arguments, name) is not None:
            given = "PROFILE" if name == "profile" else f"--{name.replace('_', '-')}"
            raise InputError(f"{given} can't be given with --resume: the run keeps the settings it was started with")
    events = record.read(arguments.resume)
    first = events[0]
    plan = Plan.from_json(first["plan"])
    kept = first["kept_variables"]
    inherited, _ = clean(os.environ, kept)
    inherited |= kept
    engine = engines.get(plan.engine, EngineOptions(plan.python))
    _check_unchanged(arguments.resume, first, inspect(engine, inherited), engine.describe())
    environments = {name: Environment.from_json(document) for name, document in first["environments"].items()}
    _check_prefixes(environments)
    with Record.reopen(arguments.resume) as opened:
        events = record.read(arguments.resume)  # again, now that nobody else can be writing
        events.append(opened.append("resume", command=sys.argv))
        return _measure(Job(plan, environments, engine, inherited, kept), opened, events, arguments.json)


def _measure(job: Job, opened: Record, events: list[Event], as_json: bool) -> int:
    """Measure, record how it ended, report, and return the exit status."""
    folder = opened.path.parent
    shown = folder.relative_to(Path.cwd()) if folder.is_absolute() and folder.is_relative_to(Path.cwd()) else folder
    try:
        with Progress(0.0 if job.plan.epochs else job.plan.budget_s, quiet=as_json) as progress:
            reason = measure.measure(job, opened, events, progress)
    except KeyboardInterrupt:
        reason = measure.INTERRUPTED
    except record.RecordFull as error:
        raise InputError(f"{error}; what was recorded is safe: make room, then runner bench --resume {shown}") from None
    events.append(opened.append("end", reason=reason))
    summary = summarise(events)
    if as_json:
        print(json.dumps({**summary.to_json(), "record": str(folder)}))
    else:
        report.show(summary, str(shown), report.console())
    if reason == measure.INTERRUPTED:
        print(f"runner: interrupted; go on with: runner bench --resume {shown}", file=sys.stderr)
        return INTERRUPTED
    return FAILED if reason in (measure.FAILED, measure.NOT_IN_EFFECT) else MEASURED


def _check_prefixes(environments: dict[str, Environment]) -> None:
    for name, environment in environments.items():
        missing = missing_command(environment)
        if missing:
            raise InputError(f"profile '{name}' starts workers with '{missing}', which is not on PATH; install it")


def _check_unchanged(folder: Path, first: Event, now: dict[str, Any], engine_now: dict[str, Any]) -> None:
    """A run is only continued where it was started: on the same machine, with the same image, code and libraries."""
    then = first["host"]
    parts = [(part, then[part], now[part]) for part in ("facts", "fingerprint", "packages", "libraries", "python")]
    parts.append(("engine", first["engine"], engine_now))
    for part, before, after in parts:
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                raise InputError(
                    f"--resume {folder}: {part}.{key} was {before.get(key)} and is now {after.get(key)}: "
                    "samples of both can't be compared; start a new run"
                )


def _new_folder(name: str) -> Path:
    return PROJECT / "results" / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"


def _say(text: str) -> None:
    print(text, file=sys.stderr)
