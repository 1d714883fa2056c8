"""``envkit tune``: search for the best environment on this machine, confirm it, and write it as a profile."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from runner import __version__, engines
from runner.analysis.summary import Summary
from runner.bench import batch_split, record, requirements
from runner.bench.context import ExecutionContext, execution_context, recorded_context
from runner.bench.measure import ENDED, NOT_IN_EFFECT, Job
from runner.bench.measure import FAILED as FAILED_WORKER
from runner.bench.measure import INTERRUPTED as CUT_SHORT
from runner.bench.plan import REFERENCE_PROFILE, Plan
from runner.bench.prepare import Prepared, plan_of
from runner.bench.prepare import begin as begin_record
from runner.bench.record import Event, Record
from runner.checks.preflight import preflight
from runner.cli import measuring, rank_options, tune_options
from runner.cli.arguments import refuse_others
from runner.common import atomic
from runner.common.errors import FAILED, INTERRUPTED, MEASURED, InputError
from runner.common.folders import quoted, short
from runner.common.machine_lock import machine_lock
from runner.profiles import profile
from runner.profiles.environment import Environment
from runner.profiles.resolve import of_rank, resolve
from runner.report import scaling_wording, terminal, wording
from runner.report.reproduce import digest
from runner.tuning import conclusion, confirm, destination, profile_file, session, space_file
from runner.tuning.confirm import Decision
from runner.tuning.destination import Written
from runner.tuning.importance import Importance
from runner.tuning.narrow import narrow
from runner.tuning.search import require_candidates
from runner.tuning.session import Session, Settings
from runner.tuning.trials import BaselineFailed, lengths

LOCAL_FOLDER = profile.PROFILE_FOLDER / profile.LOCAL
SHIPPED_FOLDER = profile.PROFILE_FOLDER
add_arguments = tune_options.add_arguments


def run(arguments: argparse.Namespace) -> int:
    with machine_lock():
        engines.remove_leftovers()
        try:
            return _start(arguments) if arguments.resume is None else _resume(arguments)
        except record.RecordFull as error:
            folder = error.folder.parent if error.folder.name == record.CONFIRMATION else error.folder
            go_on = f"make room, then envkit tune --resume {quoted(folder)}"
            raise InputError(f"{error}; what was recorded is safe: {go_on}") from None


def _start(arguments: argparse.Namespace) -> int:
    tune_options.require(arguments)
    path = space_file.find(arguments.space or tune_options.SPACE)
    space = space_file.read(path)
    written = (arguments.profile or _default_path()).absolute()
    if not arguments.exhaustive:
        destination.require(written)
    rank_options.require(arguments)
    asked = tune_options.specification(arguments, path.stem)
    how, engine, numerics = asked.options, asked.arms[0].engine, arguments.numerics or "same"
    trained = None if asked.user_command else asked.workload
    requirements.require_modes(asked.workloads, how)
    most = rank_options.require_searched(space, trained, how, asked.nproc)
    rank_options.require_backend(arguments.backend, most)
    requirements.require_exchange(asked.workloads, how, most)
    given = [profile.load(name, SHIPPED_FOLDER) for name in profile.names(SHIPPED_FOLDER)]
    context = execution_context(asked, [*session.prefix_commands(space, given), *requirements.tools(how)])
    requirements.require_in(context.seen, asked.workloads, how)
    requirements.require_gpus(context.seen, asked.nproc, how)
    requirements.require_room(context.seen, asked.nproc)
    inspection = of_rank(context.seen[engine]["inspection"], asked.nproc)
    baseline = resolve(profile.load(REFERENCE_PROFILE), inspection)
    gpus = inspection["facts"].get("gpus", 0)
    not_tried = partial(batch_split.not_tried, trained, how, numerics, asked.nproc, gpus)
    narrowed, _ = narrow(space, inspection, numerics, not_tried)  # before anything is recorded: it may leave nothing
    shipped, left_out = (
        ([], [])
        if arguments.space_only
        else session.shipped(SHIPPED_FOLDER, inspection, numerics, space.first, not_tried)
    )
    require_candidates(narrowed, baseline, inspection, one_by_one=arguments.exhaustive, alone=not shipped)
    data = requirements.data(asked)
    plan, steps = lengths(plan_of(asked, data.location))
    blocks = (arguments.blocks or tune_options.GRID_BLOCKS) if arguments.exhaustive else 0
    budget_s = 0.0 if arguments.exhaustive else arguments.budget or tune_options.BUDGET_S
    settings = Settings(budget_s, plan.seed, numerics, blocks, steps, str(written))
    folder = arguments.output or measuring.new_folder(asked.title)
    with Record.create(folder) as opened:
        atomic.write(folder / session.SPACE_FILE, path.read_bytes())
        first = opened.append(
            "tune",
            schema=record.SCHEMA,
            runner_version=__version__,
            command=sys.argv,
            settings=asdict(settings),
            space=space.name,
            plan=plan.to_json(),
            engines=context.seen,
            data_source=data.source,
            baseline=baseline.to_json(),
            shipped=[
                {"profile": profile_file.to_json(one.profile), "environment": one.environment.to_json()}
                for one in shipped
            ],
            left_out_profiles=[asdict(one) for one in left_out],
            removed_variables=context.removed,
            allowed_variables=context.kept,
        )
        return _go_on(opened, [first], context, arguments.json)


def _resume(arguments: argparse.Namespace) -> int:
    why = "can't be given with --resume: a tuning keeps the settings it was started with"
    refuse_others(arguments, ("command", "resume", "json", "profile"), why)
    first = record.first(arguments.resume, "tune")
    if first["schema"] < record.RESUMABLE:
        began = "an earlier version began this tuning, by other rules"
        raise InputError(f"--resume {arguments.resume}: {began}; start a new one")
    with record.reading(arguments.resume):
        plan = Plan.from_json(first["plan"])
        moved = [event.get("profile") for event in record.read(arguments.resume, "tune") if event["event"] == "resume"]
        places = [first["settings"]["profile"], *(one for one in moved if one is not None)]
        exhaustive = bool(first["settings"]["blocks"])
    if exhaustive and arguments.profile:
        raise InputError("--profile means nothing with --exhaustive, which writes no profile; leave it out")
    written = (arguments.profile or Path(places[-1])).absolute()
    if not exhaustive:
        destination.require(written)
    context = recorded_context(arguments.resume, first, plan)
    with Record.reopen(arguments.resume) as opened:
        events = record.read(arguments.resume, "tune")
        events.append(opened.append("resume", command=sys.argv, profile=str(written)))
        return _go_on(opened, events, context, arguments.json)


def _go_on(opened: Record, events: list[Event], context: ExecutionContext, as_json: bool) -> int:
    """Do what the record lacks, and return the exit status."""
    first, folder = events[0], opened.path.parent
    with record.reading(folder):
        plan = Plan.from_json(first["plan"])
        settings = Settings(**first["settings"])
        if events[-1]["event"] == "resume":
            settings = replace(settings, profile=events[-1]["profile"])
        baseline = Environment.from_json(first["baseline"])
        inspection = of_rank(first["engines"][plan.reference.engine]["inspection"], plan.ranks)
        job = Job(plan, {REFERENCE_PROFILE: baseline}, context.engines, context.inherited, context.kept)
        tuning = Session(
            settings, job, inspection, opened, events, _begin(context, first["data_source"], inspection), as_json
        )
    try:
        tuning.run_search()
        try:
            chosen = tuning.chosen()
            if chosen is None:
                return _nothing(tuning)
            if settings.blocks:
                return _ranked(tuning, as_json)
            reason, summary, decision = tuning.confirm(chosen)
        except InputError as error:  # it could all be written when the tuning began
            raise InputError(f"{error}; then {_go_on_with(tuning)}") from None
    except KeyboardInterrupt:
        return _interrupted(tuning)
    except BaselineFailed as error:
        tuning.record.append("end", reason=FAILED_WORKER)
        # one that never ran will hardly do so when nothing has changed
        never = f"fix that and start again; the record is in {tuning.folder}"
        print(f"envkit: {error}; {_go_on_with(tuning) if tuning.store.trials_s_of else never}", file=sys.stderr)
        return FAILED
    if reason == CUT_SHORT:
        return _interrupted(tuning)
    return _concluded(tuning, reason, summary, decision, as_json)


def _begin(context: ExecutionContext, data_source: str, inspection: Mapping[str, Any]) -> Any:
    """Writes the first event of the confirmation's record."""

    def begin(opened: Record, job: Job) -> Event:
        inside = [(one, of_rank(inspection, one.ranks)) for one in job.environments.values()]
        found = preflight(inside, force=True)
        return begin_record(opened, Prepared(None, job, context, data_source, found), measuring.RESULTS)

    return begin


