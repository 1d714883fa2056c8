"""Did two arms learn the same? Their losses on the same batches, beside by how much rounding may move these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from runner.bench.blocks import samples
from runner.bench.plan import Arm, Plan
from runner.bench.record import Event
from runner.worker.modes import BF16
from runner.worker.workloads import LOSS_TOLERANCE, find

# What rounding grows to where numbers have 8 bits of mantissa (bfloat16) in the place of 24.
BF16_LOSS_TOLERANCE = 2e-2


@dataclass(frozen=True)
class Losses:
    """How far an arm's losses are from its reference's on the same batches (shares of the reference's loss)."""

    steps: int
    reference_final: float
    final: float
    largest_difference: float
    agree: bool


def compared(events: Sequence[Event], plan: Plan, arm: Arm, reference: Arm) -> Losses:
    """The worst agreement of any of the arm's samples with the first of ``reference``'s; both have some."""
    there = samples(events, reference)[0]["losses"]
    candidates = [event["losses"] for event in samples(events, arm)]
    furthest = max(candidates, key=lambda losses: loss_difference(losses, there))
    largest = loss_difference(furthest, there)
    tolerance = loss_tolerance(plan, arm, plan.ranks_of(arm) != plan.ranks_of(reference))
    return Losses(len(there), there[-1], furthest[-1], largest, largest <= tolerance)


def loss_tolerance(plan: Plan, arm: Arm, other_ranks: bool = False) -> float:
    """By what share losses may differ for no other reason than rounding; or than ``other_ranks``, where these do."""
    known = find(plan.workload_of(arm))
    usual = known.loss_tolerance if known else LOSS_TOLERANCE
    of_ranks = known.ranks_tolerance if known and other_ranks else 0.0
    return max(usual, of_ranks, BF16_LOSS_TOLERANCE if plan.options.precision == BF16 else 0.0)


def loss_difference(losses: Sequence[float], reference: Sequence[float]) -> float:
    """The largest difference on any batch, as a share of the reference's loss; infinity where a loss is no number."""
    shares = [abs(one - other) / abs(other) for one, other in zip(losses, reference, strict=True)]
    return math.inf if any(map(math.isnan, shares)) else max(shares)
