"""``runner tune``: search for the best environment on this machine, confirm it, and write it as a profile."""

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

from runner import __version__, atomic, engines, profile, record, report, scaling_wording, shares, wording
from runner.arguments import count, duration, refuse_others
from runner.commands import measuring, own_command, ranks, training
from runner.commands.measuring import Surroundings
from runner.engine_options import add as add_engine_options
from runner.environment import Environment
from runner.errors import FAILED, INTERRUPTED, MEASURED, InputError
from runner.folders import quoted, short
from runner.machine_lock import machine_lock
from runner.measure import ENDED, NOT_IN_EFFECT, Job
from runner.measure import FAILED as FAILED_WORKER
from runner.measure import INTERRUPTED as CUT_SHORT
from runner.plan import REFERENCE_PROFILE, Arm, Plan
from runner.preflight import preflight
from runner.record import Event, Record
from runner.reproduce import digest
from runner.resolve import of_rank, resolve
from runner.summary import Summary
from runner.tuning import confirm, outcome, place, profile_file, session, space_file
from runner.tuning.confirm import Verdict
from runner.tuning.importance import Importance
from runner.tuning.looks import BaselineFailed, lengths
from runner.tuning.narrow import narrow
from runner.tuning.place import Written
from runner.tuning.search import require_candidates
from runner.tuning.session import Session, Settings
from runner.worker.workloads import DEFAULT, WORKLOADS

BUDGET_S = 1200.0
SPACE = "default"
NUMERICS = ("same", "any")
# Rounds of --exhaustive.
GRID_BLOCKS = 6
LOCAL_FOLDER = profile.PROFILE_FOLDER / profile.LOCAL
SHIPPED_FOLDER = profile.PROFILE_FOLDER
# What a tuning does not have, and the parts that it shares with other commands ask for.
NOT_HERE: dict[str, Any] = {"full": False, "epochs": None, "half_width": None, "usual_budget": None}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    add_engine_options(parser)
    group = parser.add_argument_group("searching")
    spaces = ", ".join(space_file.names())
    group.add_argument("--resume", metavar="DIR", type=Path, help="go on with the interrupted tuning in this folder")
    group.add_argument("--space", metavar="SPACE", help=f"what to search: {spaces}, or a YAML file (default: {SPACE})")
    group.add_argument(
        "--budget", metavar="TIME", type=duration, help="for search and confirmation together (default: 20m)"
    )
    group.add_argument("--numerics", choices=NUMERICS, metavar="WHICH",
                       help="same: nothing that may change the results (default); any: that too")  # fmt: skip
    group.add_argument("--space-only", action="store_true",
                       help="search the space alone: shipped profiles don't compete, nor are confirmed")  # fmt: skip
    group.add_argument("--exhaustive", action="store_true",
                       help="measure every candidate of a small space, to judge the search by")  # fmt: skip
    group.add_argument("--blocks", metavar="N", type=count,
                       help=f"with --exhaustive: looks at each candidate (default: {GRID_BLOCKS})")  # fmt: skip
    group.add_argument("--seed", metavar="N", type=count, help="of all chance in the search (default: 1)")
    group.add_argument("--profile", metavar="FILE", type=Path,
                       help="write the profile there (default: envprofiles/local/HOST-tuned.yaml)")  # fmt: skip
    group = parser.add_argument_group("measuring")
    group.add_argument("--workload", type=own_command.known_workload, metavar="NAME",
                       help=f"tune for: {', '.join(WORKLOADS)} (default: cnn); or a file, as mine.yaml")  # fmt: skip
    training.add_options(group)
    ranks.add_option(group, "each has the environment that is searched for")
    group.add_argument("--steps", metavar="N", type=count,
                       help="timed steps per look and sample (default: 30%% of the workload's, then all)")  # fmt: skip
    group.add_argument("--warmup-steps", metavar="N", type=count, help="untimed steps before them")
    group.add_argument("--timeout", metavar="TIME", type=duration, help="stop a worker that takes longer (default: 5m)")
    group.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    group.add_argument("--keep-env", metavar="NAME", action="append",
                       help="let workers inherit this variable although it can change the outcome")  # fmt: skip
    group.add_argument("--output", metavar="DIR", type=Path, help="folder for the record (default: in results/)")
    group.add_argument("--json", action="store_true", help="print JSON for scripts instead of the report")
    own_command.add_own_command_options(parser)


def run(arguments: argparse.Namespace) -> int:
    with machine_lock():
        engines.remove_leftovers()
        try:
            return _start(arguments) if arguments.resume is None else _resume(arguments)
        except record.RecordFull as error:
            folder = error.folder.parent if error.folder.name == record.CONFIRMATION else error.folder
            go_on = f"make room, then runner tune --resume {quoted(folder)}"
            raise InputError(f"{error}; what was recorded is safe: {go_on}") from None


