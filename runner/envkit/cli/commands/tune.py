"""``envkit tune``: search for the best environment on this machine, confirm it, and write it as a profile."""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path

from envkit import engines
from envkit.analysis.engine_facts import machine_kind
from envkit.analysis.result import Result
from envkit.bench import record, seal
from envkit.bench.context import ExecutionContext, recorded_context
from envkit.bench.decide import ENDED, NOT_IN_EFFECT
from envkit.bench.decide import FAILED as FAILED_WORKER
from envkit.bench.decide import INTERRUPTED as CUT_SHORT
from envkit.bench.messages import Interrupted
from envkit.bench.record import Event, Record
from envkit.bench.study import REFERENCE_PROFILE, Study
from envkit.cli import measuring, submission, tune_nodes, tune_options
from envkit.cli.arguments import is_quiet, no_effect
from envkit.cli.commands import tune_messages as messages
from envkit.cli.ending import end_with, error
from envkit.cli.measuring_messages import NoRoom
from envkit.cli.tuning import first_event, require_early, require_same_tuning, session_of
from envkit.common import atomic, extras, yamlfile
from envkit.common.errors import FAILED, INTERRUPTED, MEASURED, InputError
from envkit.common.folders import short
from envkit.common.machine_lock import machine_lock
from envkit.messages import Message
from envkit.profiles import places, profile
from envkit.rendering import text
from envkit.report import lines, terminal
from envkit.report.commands import digest
from envkit.report.parts import Row
from envkit.tuning import conclusion, confirm, destination, profile_file, session
from envkit.tuning import conclusion_messages as labels
from envkit.tuning.confirm import Decision
from envkit.tuning.destination import Written
from envkit.tuning.events import End
from envkit.tuning.importance import Importance
from envkit.tuning.session import Session
from envkit.tuning.study import TuningStudy
from envkit.tuning.trials import BaselineFailed

LOCAL_FOLDER = places.local_folder()
add_arguments = tune_options.add_arguments


def run(arguments: argparse.Namespace) -> int:
    extras.require("envkit tune", "optuna")
    if submission.is_given(arguments):
        return tune_nodes.run(arguments)
    if arguments.resume is None:
        tuning = _tuning(arguments)
        require_early(tuning, arguments.output)
        if not is_quiet(arguments):
            measuring.say_of_shared(tuning.study.user_command)
    with machine_lock():
        engines.remove_leftovers()
        try:
            return _start(arguments) if arguments.resume is None else _resume(arguments)
        except record.RecordFull as error:
            folder = error.folder.parent if error.folder.name == record.CONFIRMATION else error.folder
            go_on = measuring.go_on_with("tune", folder, "tune")
            raise InputError(NoRoom(error.message, go_on)) from None


def _start(arguments: argparse.Namespace) -> int:
    tuning, fields, context = _intent(arguments)
    folder = arguments.output or measuring.new_folder(tuning.study.title)
    with Record.create(folder) as opened:
        atomic.write(folder / session.SPACE_FILE, yamlfile.content(Path(tuning.space)), private=True)
        return _go_on(opened, [opened.append_sealed("tune", **fields)], context, arguments)


def _intent(arguments: argparse.Namespace) -> tuple[TuningStudy, Event, ExecutionContext]:
    """Return the tuning that the command line asks for, prepared on this machine."""
    tuning = _tuning(arguments)
    return (tuning, *first_event(tuning))


def _tuning(arguments: argparse.Namespace) -> TuningStudy:
    """Return the tuning that the command line asks for. Raise InputError if its profile can't be written."""
    tuning = tune_options.tuning(arguments, _default_path())
    if not arguments.exhaustive:
        destination.require(Path(tuning.settings.profile))
    return tuning


def _resume(arguments: argparse.Namespace) -> int:
    """Go on by the record if it carries this user's seal and --resume is alone, else by the command line."""
    folder = arguments.resume
    measuring.require_folder(arguments)
    first = record.first(folder, "tune")
    if measuring.is_alone(arguments, first, free=("profile", "details")):
        context, written = _recorded(folder, first, arguments.profile)
        fields: Event = {}
    else:
        tuning, fields, context = _intent(arguments)
        require_same_tuning(folder, first, fields, context)
        written = Path(tuning.settings.profile)
    with Record.reopen(folder) as opened:
        events = record.read(folder, "tune")
        measuring.require_unchanged(folder, first, events)
        events = [{**first, **fields}, *events[1:]]
        events.append(opened.append_sealed("resume", first, command=sys.argv, profile=str(written)))
        return _go_on(opened, events, context, arguments, written)