def _concluded(tuning: Session, reason: str, summary: Summary, decision: Decision, as_json: bool) -> int:
    """Write the profile that won, and say what came out."""
    store, path = tuning.store, Path(tuning.settings.profile)
    number = tuning.search.best(shipped=True)
    shipped = None if number is None else store.entries[number].title
    found = conclusion.parameter_importance(tuning.space, store)
    untried = tuning.search.untried
    # what had no effect stays in the record, and proves nothing when that goes on
    reason = NOT_IN_EFFECT if summary.not_in_effect else reason
    ended = reason in ENDED
    # after an end that wrote, what was there before it is no longer there
    previous = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
    ends = [event for event in tuning.events if event["event"] == "end" and event["reason"] in ENDED]
    here = [event for event in ends if event.get("profile", str(path)) == str(path)]
    written_before = any(event.get("previous_sha256") != previous for event in here)
    best = decision.best if ended else None
    tuning.record.append("end", reason=reason, best=best, previous_sha256=previous, profile=str(path))
    # last, as it has the digest of the whole record
    replaces = decision.best != confirm.BASELINE and not written_before  # to read an old one again replaces nothing
    written = _write(tuning, summary, decision, shipped, found, replaces) if ended else None
    if as_json:
        versus = decision.versus and {**decision.versus.to_json(), "verdict": decision.versus.words}
        print(json.dumps({
            **conclusion.to_json(store, tuning.left_out, found),
            "best": best, "best_shipped": shipped, "shipped_not_tried": untried,
            "versus_best_shipped": versus, "confirmation": summary.to_json(),
            "written": str(path) if written and not written.stays else None,
            "earlier": str(written.earlier) if written and written.earlier else None, "record": str(tuning.folder),
        }))  # fmt: skip
    else:
        out = terminal.console()
        conclusion.show_confirmation(summary, decision, shipped, out, untried)
        terminal.items(out, scaling_wording.rows(summary), width=conclusion.LABEL)
        conclusion.show_search(store, tuning.left_out, found, out, untried)
        if written:
            terminal.item(out, "written", conclusion.advice(decision, shipped, path, written), width=conclusion.LABEL)
            if decision.best != confirm.BASELINE and not written.stays:
                name = profile.TUNED if path == _default_path() else str(path)
                usage = conclusion.usage(tuning.job.plan, name, profile.load(str(path)).ranks, tuning.job.kept)
                terminal.item(out, "use it", usage, width=conclusion.LABEL)
        terminal.item(out, "machine", wording.machine(summary), width=conclusion.LABEL)
        confirmed = f"{short(tuning.folder)}, and the confirmation: envkit report {quoted(tuning.confirmation)}"
        terminal.item(out, "record", confirmed, width=conclusion.LABEL)
    if not ended:
        said = f"the confirmation ended: {reason}; no profile was written"
        go_on = conclusion.failed_again(summary) + _go_on_with(tuning)
        never = "start a new tuning: what was seen to have no effect in this one stays in its record"
        print(f"envkit: {said}; {never if summary.not_in_effect else go_on}", file=sys.stderr)
    return MEASURED if ended else FAILED


