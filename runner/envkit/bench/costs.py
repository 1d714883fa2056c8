"""Seconds that blocks and reference kernel readings of a run took so far, and will take."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from envkit.bench.blocks import recorded_design
from envkit.bench.plan import Plan
from envkit.bench.record import Event

# After so many blocks it is known how many fit into the budget; and what the latest took tells what the next will take.
DESIGN_BLOCKS, LATEST = 4, 2
# The reference kernel is read no more often than so many times in a budget: to read it takes seconds.
READINGS = 8


def block_s(events: Sequence[Event], blocks: int, latest: int = LATEST) -> float:
    """What a block took lately, without the reference kernel (the median): also where one of them was disturbed."""
    took = dict.fromkeys(range(max(0, blocks - latest), blocks), 0.0)
    for event in events:
        if event["event"] == "sample" and event["block"] in took:  # a worker that failed was tried again
            took[event["block"]] += event["worker_seconds"]
    return median(took.values())


def wants_reading(events: Sequence[Event], plan: Plan, block: int) -> bool:
    """Return whether it is time to read the reference kernel again, before ``block``."""
    kernel = [at for at, one in enumerate(events) if one["event"] == "reference-kernel"]
    failed = any(event["event"] == "reference-kernel-failure" for event in events)
    if plan.epochs or failed or any(events[at]["block"] == block for at in kernel):
        return False
    if not kernel or plan.stopping.blocks:
        return True
    since = events[kernel[-1] :]
    resumed = any(event["event"] == "resume" for event in since)  # which may be hours later
    spent_s = sum(event.get("worker_seconds", 0) for event in since)
    return resumed or spent_s > plan.stopping.budget_s / READINGS


def reading_s(events: Sequence[Event]) -> float:
    """The longest that a reading of the reference kernel took so far."""
    return max((float(one["worker_seconds"]) for one in events if one["event"] == "reference-kernel"), default=0.0)


def readings_s(events: Sequence[Event], plan: Plan, blocks: int) -> float:
    """Return what the readings of the reference kernel will take that are still to come after ``blocks`` blocks."""
    if plan.epochs or any(event["event"] == "reference-kernel-failure" for event in events):
        return 0.0
    read = sum(one["event"] == "reference-kernel" for one in events)
    fixed = recorded_design(events, plan)
    planned = fixed.planned if fixed else plan.stopping.blocks
    to_come = plan.stopping.blocks - read if plan.stopping.blocks else READINGS - read
    return float(max(0, min(to_come, planned - blocks) if planned else to_come)) * reading_s(events)
