"""The measuring loop: blocks of fresh workers in random order, until the answer is precise enough or time is up."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from runner import quality
from runner.blocks import INITIAL_WEIGHTS, block_ratios, recorded_design, samples, skipped_steps, step_curves
from runner.engines.base import Engine, Outcome, Task
from runner.environment import Environment
from runner.plan import Arm, Plan
from runner.progress import Progress
from runner.record import Event, Record
from runner.sample_effect import check_sample
from runner.scaling import unlike_parts
from runner.statistics.sequential import Design, at_look, design, fewest_blocks, may_stop
from runner.statistics.steady import steady
from runner.worker.fashion_mnist import SYNTHETIC
from runner.worker.modes import CUDA, Options
from runner.worker.sensitive import asked_for, is_sensitive
from runner.worker.workloads import GENERATED

# Why a run ended; the reasons that mean it was completed.
PRECISE, BUDGET, PLANNED, COMPLETE = "precise enough", "budget used up", "planned blocks measured", "complete"
ENDED = (PRECISE, BUDGET, PLANNED, COMPLETE)
FAILED, NOT_IN_EFFECT, INTERRUPTED = "a worker failed", "not in effect", "interrupted"
# What a worker's document must have to be a sample, or a reading of the yardstick.
SAMPLE_KEYS = {"seconds", "step_s", "losses", "digests", "usage", "evidence"}
YARDSTICK_KEYS = {"seconds", "digest"}
YARDSTICK_TIMEOUT_S = 60.0
# What an engine says of a worker of which it knows no more than the exit status.
STATUS = re.compile(r"ended with exit status \d+|was killed by signal \w+")
# After so many blocks it is known how many fit into the budget.
DESIGN_BLOCKS = 2
PADDING = "ENVKIT_PADDING"
# Data that is in no folder: workers make it.
NO_FOLDER = (SYNTHETIC, GENERATED)


@dataclass(frozen=True)
class Job:
    """Everything it takes to start workers: what to measure, as whom, and with what.

    ``environments`` are by the arm's name, ``engines`` by its place. ``inherited`` are the caller's variables that
    workers may have; ``kept`` those of them that the user chose to keep, because they change the outcome or are needed
    in a container.
    """

    plan: Plan
    environments: dict[str, Environment]
    engines: dict[str, Engine]
    inherited: dict[str, str]
    kept: dict[str, str]

    def task(self, arm: Arm, arguments: tuple[str, ...], padding: int = 0) -> Task:
        """The start of one worker of ``arm``, its environment made larger by ``padding`` bytes."""
        environment, data = self.environments[arm.name], self.plan.trained(arm).data
        settings = {name: value for name, value in self.kept.items() if is_sensitive(name)}
        told = asked_for(environment.variables) if self.plan.own else {}  # the command may replace them
        return Task(
            arguments=arguments,
            variables={**settings, **environment.variables, **told, **({PADDING: "x" * padding} if padding else {})},
            inherited=self.inherited,
            prefix=environment.prefix,
            data=None if self.plan.own or data in NO_FOLDER else data,
            folder=self.plan.own.folder if self.plan.own else None,
            timeout_s=self.plan.timeout_s,
            passed_on={name: value for name, value in self.kept.items() if name not in settings},
            nodes=1 if arm.ranks else self.plan.nodes,
            gpus=self.plan.options.device == CUDA,
        )


@dataclass
class _Failure(Exception):
    """A worker failed: what is to be recorded of it."""

    arm: str
    problem: str
    outcome: Outcome


class _Run:
    """One run in progress: its job, its record, and what has happened so far (of an interrupted run too)."""

    def __init__(self, job: Job, record: Record, events: list[Event], progress: Progress) -> None:
        self.job = job
        self.plan = job.plan
        self.events = events
        self._record = record
        self._progress = progress

    @property
    def spent_s(self) -> float:
        """What counts towards the budget: all workers so far, those of an interrupted run too."""
        return float(sum(event.get("worker_seconds", 0) for event in self.events))

    @property
    def design(self) -> Design | None:
        return recorded_design(self.events, self.plan)

    def say(self, text: str) -> None:
        self._progress.say(text)

    def append(self, event: str, **fields: Any) -> None:
        self.events.append(self._record.append(event, **fields))

    def has(self, event: str, **fields: Any) -> bool:
        return any(
            one["event"] == event and all(one[name] == value for name, value in fields.items()) for one in self.events
        )

    def warm(self) -> None:
        """Start each arm once, unmeasured: its files are then in the page cache as they are for all later samples."""
        for arm in self.plan.arms:
            self._progress.start("warming up", arm.name, self._left_s())
            outcome = self._start(arm, self.job.task(arm, self.plan.shortest_arguments(arm)), " (warming up)")
            self.append("warmed", arm=arm.name, worker_seconds=round(outcome.seconds, 3))

    def yardstick(self, block: int) -> None:
        """Time the fixed piece of work that other days' runs are held against, outside of any profile."""
        arm = self.plan.reference
        task = Task(("yardstick",), inherited=self.job.inherited, timeout_s=YARDSTICK_TIMEOUT_S)
        self._progress.start(f"block {block + 1}", "yardstick", self._left_s())
        outcome = self.job.engines[arm.place].run(task)
        document, problem = _document(outcome, YARDSTICK_KEYS)
        where = {"block": block, "worker_seconds": round(outcome.seconds, 3)}
        if document is None:  # speedups do without it
            self.append("yardstick-failure", **where, problem=problem, stderr=outcome.stderr_tail)
        else:
            self.append("yardstick", **where, **document)

    def sample(self, block: int, arm: Arm) -> bool:
        """Measure one sample; returns whether the profile was in effect."""
        self._progress.start(f"block {block + 1}", arm.name, self._left_s())
        padding = self.plan.padding(block, arm)
        outcome = self._start(arm, self.job.task(arm, self.plan.worker_arguments(arm, block), padding))
        alike = {one.name: one for one in self.plan.arms if self.plan.workload_of(one) == self.plan.workload_of(arm)}
        before = [event for event in samples(self.events) if event["arm"] in alike]
        earlier = [_held_against(event, alike[event["arm"]], arm) for event in before]
        document, problem = understood(outcome, earlier, self.plan.options)
        if document is None:
            raise _Failure(arm.name, problem or "", outcome)
        wrong = other_ranks(document, self.plan.ranks_of(arm), self.plan.options)
        if wrong := wrong or unlike_parts(self.plan, arm, document, earlier):
            raise _Failure(arm.name, wrong, outcome)
        if len(document["step_s"]) <= (skipped := skipped_steps(self.events, arm)):  # logs may be short
            few = f"found only {len(document['step_s'])} step times, and the first {skipped} are left out as warm-up"
            raise _Failure(arm.name, few, outcome)
        where = {"block": block, "arm": arm.name, "worker_seconds": round(outcome.seconds, 3)}
        document["stderr"] = outcome.stderr_tail
        document = quality.worked_out(document)
        self.append("sample", **where, padding_bytes=padding, **document)
        self._progress.finish(f"block {block + 1}", arm.name, fmean(document["step_s"]), self.plan.step_name)
        return all(one.holds for one in check_sample(self.job.environments[arm.name], document, self.job.kept))

    def failed(self, block: int, failure: _Failure) -> None:
        """Record a failure; its worker's time counts like that of others."""
        outcome = failure.outcome
        where = {"block": block, "arm": failure.arm, "worker_seconds": round(outcome.seconds, 3)}
        self.append("failure", **where, problem=failure.problem, stderr=outcome.stderr_tail)

    def _start(self, arm: Arm, task: Task, stage: str = "") -> Outcome:
        outcome = _told(self.job.engines[arm.place].run(task))
        if outcome.failure is not None:
            raise _Failure(arm.name, f"{outcome.failure}{stage}", outcome)
        return outcome

    def _left_s(self) -> float:
        return max(0.0, self.plan.budget_s - self.spent_s)


