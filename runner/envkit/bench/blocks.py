"""Read the numbers of a record's events: which blocks are complete, and what their samples took."""

from __future__ import annotations

import statistics
from collections.abc import Container, Sequence
from typing import cast

from envkit.bench.arms import Arm
from envkit.bench.events import LengthsEvent, SampleEvent
from envkit.bench.pace import sized
from envkit.bench.plan import Plan
from envkit.bench.record import Event
from envkit.stats.interval import log_ratios
from envkit.stats.sequential import Design

# The digest of what follows from the code and PyTorch, of which the latter may be what is compared.
INITIAL_WEIGHTS = "initial_weights"


def samples(events: Sequence[Event], arm: Arm | None = None) -> list[SampleEvent]:
    """All samples, or those of one arm, in the order in which they were measured."""
    found = [event for event in events if event["event"] == "sample" and (arm is None or event["arm"] == arm.name)]
    return cast("list[SampleEvent]", found)


def first_event(events: Sequence[Event], kind: str) -> Event | None:
    """The first event of a kind, or None where there is none."""
    return next((event for event in events if event["event"] == kind), None)


def same_training(events: Sequence[Event], plan: Plan, arm: Arm) -> bool:
    """Whether ``arm`` trains what its reference does, from the same weights: only then do losses compare.

    A user's command has no known value.
    """
    reference = plan.reference_of(arm)
    first = (samples(events, one)[:1] for one in (reference, arm))
    weights = {event["digests"].get(INITIAL_WEIGHTS) for found in first for event in found}
    return plan.user_command is None and plan.workload_of(arm) == plan.workload_of(reference) and len(weights) <= 1


def recorded_plan(events: Sequence[Event]) -> Plan:
    """Return what the run measures, with the lengths of its samples where these were fixed by the machine's pace."""
    return sized(Plan.from_json(events[0]["plan"]), recorded_lengths(events))


def recorded_lengths(events: Sequence[Event]) -> LengthsEvent | None:
    """How long samples are (``envkit.bench.pace``), or None where the run did not get that far."""
    return cast("LengthsEvent | None", first_event(events, "lengths"))


def recorded_design(events: Sequence[Event], plan: Plan) -> Design | None:
    """The looks that were fixed early in the run, or None where it did not get that far."""
    fixed = first_event(events, "design")
    return Design(fixed["planned_blocks"], tuple(fixed["looks"]), plan.sharing) if fixed and plan.contrasts else None


def skipped_steps(events: Sequence[Event]) -> int:
    """Return how many timed steps at the start of each sample are left out, because training was still warming up."""
    fixed = recorded_lengths(events)
    return fixed["skipped_steps"] if fixed else 0


def timed_steps(events: Sequence[Event], arm: Arm, blocks: Container[int] | None = None) -> list[list[float]]:
    """Per sample of ``arm``, or of those in ``blocks``, the seconds of the steps that count."""
    skipped = skipped_steps(events)
    return [event["step_s"][skipped:] for event in samples(events, arm) if blocks is None or event["block"] in blocks]


def complete_blocks(events: Sequence[Event], plan: Plan, arm: Arm, reference: Arm | None = None) -> list[int]:
    """The blocks that have a sample of both ``arm`` and its reference (or another one), in order."""
    of_arm = {event["block"] for event in samples(events, arm)}
    return sorted(of_arm & {event["block"] for event in samples(events, reference or plan.reference_of(arm))})


def comparable_steps(
    events: Sequence[Event], plan: Plan, arm: Arm, blocks: Container[int] | None = None
) -> list[list[float]]:
    """Per sample, its steps' seconds for equal work, so that the means of arms with other batches compare.

    Samples of so many steps compare by the time per image. Full trainings go over the same images equally often, so
    they compare by the time of all steps: there a step counts as many times as there are.
    """
    own = [event for event in samples(events, arm) if blocks is None or event["block"] in blocks]
    steps = timed_steps(events, arm, blocks)
    work = [1 / len(event["step_s"]) if plan.epochs else event.get("images_per_step") or 1 for event in own]
    pairs = zip(steps, work, strict=True)
    return [of_sample if share == 1 else [second / share for second in of_sample] for of_sample, share in pairs]


def block_ratios(
    events: Sequence[Event], plan: Plan, arm: Arm, without: Container[int] = (), reference: Arm | None = None
) -> list[float]:
    """Per complete block, in order, the logarithm of the reference's time over the arm's. Some can be left out.

    ``reference`` is another than the plan has for the arm.
    """
    reference = reference or plan.reference_of(arm)
    times = [
        {
            event["block"]: statistics.fmean(steps)
            for event, steps in zip(samples(events, one), comparable_steps(events, plan, one), strict=True)
        }
        for one in (reference, arm)
    ]
    blocks = [block for block in complete_blocks(events, plan, arm, reference) if block not in without]
    return log_ratios(*([of_arm[block] for block in blocks] for of_arm in times))