def _start(arguments: argparse.Namespace) -> int:
    if arguments.blocks and not arguments.exhaustive:
        raise InputError("--blocks means nothing without --exhaustive, which has no budget; give --budget instead")
    if arguments.exhaustive and arguments.profile:
        raise InputError("--profile means nothing with --exhaustive, which writes no profile; leave it out")
    if arguments.exhaustive and arguments.space_only:
        raise InputError("--space-only means nothing with --exhaustive, which has no shipped profiles; leave it out")
    if arguments.exhaustive and arguments.budget:
        raise InputError("--budget means nothing with --exhaustive, which measures everything; give --blocks instead")
    path = space_file.find(arguments.space or SPACE)
    space = space_file.read(path)
    written = _absolute(arguments.profile or _default_path())
    if not arguments.exhaustive:
        place.require(written)
    trained, own = own_command.own_command(arguments) or (arguments.workload or DEFAULT, None)
    training.require_one(arguments)
    ranks.require(arguments)
    together = ranks.together(arguments)
    workloads = [] if own else [trained]
    how = training.options(arguments)
    training.require(workloads, how)
    most = ranks.require_searched(space, None if own else trained, how, together)
    ranks.require_exchange(arguments, workloads, how, most)
    engine = arguments.engine or "local"
    numerics = arguments.numerics or "same"
    for name, value in NOT_HERE.items():
        setattr(arguments, name, value)
    arguments.margin, arguments.seed = None, arguments.seed or 1
    given = [profile.load(name, SHIPPED_FOLDER) for name in profile.names(SHIPPED_FOLDER)]
    looked_for = [*session.prefix_commands(space, given), *training.tools(how)]
    arm = Arm(REFERENCE_PROFILE, REFERENCE_PROFILE, engine)
    around = measuring.surroundings(arguments, [arm], looked_for)
    training.require_in(around.seen, workloads, how)
    ranks.require_gpus(around.seen, together, how)
    ranks.require_room(around.seen, together)
    inspection = of_rank(around.seen[engine]["inspection"], together)
    baseline = resolve(profile.load(REFERENCE_PROFILE), inspection)
    gpus = inspection["facts"].get("gpus", 0)
    not_tried = partial(shares.not_tried, None if own else trained, how, numerics, together, gpus)
    narrowed, _ = narrow(space, inspection, numerics, not_tried)  # before anything is recorded: it may leave nothing
    shipped, left_out = (
        ([], [])
        if arguments.space_only
        else session.shipped(SHIPPED_FOLDER, inspection, numerics, space.first, not_tried)
    )
    require_candidates(narrowed, baseline, inspection, one_by_one=arguments.exhaustive, alone=not shipped)
    data = own_command.NO_DATA if own else training.data(arguments.data, workloads)
    plan = measuring.plan_of(arguments, (arm,), around, trained, own, data.location)
    plan, steps = lengths(plan)
    blocks = (arguments.blocks or GRID_BLOCKS) if arguments.exhaustive else 0
    budget_s = 0.0 if arguments.exhaustive else arguments.budget or BUDGET_S
    settings = Settings(budget_s, plan.seed, numerics, blocks, steps, str(written))
    folder = arguments.output or measuring.new_folder(f"tune-{path.stem}")
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
            engines=around.seen,
            data_source=data.source,
            baseline=baseline.to_json(),
            shipped=[
                {"profile": profile_file.to_json(one.profile), "environment": one.environment.to_json()}
                for one in shipped
            ],
            left_out_profiles=[one.to_json() for one in left_out],
            removed_variables=around.removed,
            kept_variables=around.kept,
        )
        return _go_on(opened, [first], around, arguments.json)


def _resume(arguments: argparse.Namespace) -> int:
    why = "can't be given with --resume: a tuning keeps the settings it was started with"
    refuse_others(arguments, ("command", "resume", "json", "profile"), why)
    first = record.first(arguments.resume, "tune")
    if first["schema"] != record.SCHEMA:
        began = "an earlier version began this tuning, by other rules"
        raise InputError(f"--resume {arguments.resume}: {began}; start a new one")
    with record.understood(arguments.resume):
        plan = Plan.from_json(first["plan"])
        moved = [event.get("profile") for event in record.read(arguments.resume, "tune") if event["event"] == "resume"]
        places = [first["settings"]["profile"], *(one for one in moved if one is not None)]
        exhaustive = bool(first["settings"]["blocks"])
    if exhaustive and arguments.profile:
        raise InputError("--profile means nothing with --exhaustive, which writes no profile; leave it out")
    written = _absolute(arguments.profile or Path(places[-1]))
    if not exhaustive:
        place.require(written)
    around = measuring.same_surroundings(arguments.resume, first, plan)
    with Record.reopen(arguments.resume) as opened:
        events = record.read(arguments.resume, "tune")
        events.append(opened.append("resume", command=sys.argv, profile=str(written)))
        return _go_on(opened, events, around, arguments.json)


