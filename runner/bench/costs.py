"""What blocks and readings of the yardstick took in a run so far (seconds), and will take."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from runner.bench.blocks import recorded_design
from runner.bench.plan import Plan
from runner.bench.record import Event

# After so many blocks it is known how many fit into the budget; and what the latest took tells what the next will take.
DESIGN_BLOCKS, LATEST = 4, 2
# The yardstick is read no more often than so many times in a budget: to read it takes seconds.
READINGS = 8


def block_s(events: Sequence[Event], blocks: int, latest: int = LATEST) -> float:
    """What a block took lately, without the yardstick (the median): also where something disturbed one of them."""
    took = dict.fromkeys(range(max(0, blocks - latest), blocks), 0.0)
    for event in events:
        if event["event"] == "sample" and event["block"] in took:  # a worker that failed was tried again
            took[event["block"]] += event["worker_seconds"]
    return median(took.values())


def reading_s(events: Sequence[Event]) -> float:
    """The longest that a reading of the yardstick took so far."""
    return max((float(one["worker_seconds"]) for one in events if one["event"] == "yardstick"), default=0.0)


def readings_s(events: Sequence[Event], plan: Plan, blocks: int) -> float:
    """What the readings of the yardstick will take that are still to come after ``blocks`` blocks."""
    if plan.epochs or any(event["event"] == "yardstick-failure" for event in events):
        return 0.0
    read = sum(one["event"] == "yardstick" for one in events)
    fixed = recorded_design(events, plan)
    planned = fixed.planned if fixed else plan.blocks
    to_come = plan.blocks - read if plan.blocks else READINGS - read
    return float(max(0, min(to_come, planned - blocks) if planned else to_come)) * reading_s(events)