def _held_against(event: Event, measured: Arm, arm: Arm) -> Event:
    """A sample of ``measured``, for one of ``arm``: another engine or image may have another PyTorch.

    That of another image may make other weights to begin with.
    """
    if measured.place == arm.place:
        return event
    event = {**event, "evidence": {**event["evidence"], "torch": {}}}
    if measured.image == arm.image:
        return event
    return {**event, "digests": {k: v for k, v in event["digests"].items() if k != INITIAL_WEIGHTS}}


def measure(job: Job, record: Record, events: list[Event], progress: Progress) -> str:
    """Run blocks and append what happens to ``record`` and ``events``; returns why it ended.

    ``events`` holds what an earlier, interrupted run recorded: samples that are there are not measured again, and
    their time counts towards the budget.
    """
    run = _Run(job, record, events, progress)
    measured = {(event["block"], event["arm"]) for event in samples(events)}
    warmed = job.plan.epochs > 0  # the full training begins as one's own would
    for block in itertools.count():
        missing = [arm for arm in job.plan.order(block) if (block, arm.name) not in measured]
        if not missing:
            continue
        if len(missing) == len(job.plan.arms):
            reason = _reason_to_end(run, block)
            if reason is not None:
                return reason
        try:
            if not warmed:
                run.warm()
                warmed = True
            if job.plan.epochs == 0 and not run.has("yardstick", block=block) and not run.has("yardstick-failure"):
                run.yardstick(block)
            if not all(run.sample(block, arm) for arm in missing):
                return NOT_IN_EFFECT
        except _Failure as failure:
            run.failed(block, failure)
            return FAILED
    raise AssertionError("blocks are endless")


