"""``envkit breakdown PROFILE [PROFILE]``: where a training step's time goes, and why one profile takes less of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from envkit import engines
from envkit.analysis import operator_times, phase_times
from envkit.analysis.operator_times import Profiled
from envkit.analysis.phase_times import PhaseTimes
from envkit.bench import early_checks, parse_sample, private_values, requests
from envkit.bench.arms import Arm
from envkit.bench.job import Job
from envkit.bench.prepare import prepare
from envkit.bench.study import REFERENCE_PROFILE, TIMEOUT_S, StoppingRule, Study, WorkloadSpec
from envkit.checks.effect import Check, check
from envkit.cli import engine_options, training_options
from envkit.cli.arguments import add_output_options, count, duration, is_quiet, refuse
from envkit.cli.commands import breakdown_messages as messages
from envkit.cli.commands.help_messages import BREAKDOWN
from envkit.cli.commands.messages import SettingsOff, SeveralRanks
from envkit.cli.ending import end_with
from envkit.cli.parser import BadValue, Parser
from envkit.common.errors import FAILED, MEASURED, InputError
from envkit.common.machine_lock import machine_lock
from envkit.common.messages import UnknownWord
from envkit.common.progress import Progress
from envkit.common.suggestion import nearest
from envkit.engines.measurement import TrainingDocument
from envkit.messages import Message, MessageError
from envkit.profiles import profile
from envkit.rendering import text as rendered
from envkit.report import observed, step_tables, terminal
from envkit.worker.fashion_mnist import SYNTHETIC
from envkit.worker.measure.entry_points import INPUT
from envkit.worker.request import Operators, Phases, Train
from envkit.worker.workloads import DEFAULT, WORKLOADS, find, get

STEPS, PROCESSES = 40, operator_times.ENOUGH
TOP = 12
OPERATOR_KEYS = parse_sample.SAMPLE_KEYS | {"profiled_step_s", "operators"}
PHASE_KEYS = parse_sample.SAMPLE_KEYS | {"phases", "batch"}
Documents = dict[str, list[TrainingDocument]]
Unmet = list[tuple[str, Check]]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="name of a profile, or a YAML file")
    parser.add_argument("second", metavar="PROFILE2", nargs="?",
                        help="compare PROFILE2 with PROFILE (default: compare PROFILE with baseline)")  # fmt: skip
    group = parser.add_argument_group("what to show")
    group.add_argument("--phases", action="store_true",
                       help="show the phases of a step, timed without a profiler: waiting for input, copying it, "
                       "forward, loss, backward, optimizer")  # fmt: skip
    group.add_argument("--forward", action="store_true", help="show the operators of the forward pass alone")
    group.add_argument("--top", metavar="N", type=count,
                       help=f"show the N operators that take longest (default: {TOP})")  # fmt: skip
    parser.add_argument_group("what to train").add_argument(
        "--workload", type=_workload, metavar="NAME", default=DEFAULT,
        help=f"train {', '.join(WORKLOADS)} (default: {DEFAULT})",
    )  # fmt: skip
    training_options.add_options(parser)
    group = parser.add_argument_group("how long", advanced=True)
    group.add_argument("--processes", metavar="N", type=count, default=PROCESSES,
                       help=f"start N processes of each profile, in turns (default: {PROCESSES})")  # fmt: skip
    group.add_argument("--steps", metavar="N", type=count, default=STEPS,
                       help=f"time N steps of each process, then N under the profiler (default: {STEPS})")  # fmt: skip
    group.add_argument("--warmup-steps", metavar="N", type=count,
                       help="run N steps first (default: the workload's own number)")  # fmt: skip
    group = parser.add_argument_group("workers", advanced=True)
    group.add_argument("--timeout", metavar="TIME", type=duration, default=TIMEOUT_S,
                       help="stop a worker that takes longer (default: 5m)")  # fmt: skip
    group.add_argument("--data", metavar="DIR",
                       help="read Fashion-MNIST's four files from DIR, or 'synthetic' to generate data")  # fmt: skip
    group.add_argument("--force", action="store_true", help="measure despite failed preflight checks")
    group.add_argument("--allow-unknown", action="store_true",
                       help="allow a profile to set variables that no known program reads")  # fmt: skip
    engine_options.add(parser)
    add_output_options(parser, BREAKDOWN["json"])


def _workload(text: str) -> str:
    """Return the name of a workload, for argparse. Raise BadValue for an unknown one."""
    if find(text) is None:
        raise BadValue(UnknownWord("workload", text, tuple(WORKLOADS), nearest(text, WORKLOADS)))
    return text


class _Failure(MessageError):
    """A worker failed. ``stderr`` is what it printed, without the caller's values."""

    def __init__(self, message: Message, stderr: str) -> None:
        super().__init__(message)
        self.stderr = stderr


