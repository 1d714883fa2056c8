"""Several trainings at once: what all of them do in a second, beside one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runner.analysis.scaling import Estimate, estimate
from runner.bench.plan import Arm, Plan
from runner.bench.record import Event


@dataclass(frozen=True)
class AtOnce:
    """One arm that so many ``instances`` train at once; None is what too few blocks, or no such arm, leave unknown."""

    arm: str
    instances: int
    over_reference: Estimate | None  # the items per second of all together, over those of one process of the baseline
    over_one_process: Estimate | None  # the same, over those of one process under its profile, where that is another


def at_once(events: Sequence[Event], plan: Plan, arm: Arm, ended: bool, stopped_early: bool) -> AtOnce:
    """What the samples of ``arm`` say; ratios only of a run that has ``ended``."""
    beside = (plan.reference_of(arm), plan.alone(arm)) if ended else (None, None)
    # of times for one item of all together, and of one process
    ratios = (estimate(events, plan, arm, one, 1, stopped_early) for one in beside)
    return AtOnce(arm.name, arm.instances or 1, *ratios)