def _recorded(folder: Path, first: Event, named: Path | None) -> tuple[ExecutionContext, Path]:
    """Return the context of a record with this user's seal, and where its profile goes."""
    with record.reading(folder):
        study = Study.from_json(first["study"])
        moved = [event for event in record.read(folder, "tune") if event["event"] == "resume"]
        later_places = [str(event["profile"]) for event in moved if seal.is_good(event, first[seal.KEY])]
        places = [first["settings"]["profile"], *later_places]
        exhaustive = bool(first["settings"]["blocks"])
    if exhaustive and named:
        raise InputError(no_effect("--profile", "--exhaustive"))
    written = (named or Path(places[-1])).absolute()
    if not exhaustive:
        destination.require(written)
    return recorded_context(folder, first, study), written


def _go_on(
    opened: Record,
    events: list[Event],
    context: ExecutionContext,
    arguments: argparse.Namespace,
    written: Path | None = None,
) -> int:
    """Do what the record lacks, and return the exit status. The profile goes to ``written``, if that is given."""
    as_json = arguments.json
    tuning = session_of(opened, events, context, is_quiet(arguments), profile=written)
    try:
        tuning.run_search()
        try:
            chosen = tuning.chosen()
            if chosen is None:
                return _nothing(tuning, as_json)
            if tuning.settings.blocks:
                return _ranked(tuning, arguments)
            reason, result, decision = tuning.confirm(chosen)
        except InputError as error:  # it could all be written when the tuning began
            raise InputError(messages.TuningFailed(error.message, messages.GoOn(_go_on_with(tuning)))) from None
    except KeyboardInterrupt:
        return _interrupted(tuning, as_json)
    except BaselineFailed as error:
        tuning.record.append("end", reason=FAILED_WORKER)
        # one that never ran will hardly do so when nothing has changed
        went = bool(tuning.store.trials_s_of)
        advice = messages.GoOn(_go_on_with(tuning)) if went else messages.FixAndStart(str(tuning.folder))
        return end_with(messages.TuningFailed(error.message, advice), FAILED, as_json)
    if reason == CUT_SHORT:
        return _interrupted(tuning, as_json)
    return _concluded(tuning, reason, result, decision, arguments)


def _concluded(tuning: Session, reason: str, result: Result, decision: Decision, arguments: argparse.Namespace) -> int:
    """Write the profile that won, and say what came out."""
    store, path = tuning.store, Path(tuning.settings.profile)
    number = tuning.search.best(shipped=True)
    shipped = None if number is None else store.entries[number].title
    importance = conclusion.parameter_importance(tuning.space, store)
    untried = tuning.search.untried
    # what had no effect stays in the record, and proves nothing when that goes on
    reason = NOT_IN_EFFECT if result.not_in_effect else reason
    ended = reason in ENDED
    # after an end that wrote, what was there before it is no longer there
    previous = hashlib.sha256(yamlfile.content(path)).hexdigest() if path.is_file() else None
    ends = [event for event in tuning.events if isinstance(event, End) and event.reason in ENDED]
    here = [event for event in ends if event.profile in (None, str(path))]
    written_before = any(event.previous_sha256 != previous for event in here)
    best = decision.recommended if ended else None
    tuning.record.append("end", reason=reason, best=best, previous_sha256=previous, profile=str(path))
    # last, as it has the digest of the whole record
    # to read an old one again replaces nothing, and neither does what holds only beside a load
    replaces = decision.is_better and not written_before
    written = _write(tuning, result, decision, shipped, importance, replaces) if ended else None
    go_on = conclusion.way_on(result, messages.GoOn(_go_on_with(tuning)))
    problem = messages.ConfirmationEnded(reason, messages.StartNewTuning() if result.not_in_effect else go_on)
    if arguments.json:
        versus = decision.versus and {**decision.versus.to_json(), "verdict": decision.versus.words}
        print(json.dumps({
            **conclusion.to_json(store, tuning.left_out, importance),
            "best": best, "best_shipped": shipped, "shipped_not_tried": untried,
            "load": decision.load and decision.load.to_json(),
            "versus_best_shipped": versus, "confirmation": result.to_json(),
            "written": str(path) if written and not written.stays else None,
            "earlier": str(written.earlier) if written and written.earlier else None, "record": str(tuning.folder),
            **({} if ended else error(problem)),
        }))  # fmt: skip
    else:
        out = terminal.console()
        conclusion.show_confirmation(result, decision, shipped, out, untried)
        conclusion.show_search(store, tuning.left_out, importance, out, untried, arguments.details)
        rows = []
        if written:
            rows.append(Row(labels.WRITTEN, conclusion.advice(decision, shipped, path, written), whole=True))
            if decision.is_better and not written.stays:
                name = profile.TUNED if path == _default_path() else str(path)
                rows += conclusion.usage(tuning.job.study, name, profile.load(str(path)).ranks, tuning.job.context.kept)
        terminal.items(out, [*rows, *_places(tuning, result, full=arguments.details or not ended)])
    if not ended:
        print(f"envkit: {text(problem)}", file=sys.stderr)
    return MEASURED if ended else FAILED


