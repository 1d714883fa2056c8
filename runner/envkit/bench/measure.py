"""The measuring loop: blocks of fresh workers in random order, until the answer is precise enough or time is up.

First each arm is started once to see its pace, from which the lengths of samples follow (``envkit.bench.pace``). The
number of blocks follows from how long the first four took, whose samples have these lengths already, and the budget.
Where that has no room for a verdict, ``envkit.bench.room`` says whether the run goes on or ends at once.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import fmean

import msgspec

from envkit.bench import decide, pace, private_values, quality, requests, room, writes
from envkit.bench.arms import Arm, View
from envkit.bench.events import Dropped, Failure, FixedDesign, Longer, ReferenceKernelFailure, Timed, WarmUp
from envkit.bench.events import ReferenceKernel as ReferenceTiming
from envkit.bench.job import Job
from envkit.bench.messages import (
    ONE_OF_EACH,
    ArmsDropped,
    ArmsOverMemory,
    BlocksFit,
    InterimBest,
    InterimSpeedup,
    RacerFailed,
    RacerNotInEffect,
)
from envkit.bench.neighbours import Neighbours
from envkit.bench.parse_sample import (
    KERNEL_KEYS,
    comparable,
    diverged,
    other_loader,
    other_ranks,
    parse_document,
    parse_sample,
    unlike_parts,
)
from envkit.bench.problem_messages import FewSteps, WarmingUp
from envkit.bench.record import Event, Record
from envkit.bench.room import block_s, readings_s, wants_reading
from envkit.bench.run import Run
from envkit.checks.effect import Check
from envkit.checks.sample_effect import check_sample
from envkit.common.messages import Clauses
from envkit.common.progress import Progress
from envkit.engines import turns
from envkit.engines.base import Launch, Outcome
from envkit.engines.measurement import TrainingDocument
from envkit.messages import Message
from envkit.stats.sequential import Design, interim
from envkit.worker.request import ReferenceKernel

KERNEL_TIMEOUT_S = 60.0
# Interim results show so many profiles; of more only the best.
MOST_PROFILES = 3


@dataclass
class _Failure(Exception):
    """A worker failed: what is to be recorded of it."""

    arm: str
    problem: Message
    outcome: Outcome


class _Run:
    """One run in progress: its job, its record, and what has happened so far (of an interrupted run too)."""

    def __init__(self, job: Job, record: Record, events: list[Event], progress: Progress) -> None:
        self.job = job
        self.so_far = Run.parse(events).measuring(job.study)
        self._events = events
        self._record = record
        self._progress = progress
        self._neighbours = Neighbours()

    @property
    def usable_cpus(self) -> int:
        """The fewest that any arm's workers have, as was seen inside what they run in."""
        beginning = self.so_far.beginning
        return min(beginning.inspection(target)["facts"]["usable_cpus"] for target in beginning.engines)

    @property
    def design(self) -> Design | None:
        return self.so_far.design

    @property
    def planned(self) -> int:
        """How many blocks there will be; 0 before that is fixed."""
        rule = self.job.study.stopping
        longer = self.job.study.fewest_blocks if self.so_far.first(Longer) else 0
        return self.design.planned if self.design else rule.blocks or max(rule.halvings, default=longer)

    def say(self, message: Message) -> None:
        self._progress.say(message)

    def append(self, event: Timed) -> None:
        """Record an event, without the values of the caller's variables."""
        fields = msgspec.to_builtins(event)
        self._write(fields.pop("event"), fields)

    def _write(self, kind: str, fields: Mapping[str, object]) -> None:
        hidden = private_values.hidden(fields, self.job.context.kept, self.job.context.inherited)
        self._events.append(self._record.append(kind, **hidden))
        self.so_far = self.so_far.followed_by(self._events[-1])

    def decided(self, choose: Callable[[Run], decide.Decision]) -> str | None:
        """Record each decision on what was measured; return the reason to end, or None to go on."""
        while isinstance(decision := choose(self.so_far), Longer | FixedDesign | Dropped):
            self.append(decision)
            if isinstance(decision, Longer) and (need := room.need(self.so_far)) is not None:
                self.say(room.going_on(need))
            elif isinstance(decision, Dropped):
                kind = ArmsOverMemory if decision.over_memory else ArmsDropped
                self.say(kind(decision.block, tuple(decision.arms)))
        return decision

    def commands(self) -> dict[str, str]:
        """Return the shell commands that start workers, by the arm's name."""
        return {arm.name: self.job.typed(arm, self._record.path.parent) for arm in self.job.study.arms}

    def first(self, arm: Arm) -> bool:
        """Start ``arm`` once, unmeasured, and record its pace; all its files are in the page cache from then on.

        Returns whether the profile was in effect. If not, the run ends here, and the worker's document is its sample.
        """
        study = self.job.study
        self._progress.start("warming up", arm.name, self.so_far.left_s)
        length = pace.first_length(study.user_command, study.workload_spec(arm), study.ranks_of(arm))
        work = requests.of_first(study, arm, *length)
        launch = self.job.launch(arm, work)
        outcome = self.job.context.engines[arm.target].run(launch)
        document, problem = parse_document(outcome, {"step_s"})
        if document is not None:
            problem = diverged(document, study.options) or writes.outside(study, document)
        if problem is not None:
            raise _Failure(arm.name, WarmingUp(self.job.explained(problem)), outcome)
        assert document is not None, "there is a document or a problem"
        checks: list[Check] = []
        if "evidence" in document:
            checks = self._checked(arm, {**document, "stderr": outcome.stderr_tail})
            if not all(one.holds for one in checks):
                return self._sample(len(self.so_far.samples(arm)), arm, outcome, padding=0)
        if arm == study.reference and (written := writes.written_files(study, document)):
            self.say(written)
        warm_up = WarmUp(
            arm=arm.name,
            worker_seconds=round(outcome.seconds, 3),
            step_s=document["step_s"],
            peak_memory_bytes=document.get("peak_memory_bytes", 0),
            writes=document.get("writes"),
            checks=checks,
        )
        self.append(warm_up)
        return True

    def _checked(self, arm: Arm, document: TrainingDocument) -> list[Check]:
        return check_sample(self.job.environments[arm.name], document, self.job.given)

    def reference_kernel(self, block: int) -> None:
        """Time the fixed piece of work that other days' runs are compared with, outside of any profile."""
        arm = self.job.study.reference
        launch = Launch(ReferenceKernel(), inherited=self.job.context.inherited, timeout_s=KERNEL_TIMEOUT_S)
        self._progress.start(f"block {block + 1}", "reference kernel", self.goes_on_s(block))
        outcome = self.job.context.engines[arm.target].run(launch)
        document, problem = parse_document(outcome, KERNEL_KEYS)
        took_s = round(outcome.seconds, 3)
        if document is None:  # speedups do without it
            assert problem is not None, "there is a document or a problem"
            failed = ReferenceKernelFailure(
                block=block, worker_seconds=took_s, problem=problem.to_json(), stderr=outcome.stderr_tail
            )
            self.append(failed)
            return
        seconds, digest = document["seconds"], document["digest"]
        self.append(ReferenceTiming(block=block, worker_seconds=took_s, seconds=seconds, digest=digest))

    def block(self, block: int, arms: Sequence[Arm]) -> bool:
        """Measure one sample of each of ``arms``; returns whether all profiles were in effect."""
        lengths = self.so_far.lengths
        at_once = lengths.together if lengths else 1
        for first in range(0, len(arms), at_once):
            together = arms[first : first + at_once]
            self._progress.start(_stage(block), together[0].name, self.goes_on_s(block))
            with contextlib.closing(self._outcomes(block, together)) as outcomes:
                for arm, outcome in zip(together, outcomes, strict=True):
                    if not self._goes_on(block, arm, outcome):
                        return False
        self._tell(block)
        return True

    def _tell(self, block: int) -> None:
        """Say how things stand after a block."""
        if self.job.study.one_run_each:
            return
        of = f" of {self.planned}" if self.planned else ""
        self._progress.block(_stage(block, of), standing(self.so_far), self.goes_on_s(block + 1))
        if (load := self._neighbours.after_block(self.so_far, block)) is not None:
            event, warning = load
            self.append(event)
            self.say(warning)

    def _outcomes(self, block: int, arms: Sequence[Arm]) -> Generator[Outcome, None, None]:
        """How the worker of each ended, one after the other, which are started at once where there are several."""
        study = self.job.study
        starts = [
            (
                self.job.context.engines[arm.target],
                self.job.launch(arm, requests.of_sample(study, arm, block), study.padding(block, arm)),
            )
            for arm in arms
        ]
        if len(starts) == 1:
            ((engine, launch),) = starts
            yield engine.run(launch)
            return
        with turns.together(starts) as waiting:
            for one in waiting:
                yield one.train()

    def _goes_on(self, block: int, arm: Arm, outcome: Outcome) -> bool:
        """Record a sample; returns whether the run goes on. A race does without an arm that fails."""
        study = self.job.study
        try:
            in_effect = self._sample(block, arm, outcome, study.padding(block, arm))
        except _Failure as failure:
            if not study.is_race:
                raise
            self.failed(block, failure)
            context = self.job.context
            problem = private_values.of_message(failure.problem, context.kept, context.inherited)
            self.say(RacerFailed(arm.name, problem))
            return True
        if not in_effect and study.is_race:
            missed = next(check.key for check in self.so_far.samples(arm)[-1].checks if not check.holds)
            self.say(RacerNotInEffect(arm.name, missed))
        return in_effect or study.is_race

    def _sample(self, block: int, arm: Arm, outcome: Outcome, padding: int) -> bool:
        """Record a sample; returns whether the profile was in effect."""
        study = self.job.study
        same_workload = {one.name for one in study.arms if study.workload_of(one) == study.workload_of(arm)}
        before = [event for event in self._events if event["event"] == "sample" and event["arm"] in same_workload]
        earlier = [comparable(event, study, arm) for event in before]
        document, problem = parse_sample(outcome, earlier, study.options)
        if problem is not None:
            raise _Failure(arm.name, problem, outcome)
        assert document is not None, "there is a document or a problem"
        unusable = other_ranks(document, study.ranks_of(arm), study.options, arm.instances or 1)
        unusable = unusable or other_loader(document, study.workload_of(arm))
        if unusable := unusable or unlike_parts(study, arm, document, earlier):
            raise _Failure(arm.name, unusable, outcome)
        if len(document["step_s"]) <= (skipped := self.so_far.skipped_steps):  # logs may be short
            raise _Failure(arm.name, FewSteps(len(document["step_s"]), skipped), outcome)
        document = quality.with_bleu({**document, "stderr": outcome.stderr_tail})
        checks = self._checked(arm, document)
        self._write(
            "sample",
            {
                "block": block,
                "arm": arm.name,
                "worker_seconds": round(outcome.seconds, 3),
                "padding_bytes": padding,
                **document,
                "checks": [*map(asdict, checks)],
            },
        )
        if study.user_command or study.epochs:  # which may take minutes
            self._progress.finish(_stage(block), arm.name, fmean(document["step_s"]), study.step_name)
        return all(one.holds for one in checks)

    def failed(self, block: int, failure: _Failure) -> None:
        """Record a failure; its worker's time counts like that of others."""
        outcome = failure.outcome
        event = Failure(
            block=block,
            arm=failure.arm,
            worker_seconds=round(outcome.seconds, 3),
            problem=failure.problem.to_json(),
            stderr=outcome.stderr_tail,
        )
        self.append(event)

    def goes_on_s(self, blocks: int) -> float:
        """About how long the run goes on after ``blocks`` blocks: beyond the budget where the study does."""
        if not self.planned or not blocks:
            return self.so_far.left_s
        return (self.planned - blocks) * block_s(self.so_far, blocks) + readings_s(self.so_far, blocks)