def _write(
    tuning: Session,
    summary: Summary,
    decision: Decision,
    shipped: str | None,
    found: list[Importance],
    replaces: bool,
) -> Written:
    path = Path(tuning.settings.profile)
    number = {
        confirm.TUNED: tuning.search.best(), confirm.SHIPPED: tuning.search.best(shipped=True),
    }.get(decision.best)  # fmt: skip
    won = tuning.search.baseline if number is None else tuning.search.candidates[number]
    machine = wording.machine(summary)
    made = replace(won.profile, title=f"Tuned for this machine: {won.profile.title}")
    if not decision.same_losses:
        made = replace(made, numerics="may-differ")
    if tuning.job.plan.ranks > 1:  # it is worth that in so many ranks, and was resolved for one of them
        made = replace(made, ranks=tuning.job.plan.ranks)
    folders = [folder.resolve() for folder in (tuning.folder, tuning.confirmation)]  # it is read from anywhere
    source = f"{folders[-1] / record.FILE_NAME}, SHA-256 {digest(tuning.confirmation)}"
    why = conclusion.reason(decision, tuning.events[0]["time"], machine, shipped, tuning.search.untried)
    name = {confirm.TUNED: confirm.TUNED, confirm.SHIPPED: shipped}.get(decision.best, REFERENCE_PROFILE)
    measured = next(one for one in summary.measured if one.arm == name)
    evidence = {
        "profile": path.stem,
        "best": decision.best,
        "best_shipped": shipped,
        "shipped_not_tried": tuning.search.untried,
        "machine": machine,
        "environment": won.environment.to_json(),
        "comparisons": summary.to_json()["comparisons"],
        "versus_best_shipped": decision.versus and decision.versus.to_json(),
        "checks": [asdict(one) for one in measured.checks],
        "importance": [asdict(one) for one in found],
        "records": {str(folder / record.FILE_NAME): digest(folder) for folder in folders},
    }
    content = profile_file.content(made, why, source, path)
    try:
        return destination.write(path, content, evidence, replaces)
    except InputError as error:  # it could be written when the tuning began
        raise InputError(f"{error}; {_go_on_with(tuning)} --profile FILE.yaml") from None