def _go_on(opened: Record, events: list[Event], around: Surroundings, as_json: bool) -> int:
    """Do what the record lacks, and return the exit status."""
    first, folder = events[0], opened.path.parent
    with record.understood(folder):
        plan = Plan.from_json(first["plan"])
        settings = Settings(**first["settings"])
        if events[-1]["event"] == "resume":
            settings = replace(settings, profile=events[-1]["profile"])
        baseline = Environment.from_json(first["baseline"])
        inspection = of_rank(first["engines"][plan.reference.engine]["inspection"], plan.ranks)
        job = Job(plan, {REFERENCE_PROFILE: baseline}, around.engines, around.inherited, around.kept)
        tuning = Session(
            settings, job, inspection, opened, events, _begin(around, first["data_source"], inspection), as_json
        )
    try:
        tuning.run_search()
        try:
            chosen = tuning.chosen()
            if chosen is None:
                return _nothing(tuning)
            if settings.blocks:
                return _ranked(tuning, as_json)
            reason, summary, verdict = tuning.confirm(chosen)
        except InputError as error:  # it could all be written when the tuning began
            raise InputError(f"{error}; then {_go_on_with(tuning)}") from None
    except KeyboardInterrupt:
        return _interrupted(tuning)
    except BaselineFailed as error:
        tuning.append("end", reason=FAILED_WORKER)
        # one that never ran will hardly do so when nothing has changed
        never = f"mend that and start again; the record is in {tuning.folder}"
        print(f"runner: {error}; {_go_on_with(tuning) if tuning.board.looks_s else never}", file=sys.stderr)
        return FAILED
    if reason == CUT_SHORT:
        return _interrupted(tuning)
    return _concluded(tuning, reason, summary, verdict, as_json)


def _begin(around: Surroundings, data_source: str, inspection: Mapping[str, Any]) -> Any:
    """Writes the first event of the confirmation's record."""

    def begin(opened: Record, job: Job) -> Event:
        inside = [(one, of_rank(inspection, one.ranks)) for one in job.environments.values()]
        findings = preflight(inside, force=True)
        return measuring.begin(opened, job, around, data_source, findings)

    return begin


def _concluded(tuning: Session, reason: str, summary: Summary, verdict: Verdict, as_json: bool) -> int:
    """Write the profile that won, and say what came out."""
    board, path = tuning.board, Path(tuning.settings.profile)
    number = tuning.search.best(shipped=True)
    shipped = None if number is None else board.entries[number].title
    found = outcome.knobs(tuning.space, board)
    unseen = tuning.search.unseen
    # what had no effect stays in the record, and proves nothing when that goes on
    reason = NOT_IN_EFFECT if summary.not_in_effect else reason
    ended = reason in ENDED
    # after an end that wrote, what was there before it is no longer there
    there = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
    ends = [event for event in tuning.events if event["event"] == "end" and event["reason"] in ENDED]
    written_before = any(event.get("there") != there for event in ends if event.get("profile", str(path)) == str(path))
    best = verdict.best if ended else None
    tuning.append("end", reason=reason, best=best, there=there, profile=str(path))
    # last, as it has the digest of the whole record
    replaces = verdict.best != confirm.BASELINE and not written_before  # to read an old one again replaces nothing
    written = _write(tuning, summary, verdict, shipped, found, replaces) if ended else None
    if as_json:
        versus = verdict.versus and {**asdict(verdict.versus), "verdict": verdict.versus.verdict}
        print(json.dumps({
            **outcome.to_json(board, tuning.left_out, found),
            "best": best, "best_shipped": shipped, "shipped_not_looked_at": unseen,
            "versus_best_shipped": versus, "confirmation": summary.to_json(),
            "written": str(path) if written and not written.stays else None,
            "earlier": str(written.earlier) if written and written.earlier else None, "record": str(tuning.folder),
        }))  # fmt: skip
    else:
        out = report.console()
        outcome.show_confirmation(summary, verdict, shipped, out, unseen)
        report.items(out, scaling_wording.rows(summary), width=outcome.LABEL)
        outcome.show_search(board, tuning.left_out, found, out, unseen)
        if written:
            report.item(out, "written", outcome.advice(verdict, shipped, path, written), width=outcome.LABEL)
            if verdict.best != confirm.BASELINE and not written.stays:
                report.item(
                    out,
                    "use it",
                    outcome.usage(tuning.job.plan, _name(path), profile.load(str(path)).ranks, tuning.job.kept),
                    width=outcome.LABEL,
                )
        report.item(out, "machine", wording.machine(summary), width=outcome.LABEL)
        confirmed = f"{short(tuning.folder)}, and the confirmation: runner report {quoted(tuning.confirmation)}"
        report.item(out, "record", confirmed, width=outcome.LABEL)
    if not ended:
        said = f"the confirmation ended: {reason}; no profile was written"
        go_on = outcome.failed_again(summary) + _go_on_with(tuning)
        never = "start a new tuning: what was seen to have no effect in this one stays in its record"
        print(f"runner: {said}; {never if summary.not_in_effect else go_on}", file=sys.stderr)
    return MEASURED if ended else FAILED


