"""What all commands that measure have in common: their options, starting or resuming a run, and ending it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner import __version__, calibration, catalogue, engines, image_differences, measure, profile, record, report
from runner.arguments import refuse_others
from runner.commands import measuring_options, own_command, ranks, training
from runner.engine_options import given as given_engine_options
from runner.engines.base import PROJECT, Engine, EngineOptions
from runner.environment import Environment, clean
from runner.errors import FAILED, INTERRUPTED, MEASURED, InputError
from runner.folders import quoted, short
from runner.inspect_image import inspect
from runner.machine_lock import machine_lock
from runner.measure import Job
from runner.places import engines_of
from runner.plan import MARGIN, REFERENCE_PROFILE, Arm, OwnCommand, Plan, Trained
from runner.preflight import preflight
from runner.progress import Progress
from runner.record import Event, Record
from runner.resolve import KEPT, of_rank, resolve
from runner.summary import summarise
from runner.worker.sensitive import PRELOAD, WHERE
from runner.worker.workloads import DEFAULT, GENERATED, get

BUDGET_S = 180.0
PRECISION = 0.04
TIMEOUT_S = 300.0
FULL_TIMEOUT_S = 7200.0
RESULTS = PROJECT / "results"
LATER = {"cpu_numbers"}  # of a machine: runs that an earlier version began lack these
Then = Callable[[Path], int]


def run(arguments: argparse.Namespace, title: str, arms: Sequence[Arm], then: Then | None = None) -> int:
    """Measure ``arms`` (the first is the reference), or resume; returns the exit status.

    ``title`` becomes a part of the result folder's name. ``then`` is given the folder of a run that was completed, and
    says what it means in the report's place.
    """
    with machine_lock():
        engines.remove_leftovers()
        return run_locked(arguments, title, arms, then)


def run_locked(arguments: argparse.Namespace, title: str, arms: Sequence[Arm], then: Then | None = None) -> int:
    """``run``, for a command that holds the machine already and has removed what was left behind."""
    try:
        return _start(arguments, title, arms, then) if arguments.resume is None else _resume(arguments, then)
    except record.RecordFull as error:
        if arguments.command == "plan":
            raise InputError(f"{error}; make room, then start it again") from None
        go_on = f"make room, then {_go_on_with(arguments, error.folder)}"
        raise InputError(f"{error}; what was recorded is safe: {go_on}") from None


def _start(arguments: argparse.Namespace, title: str, arms: Sequence[Arm], then: Then | None) -> int:
    trained, own = own_command.own_command(arguments) or (arguments.workload or DEFAULT, None)
    measuring_options.require(arguments)
    profiles = {arm.profile: profile.load(arm.profile) for arm in arms}
    arms = tuple(ranks.arm_of(arm, profiles[arm.profile]) for arm in arms)
    profiles = {loaded.name: loaded for loaded in profiles.values()}
    workloads = [] if own else training.names(arms, trained)
    how = training.options(arguments)
    training.require(workloads, how)
    together = ranks.together(arguments)
    nodes = getattr(arguments, "nodes", None) or 1
    numbers = [arm.ranks or together for arm in arms]
    most = max(numbers)
    ranks.require_shares(arms, None if own else trained, how, together, nodes)
    ranks.require_exchange(arguments, workloads, how, most * nodes, min(numbers) * nodes)
    looked_for = [*(loaded.prefix[0] for loaded in profiles.values() if loaded.prefix), *training.tools(how)]
    around = surroundings(arguments, arms, looked_for)
    seen = around.seen
    image_differences.require_two(arms, seen)
    training.require_in(seen, workloads, how)
    ranks.require_gpus(seen, most, how)
    ranks.require_room(seen, together)
    environments, inside = {}, {}
    for arm in arms:
        inspection = seen[arm.place]["inspection"]
        inside[arm.name] = of_rank(inspection, arm.of or arm.ranks or together)
        with _naming_image(arm):
            environments[arm.name] = resolve(profiles[arm.profile], of_rank(inspection, arm.of or together))
            catalogue.require(environments[arm.name], inside[arm.name], arguments.allow_unknown)
    findings = preflight([(environments[arm.name], inside[arm.name]) for arm in arms], arguments.force)
    data = own_command.NO_DATA if own else training.data(arguments.data, workloads)
    plan = plan_of(arguments, arms, around, trained, own, data.location)
    job = Job(plan, environments, around.engines, around.inherited, around.kept)
    with Record.create(arguments.output or new_folder(title)) as opened:
        events = [begin(opened, job, around, data.source, findings)]
        if left_out := getattr(arguments, "left_out", None):  # by a command that chooses profiles itself
            events.append(opened.append("left-out", profiles=left_out))
        return _measure(job, opened, events, arguments, then)


@contextlib.contextmanager
def _naming_image(arm: Arm) -> Iterator[None]:
    """What is refused in here names the image that it is about, if ``arm`` has one of its own."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{arm.image}: {error}" if arm.image else str(error)) from None