def run(arguments: argparse.Namespace) -> int:
    if arguments.phases:
        refuse(arguments, ("forward", "top"), "--phases")
    study = _study(arguments)
    early_checks.require(study)
    with machine_lock():
        engines.remove_leftovers()
        job, source, versions = _prepare(study)
        try:
            with Progress(0.0, quiet=is_quiet(arguments)) as progress:
                documents, unmet = _measure(job, arguments, progress)
        except _Failure as failure:
            status = end_with(failure.message, FAILED, arguments.json)
            for line in failure.stderr.strip().splitlines()[-terminal.STDERR_LINES :]:
                print(f"        | {line}", file=sys.stderr)
            return status
    if arguments.json:
        result = _phases_found(documents, unmet) if arguments.phases else _operators_found(documents, unmet, arguments)
        print(json.dumps({**_facts(job.study, source, versions), **result, "not_in_effect": _missing(unmet)}))
    else:
        out = terminal.console()
        if job.study.data_of(job.study.reference) == SYNTHETIC:
            out.print(Text(rendered(messages.NotFashionMnist()), "bold red"))
        (_show_phases if arguments.phases else _show_operators)(documents, unmet, arguments, out)
        _show_measured(job.study, versions, profiler=not arguments.phases, out=out)
    return FAILED if unmet else MEASURED


def _facts(study: Study, source: Message, versions: str) -> dict[str, object]:
    return {
        "workload": study.workload, "modes": study.options.text(), "steps": study.training.steps,
        "warmup_steps": study.training.warmup_steps, "processes": study.stopping.blocks,
        "engine": study.reference.engine, "versions": versions,
        "synthetic_data": study.data_of(study.reference) == SYNTHETIC,
        "data_source": {**source.to_json(), "text": rendered(source)},
    }  # fmt: skip


def _arms(first: str, second: str | None, engine: str) -> tuple[Arm, ...]:
    """Return the arms, the one that is compared with first. Raise InputError if both are of one profile."""
    named = [REFERENCE_PROFILE, first] if second is None else [first, second]
    names = {name: profile.load(name).name for name in dict.fromkeys(named)}
    if second is not None and len(set(names.values())) < 2:
        raise InputError(messages.ComparedWithItself(second))
    return tuple(Arm(name, chosen, engine) for name, chosen in {called: path for path, called in names.items()}.items())


def _study(arguments: argparse.Namespace) -> Study:
    """Return what the command line asks for. Raise InputError for profiles that can't be profiled."""
    arms = _arms(arguments.profile, arguments.second, arguments.engine or "local")
    for arm in arms:
        if (ranks := profile.load(arm.profile).ranks) > 1:
            raise InputError(SeveralRanks(arm.name, ranks, "breakdown"))
    length = WorkloadSpec(arguments.warmup_steps or get(arguments.workload).warmup_steps, arguments.steps)
    return Study(
        title="breakdown",
        stopping=StoppingRule(budget_s=0.0, blocks=arguments.processes, timeout_s=arguments.timeout),
        workload=arguments.workload,
        workloads={arguments.workload: length},
        options=training_options.options(arguments),
        engine_options=engine_options.from_arguments(arguments),
        data=arguments.data,
        seed=0,
        force=arguments.force,
        allow_unknown=arguments.allow_unknown,
    ).with_arms(arms)


def _prepare(study: Study) -> tuple[Job, Message, str]:
    """Return what to start, where its data is from, and the engine's version and its PyTorch's."""
    prepared = prepare(study)
    about = prepared.job.context.seen[study.arms[0].target]
    engine, torch = about["engine"], about["inspection"]["packages"]["torch"]
    by = messages.MeasuredBy(engine["name"], engine["version"], str(torch))
    return prepared.job, prepared.data_source, rendered(by)