def _write(
    tuning: Session,
    summary: Summary,
    verdict: Verdict,
    shipped: str | None,
    found: list[Importance],
    replaces: bool,
) -> Written:
    path = Path(tuning.settings.profile)
    number = {
        confirm.TUNED: tuning.search.best(), confirm.SHIPPED: tuning.search.best(shipped=True),
    }.get(verdict.best)  # fmt: skip
    won = tuning.search.baseline if number is None else tuning.search.candidates[number]
    machine = wording.machine(summary)
    made = replace(won.profile, title=f"Tuned for this machine: {won.profile.title}")
    if not verdict.same_losses:
        made = replace(made, numerics="may-differ")
    if tuning.job.plan.ranks > 1:  # it is worth that in so many ranks, and was resolved for one of them
        made = replace(made, ranks=tuning.job.plan.ranks)
    folders = [folder.resolve() for folder in (tuning.folder, tuning.confirmation)]  # it is read from anywhere
    source = f"{folders[-1] / record.FILE_NAME}, SHA-256 {digest(tuning.confirmation)}"
    why = outcome.reason(verdict, tuning.events[0]["time"], machine, shipped, tuning.search.unseen)
    name = {confirm.TUNED: confirm.TUNED, confirm.SHIPPED: shipped}.get(verdict.best, REFERENCE_PROFILE)
    measured = next(one for one in summary.measured if one.arm == name)
    evidence = {
        "profile": path.stem,
        "best": verdict.best,
        "best_shipped": shipped,
        "shipped_not_looked_at": tuning.search.unseen,
        "machine": machine,
        "environment": won.environment.to_json(),
        "comparisons": summary.to_json()["comparisons"],
        "versus_best_shipped": verdict.versus and asdict(verdict.versus),
        "checks": [asdict(one) for one in measured.checks],
        "importance": [asdict(one) for one in found],
        "records": {str(folder / record.FILE_NAME): digest(folder) for folder in folders},
    }
    content = profile_file.content(made, why, source, path)
    try:
        return place.write(path, content, evidence, replaces)
    except InputError as error:  # it could be written when the tuning began
        raise InputError(f"{error}; {_go_on_with(tuning)} --profile FILE.yaml") from None


def _ranked(tuning: Session, as_json: bool) -> int:
    """The end of --exhaustive."""
    tuning.append("end", reason=ENDED[-1])
    found = outcome.knobs(tuning.space, tuning.board)
    if as_json:
        print(json.dumps({**outcome.to_json(tuning.board, tuning.left_out, found), "record": str(tuning.folder)}))
        return MEASURED
    out = report.console()
    outcome.show_ranking(tuning.board, out)
    outcome.show_search(tuning.board, tuning.left_out, found, out)
    report.item(out, "record", f"{tuning.folder}; the best is in {session.CHOSEN_FILE} there", width=outcome.LABEL)
    return MEASURED


def _nothing(tuning: Session) -> int:
    """Every candidate failed."""
    tuning.append("end", reason=FAILED_WORKER)
    board = tuning.board
    if board.problems:
        number, problem = next(iter(board.problems.items()))
        said = f"all {len(board.problems)} candidates failed, the first ({board.entries[number].title}): {problem}"
    else:
        least = f"{math.ceil(tuning.search.least_budget_s)}s"
        said = f"the budget has no room for a single candidate and its confirmation: give --budget {least} or more"
        said += outcome.busy(tuning.events)
    print(f"runner: {said}; no profile was written; the record is in {tuning.folder}", file=sys.stderr)
    return FAILED


def _interrupted(tuning: Session) -> int:
    tuning.append("end", reason=CUT_SHORT)
    print(f"runner: interrupted; {_go_on_with(tuning)}", file=sys.stderr)
    return INTERRUPTED


def _go_on_with(tuning: Session) -> str:
    return f"go on with: runner tune --resume {quoted(tuning.folder)}"


def _absolute(path: Path) -> Path:
    return path if path.is_absolute() else Path.cwd() / path


def _name(path: Path) -> str:
    """How a command names the profile that was written there."""
    return profile.TUNED if path == _default_path() else str(path)


def _default_path() -> Path:
    return LOCAL_FOLDER / f"{profile.tuned_name()}.yaml"
