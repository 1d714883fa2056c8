"""How a training scales over ranks: the arms that several ranks train, beside one process."""

from __future__ import annotations

import statistics as basic
from collections.abc import Sequence
from dataclasses import dataclass

from runner.blocks import block_ratios, recorded_design, samples
from runner.losses import Losses, compared
from runner.plan import Arm, Plan
from runner.record import Event
from runner.statistics.sequential import at_end


@dataclass(frozen=True)
class Estimate:
    """A ratio with its interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Scaled:
    """One arm that ``ranks`` processes train together.

    ``speedup`` is the time of one process of the baseline, on all CPUs, over its time. ``efficiency`` is known of the
    baseline's own ranks: the time of one process on the
    CPUs of one rank, over ``ranks`` times its time: 1 where so many ranks do so many times as much. Both are None where
    there are too few blocks. ``communication_s`` is for how long a step communicates or waits for others, and
    ``communication_share`` that share of it: by the profiler, medians over samples. ``losses`` are beside those of one
    process.
    """

    arm: str
    ranks: int
    speedup: Estimate | None
    efficiency: Estimate | None
    communication_s: float
    communication_share: float
    losses: Losses | None


def scaled(events: Sequence[Event], plan: Plan, arm: Arm, ended: bool, stopped_early: bool) -> Scaled:
    """What the samples of ``arm``, of which there are some, say; ratios only of a run that has ``ended``."""
    ranks = plan.ranks_of(arm)
    whole = next((one for one in plan.alone if one.of == 1), None)
    part = next((one for one in plan.alone if one.of > 1 and one.profile == arm.profile), None)
    told = [event["communication"] for event in samples(events, arm)]
    return Scaled(
        arm=arm.name,
        ranks=ranks,
        speedup=_estimate(events, plan, arm, whole, 1, stopped_early) if ended else None,
        efficiency=_estimate(events, plan, arm, part, ranks, stopped_early) if ended else None,
        communication_s=basic.median(one["seconds"] for one in told),
        communication_share=basic.median(one["share"] for one in told),
        losses=compared(events, plan, arm, whole) if whole and samples(events, whole) else None,
    )


def _estimate(
    events: Sequence[Event], plan: Plan, arm: Arm, one: Arm | None, divisor: int, stopped_early: bool
) -> Estimate | None:
    """The time of ``one`` over ``divisor`` times that of ``arm``."""
    design = recorded_design(events, plan)
    if one is None or design is None:
        return None
    ratios = block_ratios(events, plan, arm, reference=one)
    found = at_end(design, ratios, plan.margin, stopped_early)
    return None if found is None else Estimate(*(one / divisor for one in (found.ratio, found.low, found.high)))