@dataclass(frozen=True)
class Surroundings:
    """What workers are started with, whatever it is that they measure.

    ``inherited`` are the caller's variables that they may have, ``kept`` those of them that could change the outcome
    and that the user chose to keep; ``removed`` they may not have. ``engines`` and ``seen`` are by what arms run in
    (``Arm.place``): the latter has what an engine says of itself, and what is inside its image.
    """

    options: EngineOptions
    engines: dict[str, Engine]
    inherited: dict[str, str]
    kept: dict[str, str]
    removed: dict[str, str]
    seen: dict[str, dict[str, Any]]


def surroundings(arguments: argparse.Namespace, arms: Sequence[Arm], commands: Sequence[str] = ()) -> Surroundings:
    """Get ready what ``arms`` run in, and look into it; ``commands`` are looked for in there. Raises InputError."""
    for name in arguments.keep_env or ():
        if name not in os.environ:
            raise InputError(f"--keep-env {name}: it is not set in your environment; set it, or leave it out")
    own, how = own_command.is_given(arguments), training.options(arguments)
    wanted = [*(arguments.keep_env or ()), *training.choosing(how)]
    inherited, removed = clean(os.environ, [*wanted, *_where(own)])
    kept = {name: inherited[name] for name in wanted if name in inherited}
    options = given_engine_options(arguments)
    used = engines_of(arms, options)
    seen = _look(used, inherited, commands, training.on_gpus(how, own), contents=any(arm.image for arm in arms))
    if PRELOAD in kept:
        for one in seen.values():
            one["inspection"][KEPT] = {PRELOAD: kept[PRELOAD]}
    own_command.note_program(arguments, seen)
    return Surroundings(options, used, inherited, kept, removed, seen)


def _where(own: bool) -> Iterable[str]:
    """What a command of the user's own inherits to know where to run, which may be elsewhere when it is resumed."""
    return WHERE if own else ()


def plan_of(
    arguments: argparse.Namespace,
    arms: tuple[Arm, ...],
    around: Surroundings,
    trained: str,
    own: OwnCommand | None,
    data: str,
) -> Plan:
    """What the options say; ``trained`` is a workload's name, or that of a command of the user's own."""
    workloads = training.names(arms, trained)
    workload = get(DEFAULT if own else workloads[0])
    several, every = len(workloads) > 1 and not own and not arguments.full, trained == own_command.EVERY and not own
    plan = Plan(
        arms=arms,
        engine_options=around.options.to_json(),
        workload=trained,
        warmup_steps=arguments.warmup_steps or 0,
        steps=arguments.steps or 0,
        epochs=(arguments.epochs or workload.epochs) if arguments.full else 0,
        data=data,
        budget_s=arguments.budget or arguments.usual_budget or BUDGET_S,
        blocks=arguments.blocks or 0,
        precision=arguments.half_width or PRECISION,
        margin=arguments.margin or MARGIN,
        timeout_s=arguments.timeout or (FULL_TIMEOUT_S if arguments.full else TIMEOUT_S),
        seed=arguments.seed or secrets.randbelow(2**31),
        options=training.options(arguments),
        each={name: _trained(arguments, name, data) for name in workloads} if several else {},
        more_references=_more_references(arms) if every else (),
        ranks=ranks.together(arguments),
        nodes=getattr(arguments, "nodes", None) or 1,
        open_ended=arguments.budget is None,
    )
    return replace(plan, own=own, warmup_steps=own.warmup_lines, steps=1) if own else plan


def _trained(arguments: argparse.Namespace, name: str, data: str) -> Trained:
    """How one of several workloads is trained; ``data`` is what those are given that don't make their own."""
    data = GENERATED if get(name).generated else data
    return Trained(arguments.warmup_steps or 0, arguments.steps or 0, data)


def _more_references(arms: Sequence[Arm]) -> tuple[str, ...]:
    """The reference's profile on the other workloads."""
    return tuple(arm.name for arm in arms[1:] if arm.profile == REFERENCE_PROFILE)


def begin(
    opened: Record, job: Job, around: Surroundings, data_source: str, findings: Sequence[dict[str, Any]]
) -> Event:
    """Write the first event of a run's record."""
    plan = job.plan
    return opened.append(
        "run",
        schema=record.SCHEMA,
        runner_version=__version__,
        command=sys.argv,
        begun_in=str(Path.cwd()),
        plan=plan.to_json(),
        engines=around.seen,
        data_source=data_source,
        environments={name: environment.to_json() for name, environment in job.environments.items()},
        commands={arm.name: job.typed(arm) for arm in plan.arms},
        findings=findings,
        calibration=calibration.find(RESULTS, plan, around.seen, job.kept),
        removed_variables=around.removed,
        kept_variables=job.kept,
    )


