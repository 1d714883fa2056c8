"""How far apart two sides' curves are, beside how far those of one side are from each other.

A side has several curves over the same steps, such as the losses of each of its samples. Where they repeat each other
any difference between the sides is one of theirs. Where each draws random numbers of its own the sides differ by
chance too; so the distance of the sides' means is compared with how far any single curve is from the mean of its side.
In simulations with six curves each, which is what an interval takes, chance alone had the means farther apart in at
most 1.5% of cases, whatever the shape of the noise, and in fewer with more curves or more steps. (By the curves of one
side alone it would be up to 9%, and more where a single one can be far off.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

# What rounding can change of a mean, as a share of what is typical.
ROUNDING = 1e-12

Curves = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Apart:
    """The largest distances at any step, as shares of the mean height of the reference's curves."""

    between: float  # of the mean of one side from that of the reference
    within: float  # of a single curve of the reference from the mean of these
    within_other: float  # the same of the other side


def apart(curves: Curves, reference: Curves) -> Apart:
    """How far ``curves`` are from those of the ``reference``; all are equally long, and either has one at least.

    What differs by no more than the last digit that is given does not count: printed losses were rounded to that.
    Infinite between, where a number is none.
    """
    heights = [height for curve in (*curves, *reference) for height in curve]
    if not all(map(math.isfinite, heights)):
        return Apart(math.inf, 0.0, 0.0)
    means, there = _means(curves), _means(reference)
    typical = _mean([abs(height) for height in there])
    least = max(_last_digit(heights) * (1 + 1e-6), ROUNDING * typical)
    within, within_other = (
        max(_share(_distance(curve, mean), typical, least) for curve in side)
        for side, mean in ((reference, there), (curves, means))
    )
    return Apart(_share(_distance(means, there), typical, least), within, within_other)


def _mean(values: Sequence[float]) -> float:
    """The mean of numbers whose sum may be too large to be one."""
    return math.fsum(value / len(values) for value in values)


def _means(curves: Curves) -> list[float]:
    """At each step the mean over the curves."""
    return [_mean(at_step) for at_step in zip(*curves, strict=True)]


def _distance(curve: Sequence[float], other: Sequence[float]) -> float:
    return max(abs(here - there) for here, there in zip(curve, other, strict=True))


def _share(distance: float, typical: float, least: float) -> float:
    if distance <= least:
        return 0.0
    return distance / typical if typical else math.inf


def _last_digit(values: Iterable[float]) -> float:
    """Return what the last digit stands for, of the value that has most of them: 0.01 for 2.31 and 2.3."""
    places = (Decimal(repr(value)).as_tuple().exponent for value in set(values))
    return float(10.0 ** min(int(place) for place in places))