def precise_enough(events: Sequence[Event], plan: Plan, fixed: Design) -> bool:
    """Whether all comparisons are decided, each by an interval that is narrow enough."""
    ratios = [block_ratios(events, plan, arm, reference=other) for arm, other in plan.contrasts]
    return all(may_stop(at_look(fixed, of_arm, plan.margin), plan.precision) for of_arm in ratios)


def _reason_to_end(run: _Run, blocks: int) -> str | None:
    """Why to end after ``blocks`` complete blocks, or None to go on."""
    plan = run.plan
    if blocks == 0:
        return None
    if plan.one_run_each:
        return COMPLETE
    if blocks >= DESIGN_BLOCKS and not run.has("design"):
        _fix_design(run, blocks)
    fixed = run.design
    if fixed is not None and blocks in fixed.looks[:-1] and precise_enough(run.events, plan, fixed):
        return PRECISE
    if plan.blocks:
        return COMPLETE if blocks >= plan.blocks else None
    if fixed is not None and blocks >= fixed.planned:
        return PLANNED
    return BUDGET if run.spent_s + _block_s(run, blocks) > plan.budget_s else None


def _block_s(run: _Run, blocks: int) -> float:
    """What a block took so far; warming comes only once, and a worker that failed was tried again."""
    once = sum(event["worker_seconds"] for event in run.events if event["event"] in ("warmed", "failure"))
    return float(run.spent_s - once) / blocks


def _fix_design(run: _Run, blocks: int) -> None:
    """Record, before any look, how many blocks there will be and which steps of a sample count.

    The blocks are as many as the budget has room for. Steps in which any arm still warms up count in none of them;
    in a full training all steps count.
    """
    plan = run.plan
    if plan.blocks:
        fixed = Design(plan.blocks, (plan.blocks,), plan.sharing)
    else:
        block_s = _block_s(run, blocks)
        planned = blocks + int((plan.budget_s - run.spent_s) / block_s)
        fixed = design(planned, plan.sharing)
        fewest = fewest_blocks(plan.sharing)
        if plan.contrasts and planned < fewest:
            minutes = math.ceil((run.spent_s + (fewest - blocks + 1) * block_s) / 60)
            run.say(
                f"the budget has room for {planned} blocks, and an interval needs {fewest}: --budget {minutes}m has it"
            )
    curves = {arm.name: steady(step_curves(run.events, arm)) for arm in plan.arms if _can_be_laid_over(run, arm)}
    warm_up = {name: found.steps for name, found in curves.items() if found is not None}
    unsteady = [name for name, found in curves.items() if found is not None and not found.reached]
    skipped: dict[str, int] = {}
    for arm in plan.arms:  # all together where they train the same, or it is one command of the user's
        alike = (one for one in plan.arms if not plan.each or plan.workload_of(one) == plan.workload_of(arm))
        longest = max((warm_up.get(one.name, 0) for one in alike), default=0)
        skipped[arm.name] = max(0, longest - plan.trained(arm).warmup_steps)
    steps: dict[str, Any] = {"warm_up": warm_up, "unsteady": unsteady}
    steps |= {"skipped_steps": skipped[plan.reference.name], **({"skipped_of_arms": skipped} if plan.each else {})}
    run.append("design", planned_blocks=fixed.planned, looks=fixed.looks, **steps)