def measure(job: Job, record: Record, events: list[Event], progress: Progress) -> str:
    """Run blocks and append what happens to ``record`` and ``events``; returns why it ended.

    ``events`` holds what an earlier, interrupted run recorded: samples that are there are not measured again, and
    their time counts towards the budget.
    """
    run = _Run(job, record, events, progress)
    measured = {(sample.block, sample.arm) for sample in run.so_far.samples()}
    # a full training starts cold, as the user's would; a race's was watched, so that its files are in memory
    prepared = job.study.epochs > 0 or job.study.is_race
    for block in itertools.count():
        arms = run.so_far.arms_of(block)
        missing = [arm for arm in arms if (block, arm.name) not in measured]
        if arms and not missing:
            continue
        if block and len(missing) == len(arms):  # all of a race's arms may have left
            reason = run.decided(partial(decide.after_blocks, blocks=block))
            if reason is not None:
                return reason
            missing = run.so_far.arms_of(block)
        try:
            if not prepared and (reason := _prepare(run)) is not None:
                return reason
            prepared = True
            if wants_reading(run.so_far, block):
                run.reference_kernel(block)
            if not run.block(block, missing):
                return decide.NOT_IN_EFFECT
        except _Failure as failure:
            run.failed(block, failure)
            return decide.FAILED
    raise AssertionError("blocks are endless")


