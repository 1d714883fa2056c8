"""``envkit profile-ops PROFILE [PROFILE]``: where a training step's time goes, and why one profile takes less of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from runner import engines
from runner.analysis import operator_times
from runner.analysis.operator_times import Profiled
from runner.bench import parse_sample
from runner.bench.measure import Job
from runner.bench.plan import REFERENCE_PROFILE, Arm, Plan
from runner.bench.prepare import prepare
from runner.bench.specification import TIMEOUT_S, Specification
from runner.checks.effect import Check, check
from runner.cli import engine_options, training_options
from runner.cli.arguments import count, duration
from runner.common.errors import FAILED, MEASURED, InputError
from runner.common.machine_lock import machine_lock
from runner.common.plain_table import plain_table
from runner.common.progress import Progress
from runner.engines.base import Outcome
from runner.profiles import profile
from runner.report import terminal, wording
from runner.worker.fashion_mnist import SYNTHETIC
from runner.worker.workloads import WORKLOADS

STEPS, PROCESSES = 40, operator_times.ENOUGH
TOP = 12
KEYS = parse_sample.SAMPLE_KEYS | {"profiled_step_s", "operators"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="name of a profile, or a YAML file")
    parser.add_argument("second", metavar="PROFILE2", nargs="?",
                        help="compare it with PROFILE (default: PROFILE is compared with baseline)")  # fmt: skip
    parser.add_argument("--engine", help=f"what starts the workers: {', '.join(engines.ENGINES)} (default: local)")
    engine_options.add(parser)
    group = parser.add_argument_group("measuring")
    group.add_argument("--workload", choices=WORKLOADS, metavar="NAME", default="cnn",
                       help=f"the training job: {', '.join(WORKLOADS)} (default: cnn)")  # fmt: skip
    training_options.add_options(group)
    group.add_argument("--processes", metavar="N", type=count, default=PROCESSES,
                       help=f"fresh processes of each profile, taking turns (default: {PROCESSES})")  # fmt: skip
    group.add_argument("--steps", metavar="N", type=count, default=STEPS,
                       help=f"steps of each without the profiler, and as many with it (default: {STEPS})")  # fmt: skip
    group.add_argument("--warmup-steps", metavar="N", type=count, help="steps before them (default: the workload's)")
    group.add_argument("--timeout", metavar="TIME", type=duration, default=TIMEOUT_S,
                       help="stop a worker that takes longer (default: 5m)")  # fmt: skip
    group.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    group.add_argument("--force", action="store_true", help="measure although it is known to be worthless")
    group.add_argument("--allow-unknown", action="store_true",
                       help="let a profile set variables that nothing is known to read")  # fmt: skip
    group.add_argument("--top", metavar="N", type=count, default=TOP,
                       help=f"show the operators that take longest (default: {TOP})")  # fmt: skip
    group.add_argument("--json", action="store_true", help="print JSON for scripts: every operator, every process")


class _Failure(Exception):
    """A worker failed: which, what happened, and how it ended."""

    def __init__(self, arm: str, problem: str, outcome: Outcome) -> None:
        super().__init__(f"a worker of {arm}: {problem}")
        self.outcome = outcome


def run(arguments: argparse.Namespace) -> int:
    with machine_lock():
        engines.remove_leftovers()
        job, source, versions = _prepare(arguments)
        try:
            with Progress(0.0, quiet=arguments.json) as progress:
                documents, unmet = _measure(job, progress)
        except _Failure as failure:
            print(f"envkit: {failure}", file=sys.stderr)
            for line in failure.outcome.stderr_tail.strip().splitlines()[-terminal.STDERR_LINES :]:
                print(f"        | {line}", file=sys.stderr)
            return FAILED
    sides = [operator_times.profiled(arm.name, documents[arm.name]) for arm in job.plan.arms]
    said = operator_times.reasons(sides[0], sides[1]) if len(sides) > 1 and not unmet else []
    if arguments.json:
        plan = job.plan
        facts = {"workload": plan.workload, "modes": plan.options.text(), "steps": plan.training.steps,
                 "warmup_steps": plan.training.warmup_steps,
                 "processes": plan.stopping.blocks, "engine": plan.reference.engine, "versions": versions,
                 "synthetic_data": plan.training.data == SYNTHETIC, "data_source": source}  # fmt: skip
        missing = [{"arm": arm, "key": one.key, "expected": one.expected, "seen": one.seen} for arm, one in unmet]
        print(json.dumps({**facts, "profiles": [side.to_json() for side in sides], "reasons": said,
                          "not_in_effect": missing}))  # fmt: skip
    else:
        _show(job.plan, sides, unmet, said, versions, arguments.top)
    return FAILED if unmet else MEASURED


def _arms(first: str, second: str | None, engine: str) -> tuple[Arm, ...]:
    """The profile that others are compared with comes first."""
    given = [REFERENCE_PROFILE, first] if second is None else [first, second]
    names = {name: profile.load(name).name for name in dict.fromkeys(given)}
    if second is not None and len(set(names.values())) < 2:
        raise InputError(f"profile-ops: '{second}' is compared with itself; name two profiles, or one")
    return tuple(Arm(name, given, engine) for name, given in {called: path for path, called in names.items()}.items())


def _prepare(arguments: argparse.Namespace) -> tuple[Job, str, str]:
    """What to start; where its data is from; the engine's version and its PyTorch's."""
    arms = _arms(arguments.profile, arguments.second, arguments.engine or "local")
    for arm in arms:
        if (ranks := profile.load(arm.profile).ranks) > 1:
            one = "only one process is profiled here; choose another"
            raise InputError(f"profile '{arm.name}' is for {ranks} ranks, and {one}")
    asked = Specification(
        title="profile-ops",
        arms=arms,
        workload=arguments.workload,
        options=training_options.options(arguments),
        engine_options=engine_options.given(arguments),
        data=arguments.data,
        warmup_steps=arguments.warmup_steps or WORKLOADS[arguments.workload].warmup_steps,
        steps=arguments.steps,
        budget_s=0.0,
        blocks=arguments.processes,
        timeout_s=arguments.timeout,
        seed=0,
        force=arguments.force,
        allow_unknown=arguments.allow_unknown,
    )
    prepared = prepare(asked)
    about = prepared.context.seen[arms[0].target]
    engine, torch = about["engine"], about["inspection"]["packages"]["torch"]
    return prepared.job, prepared.data_source, f"{engine['name']} {engine['version']}, torch {torch}"


def _measure(job: Job, progress: Progress) -> tuple[dict[str, list[dict[str, Any]]], list[tuple[str, Check]]]:
    """What each arm's processes printed, and what was expected of an arm and not seen. Raises _Failure.

    They take turns: A B, B A, A B, so that what drifts hits both alike.
    """
    plan, training = job.plan, job.plan.training
    length = ("--warmup-steps", str(training.warmup_steps), "--steps", str(training.steps))
    arguments = ("operators", "--workload", plan.workload, "--data", training.data, *length, *plan.options.arguments())
    documents: dict[str, list[dict[str, Any]]] = {arm.name: [] for arm in plan.arms}
    unmet: dict[str, list[Check]] = {}
    for turn in range(plan.stopping.blocks):
        for arm in plan.arms if turn % 2 == 0 else reversed(plan.arms):
            stage = f"process {turn + 1} of {plan.stopping.blocks}"
            progress.start(stage, arm.name, 0.0)
            outcome = job.engines[arm.engine].run(job.task(arm, arguments, plan.padding(turn, arm)))
            earlier = [one for of_arm in documents.values() for one in of_arm]
            document, problem = parse_sample.parse_sample(outcome, earlier, plan.options, KEYS)
            if document is None:
                raise _Failure(arm.name, problem or "", outcome)
            progress.finish(stage, arm.name, document["seconds"] / len(document["step_s"]))
            documents[arm.name].append(document)
            checks = check(job.environments[arm.name], document["evidence"], job.kept, outcome.stderr_tail)
            if missed := [one for one in checks if not one.holds]:
                unmet.setdefault(arm.name, missed)
    return documents, [(name, one) for name, of_arm in unmet.items() for one in of_arm]


def _show(
    plan: Plan, sides: Sequence[Profiled], unmet: Sequence[tuple[str, Check]], said: Sequence[str], versions: str,
    top: int,
) -> None:  # fmt: skip
    out = terminal.console()
    if plan.training.data == SYNTHETIC:
        out.print(Text("SYNTHETIC DATA: this is not Fashion-MNIST.", "bold red"))
    _table(sides, top, out)
    out.print()
    _outside_the_profiler(sides, out)
    out.print()
    for arm, one in unmet:
        terminal.item(out, "effect", f"{arm} is NOT IN EFFECT: {one.key}: expected {wording.shown(one.expected)}, "
                                   f"seen {wording.shown(one.seen)}", "bold red")  # fmt: skip
    for number, sentence in enumerate(said):
        terminal.item(out, "" if number else "why", sentence)
    idle = [f"{side.arm} {side.gpu_idle.median:.0%}" for side in sides if side.gpu_idle]
    if idle:
        terminal.item(out, "gpu", f"had nothing to do, of a step's time under the profiler: {', '.join(idle)}")
    slower = " and ".join(f"{side.overhead:+.0%}" for side in sides)
    terminal.item(out, "profiler", f"changes a step's time by {slower}: operators' times are with it, and those of the "
                                 "clock, faults and CPU time without")  # fmt: skip
    processes = f"{plan.stopping.blocks} process{'' if plan.stopping.blocks == 1 else 'es'}"
    each = f"{processes} of each, in turns" if len(sides) > 1 else processes
    modes = f" ({plan.options.text()})" if plan.options.text() else ""
    steps = f"{plan.training.steps} steps after {plan.training.warmup_steps}, then as many under the profiler; medians"
    terminal.item(out, "measured", f"{each}: {steps}; workload {plan.workload}{modes}, {versions}")


def _table(sides: Sequence[Profiled], top: int, out: Console) -> None:
    """Milliseconds per step in each operator itself, on the thread that trains."""
    reference, other = sides[0], sides[1] if len(sides) > 1 else None
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column("ms per step", overflow="fold")
    for head in ("calls", *(name for side in sides for name in (side.arm, "share"))):
        table.add_column(head, justify="right", overflow="fold", max_width=9)
    for head in ("ratio", "change") if other else ():
        table.add_column(head, justify="right")
    for line in operator_times.lines(reference, other, top):
        cells = [operator_times.short_name(line.name), _calls(line)]
        for side, one in zip(sides, (line.reference, line.other), strict=False):
            cells += [f"{one.ms.median:.2f}", f"{one.ms.median / side.profiled_ms.median:.1%}"] if one else ["-", "-"]
        if other:
            cells += [f"{line.ratio:.2f}" if line.ratio else "-", f"{line.difference_ms:+.2f}"]
        table.add_row(*map(Text, cells))
    whole = [cell for side in sides for cell in (f"{side.profiled_ms.median:.2f}", "100%")]
    if other:
        before, now = reference.profiled_ms.median, other.profiled_ms.median
        whole += [f"{before / now:.2f}", f"{now - before:+.2f}"]
    table.add_row("whole step", "", *whole, style="bold")
    out.print(table)


def _calls(line: operator_times.Line) -> str:
    counts = {f"{one.calls:g}" for one in (line.reference, line.other) if one and one.calls}
    return " / ".join(sorted(counts)) if counts else ""


def _outside_the_profiler(sides: Sequence[Profiled], out: Console) -> None:
    figures = ("ms/step", "user ms", "system ms", "faults/step")
    table = plain_table(("without the profiler", *figures), right=figures)
    for side in sides:
        table.add_row(side.arm, f"{side.step_ms.median:.2f}", f"{side.user_ms.median:.2f}",
                      f"{side.system_ms.median:.2f}", f"{side.faults.median:,.0f}")  # fmt: skip
    out.print(table)