def _can_be_laid_over(run: _Run, arm: Arm) -> bool:
    """Whether warm-up is looked for: in samples with equally many steps, which a user's log need not have.

    What is left out is left out of all arms of one command, so that all of these must have as many.
    """
    alike = [arm] if run.plan.own is None else run.plan.arms
    return not run.plan.epochs and len({len(curve) for one in alike for curve in step_curves(run.events, one)}) == 1


def _told(outcome: Outcome) -> Outcome:
    """With what a worker said of its failure itself, in the document that it printed, in the exit status' place.

    What an engine knows beyond that status, such as a limit of memory that was reached, is said too.
    """
    if outcome.failure is None:
        return outcome
    for line in outcome.stdout.splitlines():  # of several nodes each may have one
        with contextlib.suppress(ValueError, KeyError, TypeError):
            problem = str(json.loads(line)["problem"])
            known = "" if STATUS.fullmatch(outcome.failure) else f"; it {outcome.failure}"
            return replace(outcome, failure=f"{problem}{known}")
    return outcome


def _document(outcome: Outcome, keys: set[str]) -> tuple[dict[str, Any] | None, str | None]:
    """What a worker printed, or what is wrong with it."""
    if outcome.failure is not None:
        return None, _told(outcome).failure
    try:
        document: dict[str, Any] = json.loads(outcome.stdout)
    except ValueError:
        return None, "printed no JSON document"
    if not isinstance(document, dict) or not document.keys() >= keys:
        return None, "printed another document than was asked for"
    return document, None


def _other_modes(document: Mapping[str, Any], options: Options) -> str | None:
    """What is wrong where a worker did not train as ``options`` say; None where it did, or has no modes."""
    seen = document.get("modes") or {}  # a user's own command has none
    for name, wanted in options.modes.items():
        if seen.get(name, wanted) != wanted:
            return f"was to train with {name.replace('_', ' ')}: {wanted}, and saw that it was: {seen[name]}"
    return None


def other_ranks(document: Mapping[str, Any], wanted: int, options: Options) -> str | None:
    """What is wrong where others than ``wanted`` ranks have trained together, or by another backend; else None."""
    seen = len(document.get("ranks", [document]))
    if seen != wanted:
        return f"was to train on {wanted} ranks, and has the evidence of {seen}"
    backend = document.get("backend", options.exchange)
    return None if backend == options.exchange else f"was to exchange by {options.exchange}, and did so by {backend}"


def understood(
    outcome: Outcome, earlier: Sequence[Event], options: Options, keys: set[str] = SAMPLE_KEYS
) -> tuple[dict[str, Any] | None, str | None]:
    """A sample, or what is wrong: there is none, or other code, data, weights or modes than were to be measured.

    ``earlier`` are the samples of the same workload, whose digests it must have; ``options`` say in which modes it was
    to train, and ``keys`` are what it must have. Its usage then has ``engine_s`` too, the CPU time in seconds of what
    the engine ran beside the worker, where that is known.
    """
    document, problem = _document(outcome, keys)
    if document is None:
        return None, problem
    for event in earlier:
        for name, digest in document["digests"].items():
            # a file that the command of a user's own writes to is not among the digests of all its samples
            if event["digests"].get(name, digest) != digest:
                return None, f"its {name.replace('_', ' ')} differs from that of earlier samples ({digest[:12]}…)"
        versions = [one.get("evidence", {}).get("torch", {}).get("version") for one in (event, document)]
        if None not in versions and versions[0] != versions[1]:
            return None, f"its torch is {versions[1]}, and that of earlier samples was {versions[0]}; start a new run"
    if other := _other_modes(document, options):
        return None, other
    if outcome.cpu_s is not None and "cpu_s" in document:
        document["usage"]["engine_s"] = max(0.0, outcome.cpu_s - document["cpu_s"])
    return document, None