def _ranked(tuning: Session, as_json: bool) -> int:
    """The end of --exhaustive."""
    tuning.record.append("end", reason=ENDED[-1])
    found = conclusion.parameter_importance(tuning.space, tuning.store)
    if as_json:
        print(json.dumps({**conclusion.to_json(tuning.store, tuning.left_out, found), "record": str(tuning.folder)}))
        return MEASURED
    out = terminal.console()
    conclusion.show_ranking(tuning.store, out)
    conclusion.show_search(tuning.store, tuning.left_out, found, out)
    terminal.item(out, "record", f"{tuning.folder}; the best is in {session.CHOSEN_FILE} there", width=conclusion.LABEL)
    return MEASURED


def _nothing(tuning: Session) -> int:
    """Every candidate failed."""
    tuning.record.append("end", reason=FAILED_WORKER)
    store = tuning.store
    if store.problems:
        number, problem = next(iter(store.problems.items()))
        said = f"all {len(store.problems)} candidates failed, the first ({store.entries[number].title}): {problem}"
    else:
        least = f"{math.ceil(tuning.search.least_budget_s)}s"
        said = f"the budget has no room for a single candidate and its confirmation: give --budget {least} or more"
        said += conclusion.busy(tuning.events)
    print(f"envkit: {said}; no profile was written; the record is in {tuning.folder}", file=sys.stderr)
    return FAILED


def _interrupted(tuning: Session) -> int:
    tuning.record.append("end", reason=CUT_SHORT)
    print(f"envkit: interrupted; {_go_on_with(tuning)}", file=sys.stderr)
    return INTERRUPTED


def _go_on_with(tuning: Session) -> str:
    return f"go on with: envkit tune --resume {quoted(tuning.folder)}"


def _default_path() -> Path:
    return LOCAL_FOLDER / f"{profile.tuned_name()}.yaml"