def _places(tuning: Session, result: Result, full: bool) -> list[Row]:
    """Return the rows on the machine, and on how to see the details of the search.

    If the ``full`` search was shown, or is not complete, they name the details of its confirmation.
    """
    more = ["envkit", "tune", "--resume", str(short(tuning.folder)), "--details"]
    if full:
        more = ["envkit", "report", str(short(tuning.confirmation)), "--details"]
    command = Row(labels.DETAILS, labels.Command(shlex.join(more)), whole=True)
    return [Row(labels.SYSTEM, lines.machine(result)), command]


def _write(
    tuning: Session,
    result: Result,
    decision: Decision,
    shipped: str | None,
    importance: list[Importance],
    replaces: bool,
) -> Written:
    path = Path(tuning.settings.profile)
    number = {
        confirm.TUNED: tuning.search.best(), confirm.SHIPPED: tuning.search.best(shipped=True),
    }.get(decision.best)  # fmt: skip
    won = tuning.search.baseline if number is None else tuning.search.candidates[number]
    machine = lines.machine(result)
    made = replace(won.profile, title=text(messages.TunedTitle(messages.THIS_MACHINE, won.profile.title)))
    if not decision.same_losses:
        made = replace(made, numerics="may-differ")
    if tuning.job.study.ranks > 1:  # it is worth that in so many ranks, and was resolved for one of them
        made = replace(made, ranks=tuning.job.study.ranks)
    folders = [folder.resolve() for folder in (tuning.folder, tuning.confirmation)]  # it is read from anywhere
    source = messages.FromRecord(str(folders[-1] / record.FILE_NAME), digest(tuning.confirmation))
    why = conclusion.reason(decision, tuning.beginning.time, machine, shipped, tuning.search.untried)
    name = {confirm.TUNED: confirm.TUNED, confirm.SHIPPED: shipped}.get(decision.best, REFERENCE_PROFILE)
    measured = next(arm for arm in result.measured if arm.arm == name)
    evidence = {
        "profile": path.stem,
        "best": decision.recommended,
        "load": decision.load and decision.load.to_json(),
        "best_shipped": shipped,
        "shipped_not_tried": tuning.search.untried,
        "machine": machine,
        profile_file.MACHINE: machine_kind(result.inspection(result.study.reference)),
        "environment": won.environment.to_json(),
        "comparisons": result.to_json()["comparisons"],
        "versus_best_shipped": decision.versus and decision.versus.to_json(),
        "checks": [asdict(check) for check in measured.checks],
        "importance": [asdict(parameter) for parameter in importance],
        "records": {str(folder / record.FILE_NAME): digest(folder) for folder in folders},
    }
    content = profile_file.content(profile_file.explained(made, why, source), path)
    try:
        return destination.write(path, content, evidence, replaces)
    except InputError as error:  # it could be written when the tuning began
        raise InputError(
            messages.TuningFailed(error.message, messages.GoOn(f"{_go_on_with(tuning)} --profile FILE.yaml"))
        ) from None


def _ranked(tuning: Session, arguments: argparse.Namespace) -> int:
    """Print the candidates of --exhaustive. Return the exit status."""
    tuning.record.append("end", reason=ENDED[-1])
    importance = conclusion.parameter_importance(tuning.space, tuning.store)
    if arguments.json:
        print(
            json.dumps({**conclusion.to_json(tuning.store, tuning.left_out, importance), "record": str(tuning.folder)})
        )
        return MEASURED
    out = terminal.console()
    conclusion.show_ranking(tuning.store, out)
    conclusion.show_search(tuning.store, tuning.left_out, importance, out, details=arguments.details)
    record_of_it = labels.SeeRanking(str(short(tuning.folder)), session.CHOSEN_FILE)
    terminal.items(out, [Row(labels.RECORD, record_of_it, whole=True)])
    return MEASURED


def _nothing(tuning: Session, as_json: bool) -> int:
    """Print why no candidate was confirmed: every one failed, or there was no time for one."""
    tuning.record.append("end", reason=FAILED_WORKER)
    store = tuning.store
    if store.problems:
        number, problem = next(iter(store.problems.items()))
        message: Message = messages.AllCandidatesFailed(len(store.problems), store.entries[number].title, problem)
    else:
        message = conclusion.no_room(tuning.search.least_budget_s, tuning.events)
    return end_with(messages.NoProfileWritten(message, str(tuning.folder)), FAILED, as_json)


def _interrupted(tuning: Session, as_json: bool) -> int:
    tuning.record.append("end", reason=CUT_SHORT)
    return end_with(Interrupted(_go_on_with(tuning)), INTERRUPTED, as_json)


def _go_on_with(tuning: Session) -> str:
    return measuring.go_on_with("tune", tuning.folder, "tune")


def _default_path() -> Path:
    return LOCAL_FOLDER / f"{profile.tuned_name()}.yaml"
