"""Compare the losses of two arms. Their losses on the same batches, beside by how much rounding may move these.

A user command may draw other batches each time. Its losses are compared as ``envkit.stats.curves``
says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from envkit.bench.events import Sample
from envkit.stats.curves import apart
from envkit.stats.interval import MIN_BLOCKS
from envkit.worker.modes import BF16
from envkit.worker.workloads import GROWN, LOSS_TOLERANCE, find

# What rounding grows to where numbers have 8 bits of mantissa (bfloat16) in the place of 24.
BF16_LOSS_TOLERANCE = 2e-2
# As a share of the mean loss: to what rounding may grow in a user's training, of which nobody knows how it learns.
OWN_LOSS_TOLERANCE = GROWN


@dataclass(frozen=True)
class Losses:
    """How far an arm's losses are from its reference's on the same batches (shares of the reference's loss).

    Losses of a user's command are means over samples, and differences are shares of the reference's mean loss.
    """

    steps: int
    reference_final: float
    final: float
    largest_difference: float
    agree: bool
    # Of a user's command: how far a single sample is from the mean of its arm. Of the reference's where these repeat
    # each other, which the others then should too; else the largest of both.
    own_difference: float | None = None


def of_command(samples: Sequence[Sample], reference: Sequence[Sample]) -> Losses | None:
    """Compare the samples of a user's command with the reference's.

    None where no losses are read, or samples are fewer than an interval takes.
    """
    curves, there = ([sample.known_losses for sample in side] for side in (samples, reference))
    if min(len(curves), len(there)) < MIN_BLOCKS or not all([*curves, *there]):
        return None
    distance = apart(curves, there)
    final, reference_final = (fmean(losses[-1] for losses in side) for side in (curves, there))
    repeats = distance.within <= OWN_LOSS_TOLERANCE
    single = distance.within if repeats else max(distance.within, distance.within_other)
    agree = distance.between <= (OWN_LOSS_TOLERANCE if repeats else single)
    return Losses(len(there[0]), reference_final, final, distance.between, agree, single)


def compared(
    samples: Sequence[Sample], reference: Sequence[Sample], tolerance: float, ends_early: bool = False
) -> Losses:
    """Return the worst agreement of any of an arm's samples with the first of the reference's; both have some.

    Losses agree within ``tolerance``, a share. Trainings that end early, at a target, may do so after different epochs:
    as far as all got, batches are the same.
    """
    there = reference[0].known_losses
    candidates = [sample.known_losses for sample in samples]
    if ends_early:
        shortest = min(map(len, [there, *candidates]))
        there, candidates = there[:shortest], [losses[:shortest] for losses in candidates]
    furthest = max(candidates, key=lambda losses: loss_difference(losses, there))
    largest = loss_difference(furthest, there)
    return Losses(len(there), there[-1], furthest[-1], largest, largest <= tolerance)


def loss_tolerance(workload: str, precision: str, other_ranks: bool = False) -> float:
    """Return by what share losses may differ because of rounding alone, or because of ``other_ranks``, if these do."""
    trained = find(workload)
    usual = trained.loss_tolerance if trained else LOSS_TOLERANCE
    of_ranks = trained.ranks_tolerance if trained and other_ranks else 0.0
    return max(usual, of_ranks, BF16_LOSS_TOLERANCE if precision == BF16 else 0.0)


def loss_difference(losses: Sequence[float], reference: Sequence[float]) -> float:
    """The largest difference on any batch, as a share of the reference's loss; infinity where a loss is no number."""
    pairs = zip(losses, reference, strict=True)
    shares = [abs(loss - of_reference) / abs(of_reference) for loss, of_reference in pairs]
    return math.inf if any(map(math.isnan, shares)) else max(shares)
