"""The measuring loop: blocks of fresh workers in random order, until the answer is precise enough or time is up."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.effect import check
from runner.engines.base import Engine, Outcome, Task
from runner.environment import Environment
from runner.plan import Arm, Plan
from runner.progress import Progress
from runner.record import Event, Record
from runner.statistics.interval import speedup
from runner.worker.fashion_mnist import SYNTHETIC

# Why a run ended; the reasons that mean it was completed.
PRECISE, BUDGET, COMPLETE = "precise enough", "budget used up", "complete"
FAILED, NOT_IN_EFFECT, INTERRUPTED = "a worker failed", "not in effect", "interrupted"
# What a worker's document must have to be a sample.
SAMPLE_KEYS = {"seconds", "step_s", "losses", "digests", "usage", "evidence"}


@dataclass(frozen=True)
class Job:
    """Everything it takes to start workers: what to measure, as whom, and with what.

    ``environments`` are by the arm's name, ``engines`` by their own. ``inherited`` are the caller's variables that
    workers may have; ``kept`` those of them that could change the outcome and that the user chose to keep.
    """

    plan: Plan
    environments: dict[str, Environment]
    engines: dict[str, Engine]
    inherited: dict[str, str]
    kept: dict[str, str]

    def task(self, arm: Arm) -> Task:
        """The start of one worker of ``arm``."""
        environment = self.environments[arm.name]
        return Task(
            arguments=self.plan.worker_arguments(),
            variables={**self.kept, **environment.variables},
            inherited=self.inherited,
            prefix=environment.prefix,
            data=None if self.plan.data == SYNTHETIC else self.plan.data,
            timeout_s=self.plan.timeout_s,
        )


def measure(job: Job, record: Record, events: list[Event], progress: Progress) -> str:
    """Run blocks and append what happens to ``record`` and ``events``; returns why it ended.

    ``events`` holds what an earlier, interrupted run recorded: samples that are there are not measured again, and
    their time counts towards the budget.
    """
    plan = job.plan
    spent = sum(event["worker_seconds"] for event in samples(events))
    for block in itertools.count():
        recorded = {event["arm"] for event in samples(events) if event["block"] == block}
        if block > 0 and not recorded:  # all blocks before are complete
            if plan.epochs:
                return COMPLETE
            if _precise(plan, events):
                return PRECISE
            if spent + spent / block > plan.budget_s:
                return BUDGET
        for arm in plan.order(block):
            if arm.name in recorded:
                continue
            progress.start(block, arm.name, max(0.0, plan.budget_s - spent))
            begin = time.monotonic()
            outcome = job.engines[arm.engine].run(job.task(arm))
            spent += time.monotonic() - begin
            document, problem = _understood(outcome, samples(events))
            where = {"block": block, "arm": arm.name, "worker_seconds": round(outcome.seconds, 3)}
            if document is None:
                events.append(record.append("failure", **where, problem=problem, stderr=outcome.stderr_tail))
                return FAILED
            events.append(record.append("sample", **where, **document, stderr=outcome.stderr_tail))
            progress.finish(block, arm.name, document["seconds"] / len(document["step_s"]))
            checks = check(job.environments[arm.name], document["evidence"], job.kept, outcome.stderr_tail)
            if not all(one.holds for one in checks):
                return NOT_IN_EFFECT
    raise AssertionError("blocks are endless")


def samples(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event["event"] == "sample"]


def block_times(events: Sequence[Event], plan: Plan, arm: Arm) -> tuple[list[float], list[float]]:
    """The times (seconds) of the reference and of ``arm`` in each block that has both, in the order of the blocks."""
    times: dict[int, dict[str, float]] = {}
    for event in samples(events):
        times.setdefault(event["block"], {})[event["arm"]] = event["seconds"]
    reference = plan.reference.name
    complete = [block for _, block in sorted(times.items()) if reference in block and arm.name in block]
    return [block[reference] for block in complete], [block[arm.name] for block in complete]


def _precise(plan: Plan, events: Sequence[Event]) -> bool:
    """Whether each interval is narrow enough, and was so a block ago.

    One look after each block would stop on intervals that are narrow by luck: in simulations with independent noise
    of 5% they then covered the true ratio 90% of the time, and 94.5% where two looks in a row must agree.
    """

    def narrow(reference_s: list[float], arm_s: list[float]) -> bool:
        found = speedup(reference_s, arm_s)
        return found is not None and found.half_width <= plan.precision

    times = [block_times(events, plan, arm) for arm in plan.compared]
    return bool(times) and all(narrow(*both) and narrow(both[0][:-1], both[1][:-1]) for both in times)


def _understood(outcome: Outcome, earlier: Sequence[Event]) -> tuple[dict[str, Any] | None, str | None]:
    """The worker's document, or what is wrong: it failed, printed no document, or ran other code, data or weights."""
    if outcome.failure is not None:
        return None, outcome.failure
    try:
        document: dict[str, Any] = json.loads(outcome.stdout)
    except ValueError:
        return None, "printed no JSON document"
    if not isinstance(document, dict) or not document.keys() >= SAMPLE_KEYS:
        return None, "printed no sample"
    for event in earlier:
        for name, digest in document["digests"].items():
            if event["digests"][name] != digest:
                return None, f"its {name.replace('_', ' ')} differs from that of earlier samples ({digest[:12]}…)"
    return document, None