def _prepare(run: _Run) -> str | None:
    """Start each arm once, and fix how long samples are, or go on with what was fixed.

    Returns why to end: a profile was not in effect, or the budget is much too short; None to go on.
    """
    unknown, unsure = run.so_far.lengths is None, partial(decide.on_budget, share=room.UNSURE)
    if unknown and run.job.passed_on is not None:
        run.say(run.job.passed_on)
    for arm in run.job.study.arms:
        if arm.name in run.so_far.dropped:
            continue
        if not run.first(arm):
            return decide.NOT_IN_EFFECT
        is_over = run.so_far.spent_s > (1 + room.OVERSHOOT) * run.job.study.stopping.budget_s
        if unknown and is_over and (reason := run.decided(unsure)) is not None:
            return reason
    if unknown:
        first = {event.arm: pace.pace_of(event) for event in run.so_far.all(WarmUp) if event.step_s}
        lengths = pace.lengths(run.job.study, first, run.usable_cpus, pace.free_bytes())
        run.job = replace(run.job, study=run.job.study.sized(lengths.steps, lengths.warmup_steps))
        run.append(msgspec.structs.replace(lengths, commands=run.commands()))
        if (reason := run.decided(unsure)) is not None:
            return reason
        first_s = pace.block_s(run.job.study, first)
        fit = int(run.so_far.left_s / first_s)
        whole = run.job.study.user_command is not None and not run.job.study.user_command.is_paced
        if whole and not run.job.study.stopping.blocks and fit >= run.job.study.fewest_blocks:
            run.say(BlocksFit(first_s, fit))
    run.job = replace(run.job, study=run.so_far.study)
    return None


def standing(run: Run) -> Message | None:
    """Return the speedups at the latest look of ``run``; None before the first interval.

    In 95% of runs all intervals of all looks hold the truth, so that nobody is misled by one that came and went.
    """
    study, fixed = run.study, run.design
    if fixed is None:
        return None
    compared = [arm for arm in study.compared if arm.name not in run.dropped]
    shown = [study.whole] if study.view is View.SETTINGS else compared
    speedups = []
    for arm in shown:
        interval = interim(fixed, run.block_ratios(arm), study.stopping.margin)
        if interval is not None:
            speedups.append(InterimSpeedup(arm.name, interval.ratio, interval.low, interval.high))
    if len(speedups) > MOST_PROFILES:
        return InterimBest(len(speedups), max(speedups, key=lambda one: one.ratio))
    return Clauses(tuple(speedups)) if speedups else None


def _stage(block: int, of: str = "") -> str:
    """Return what progress calls a block; of the first one it says what that is."""
    return f"block {block + 1}{of}{f' ({ONE_OF_EACH})' if block == 0 else ''}"