def _measure(job: Job, arguments: argparse.Namespace, progress: Progress) -> tuple[Documents, Unmet]:
    """Return what each arm's processes printed, and which expected settings of an arm were not seen. Raise _Failure.

    Arms take turns: A B, B A, A B. A drift then affects both equally.
    """
    study, training = job.study, job.study.training
    data = requests.data(study.data_of(study.reference))
    trained = Train(study.workload, data, training.warmup_steps, training.steps, study.options)
    work, keys = (
        (Phases(trained), PHASE_KEYS) if arguments.phases else (Operators(trained, arguments.forward), OPERATOR_KEYS)
    )
    documents: Documents = {arm.name: [] for arm in study.arms}
    unmet: dict[str, list[Check]] = {}
    for turn in range(study.stopping.blocks):
        for arm in study.arms if turn % 2 == 0 else reversed(study.arms):
            stage = f"process {turn + 1} of {study.stopping.blocks}"
            progress.start(stage, arm.name, 0.0)
            outcome = job.context.engines[arm.engine].run(job.launch(arm, work, study.padding(turn, arm)))
            earlier = [document for of_arm in documents.values() for document in of_arm]
            document, problem = parse_sample.parse_sample(outcome, earlier, study.options, keys)
            if document is None:
                assert problem is not None
                stderr = private_values.of_printed(outcome.stderr_tail, job.context.kept, job.context.inherited)
                failed = messages.WorkerOfArmFailed(arm.name, problem)
                raise _Failure(private_values.of_message(failed, job.context.kept, job.context.inherited), stderr)
            progress.finish(stage, arm.name, document["seconds"] / len(document["step_s"]))
            documents[arm.name].append(document)
            checks = check(job.environments[arm.name], document["evidence"], job.given, outcome.stderr_tail)
            if missed := [setting for setting in checks if not setting.holds]:
                unmet.setdefault(arm.name, missed)
    return documents, [(name, setting) for name, of_arm in unmet.items() for setting in of_arm]


def _operators_found(documents: Documents, unmet: Unmet, arguments: argparse.Namespace) -> dict[str, object]:
    sides = _profiled(documents)
    return {
        "profiles": [side.to_json() for side in sides],
        "reasons": [rendered(reason) for reason in _reasons(sides, unmet, arguments)],
    }


def _profiled(documents: Documents) -> list[Profiled]:
    return [operator_times.profiled(arm, of_arm) for arm, of_arm in documents.items()]


def _reasons(sides: Sequence[Profiled], unmet: Unmet, arguments: argparse.Namespace) -> list[Message]:
    """Return why the second profile takes less. The forward pass alone has no reasons: it is a part of the step."""
    compared = len(sides) > 1 and not unmet and not arguments.forward
    return operator_times.reasons(sides[0], sides[1]) if compared else []


def _phases_found(documents: Documents, unmet: Unmet) -> dict[str, object]:
    sides = _phase_times(documents)
    saved = phase_times.saved_to_json(sides[0], sides[1]) if len(sides) > 1 and not unmet else {}
    return {"profiles": [side.to_json() for side in sides], "saved_ms": saved}


def _phase_times(documents: Documents) -> list[PhaseTimes]:
    return [phase_times.phase_times(arm, of_arm) for arm, of_arm in documents.items()]


def _missing(unmet: Unmet) -> list[dict[str, object]]:
    return [
        {"arm": arm, "key": setting.key, "expected": setting.expected, "seen": setting.seen} for arm, setting in unmet
    ]


def _show_operators(documents: Documents, unmet: Unmet, arguments: argparse.Namespace, out: Console) -> None:
    sides = _profiled(documents)
    step_tables.operators(sides, arguments.top or TOP, out)
    out.print()
    step_tables.outside_the_profiler(sides, out)
    out.print()
    _show_missing(unmet, out)
    for number, sentence in enumerate(_reasons(sides, unmet, arguments)):
        terminal.item(out, "" if number else "why", sentence)
    idle = [messages.ShareOf(side.arm, side.gpu_idle.median) for side in sides if side.gpu_idle]
    if idle:
        terminal.item(out, "gpu", messages.GpuIdle(tuple(idle)))
    overheads = tuple(messages.Overhead(side.overhead) for side in sides)
    terminal.item(out, "profiler", messages.ProfilerCosts(overheads))


def _show_phases(documents: Documents, unmet: Unmet, arguments: argparse.Namespace, out: Console) -> None:
    sides = _phase_times(documents)
    step_tables.phases(sides, not unmet, out)
    out.print()
    _show_missing(unmet, out)
    if (workers := sides[0].workers) is not None:
        terminal.item(out, "loader", messages.LoadsBeside(workers, INPUT) if workers else messages.LoadsItself(INPUT))
    if len(sides) > 1 and arguments.processes < PROCESSES:
        terminal.item(out, "interval", messages.IntervalTakes(PROCESSES))


def _show_missing(unmet: Unmet, out: Console) -> None:
    for arm, setting in unmet:
        missed = SettingsOff(arm, setting.key, observed.shown(setting.expected), observed.shown(setting.seen))
        terminal.item(out, "effect", missed, "bold red")


def _show_measured(study: Study, versions: str, profiler: bool, out: Console) -> None:
    measured = messages.Breakdown(
        processes=study.stopping.blocks,
        steps=study.training.steps,
        warmup=study.training.warmup_steps,
        workload=study.workload,
        by=versions,
        arms=tuple(arm.name for arm in study.arms) if len(study.arms) > 1 else (),
        profiled=study.training.steps if profiler else None,
        modes=study.options.text(),
    )
    terminal.item(out, "measured", measured)