def _resume(arguments: argparse.Namespace, then: Then | None) -> int:
    why = "can't be given with --resume: the run keeps the settings it was started with"
    refuse_others(arguments, ("command", "resume", "json"), why)
    events = record.read(arguments.resume)
    first = events[0]
    if first["schema"] != record.SCHEMA:
        began = "an earlier version began this run, by other rules"
        raise InputError(f"--resume {arguments.resume}: {began}; start a new run")
    with record.understood(arguments.resume):
        plan = Plan.from_json(first["plan"])
        environments = {name: Environment.from_json(document) for name, document in first["environments"].items()}
    ranks.require_nodes(plan.nodes, plan.reference.engine)
    around = same_surroundings(arguments.resume, first, plan)
    with Record.reopen(arguments.resume) as opened:
        events = record.read(arguments.resume)  # again, now that nobody else can be writing
        events.append(opened.append("resume", command=sys.argv))
        job = Job(plan, environments, around.engines, around.inherited, around.kept)
        return _measure(job, opened, events, arguments, then)


def same_surroundings(folder: Path, first: Event, plan: Plan) -> Surroundings:
    """Those of the record in ``folder``, which ``first`` begins. Raises InputError if they are not what they were."""
    with record.understood(folder):
        kept: dict[str, str] = first["kept_variables"]
        options = EngineOptions(**plan.engine_options)
    inherited, removed = clean(os.environ, [*kept, *_where(plan.own is not None)])
    inherited |= kept
    used = engines_of(plan.arms, options)
    seen = _look(used, inherited, (), training.on_gpus(plan.options, plan.own is not None))
    with record.understood(folder):
        own_command.require_program(folder, first["engines"])
        for name, before in first["engines"].items():
            _check_unchanged(folder, before, seen[name])
    return Surroundings(options, used, inherited, kept, removed, seen)


def _look(
    used: dict[str, Engine],
    inherited: dict[str, str],
    commands: Sequence[str],
    gpus: bool | None,
    contents: bool = False,
) -> dict[str, dict[str, Any]]:
    """What each engine says of itself, and what is seen inside its image; the rest is as for ``inspect``."""
    return {
        name: {"engine": engine.describe(), "inspection": inspect(engine, inherited, commands, contents, gpus)}
        for name, engine in used.items()
    }


def _measure(job: Job, opened: Record, events: list[Event], arguments: argparse.Namespace, then: Then | None) -> int:
    """Measure, record how it ended, report, and return the exit status."""
    as_json = arguments.json
    folder = opened.path.parent
    try:
        with Progress(0.0 if job.plan.epochs or job.plan.blocks else job.plan.budget_s, quiet=as_json) as progress:
            reason = measure.measure(job, opened, events, progress)
    except KeyboardInterrupt:
        reason = measure.INTERRUPTED
    except measure.TooShort:
        opened.append("end", reason=measure.TOO_SHORT)
        raise
    events.append(opened.append("end", reason=reason))
    summary = summarise(events)
    status = FAILED if reason == measure.FAILED or summary.not_in_effect else MEASURED
    if then is not None and reason != measure.INTERRUPTED and status == MEASURED:
        return then(folder)
    if as_json:
        print(json.dumps({**summary.to_json(), "record": str(folder)}))
    else:
        report.show(summary, str(short(folder)), report.console())
    if reason == measure.INTERRUPTED:
        # a plan is so short that it is begun anew
        again = "start it again" if arguments.command == "plan" else f"go on with: {_go_on_with(arguments, folder)}"
        print(f"runner: interrupted; {again}", file=sys.stderr)
        return INTERRUPTED
    return status


def _go_on_with(arguments: argparse.Namespace, folder: Path) -> str:
    """What goes on with the run that is there; the grid of the loader has a picture of its own."""
    command = "loader-grid" if arguments.command == "loader-grid" else "bench"
    return f"runner {command} --resume {quoted(folder)}"


def _check_unchanged(folder: Path, then: dict[str, Any], now: dict[str, Any]) -> None:
    """A run is only continued where it was started: on the same machine, with the same image, code and libraries."""
    inside, inside_now = then["inspection"], now["inspection"]
    parts = [
        (part, inside[part], inside_now[part]) for part in ("facts", "fingerprint", "packages", "libraries", "python")
    ]
    parts += [("engine", then["engine"], now["engine"]), ("accelerator", _same_gpus(inside), _same_gpus(inside_now))]
    for part, before, after in parts:
        for key in (before.keys() | after.keys()) - (LATER - before.keys()):
            if before.get(key) != after.get(key):
                raise InputError(
                    f"--resume {folder}: {part}.{key} was {before.get(key)} and is now {after.get(key)}: "
                    "samples of both can't be compared; start a new run"
                )


def _same_gpus(inspection: dict[str, Any]) -> dict[str, Any]:
    """What must stay the same of GPUs that are trained on; network interfaces come and go with containers."""
    seen = inspection.get("accelerator") or {}
    return {key: value for key, value in seen.items() if key != "interfaces"}


def new_folder(title: str) -> Path:
    return RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}-{title}"
