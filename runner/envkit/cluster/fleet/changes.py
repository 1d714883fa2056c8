"""Which nodes changed from one time to the next by more than nodes do that nothing happened to.

In a fleet in which nothing changed, any node is named, slower or faster, in at most RATE of comparisons. This holds
over the nodes of all kinds and both directions together, as long as the changes of the nodes of a kind have one
distribution, that of Student's t with 3 degrees of freedom or more, which the normal one is a limit of, whatever its
scale (``envkit.stats.outlying``). docs/results/fleet-diff.md has the rate for other distributions.

A change is compared with its scale: that of all changes of its kind, from their median deviation and without what is
error of measurement, together with the node's own error. So a node that was measured badly has to lie out the farther.
It is named if it lies out by that, and its interval is beyond what the user lets pass (``margin``) as well. Intervals
cover the error of measurement, of all nodes at once (Bonferroni). Kinds share RATE equally.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envkit.cluster.fleet.slow import MIN_NODES, Measured, Ratios, deviation, middle_variance
from envkit.stats.outlying import outlying

if TYPE_CHECKING:
    from numpy import bool_
    from numpy.typing import NDArray

# The share of comparisons in which any node may be named where nothing changed.
RATE = 0.05
# As a logarithm: who may take a thousand times as long has as good as no limit.
NO_LIMIT = math.log(1000)


@dataclass(frozen=True)
class Judged(Ratios):
    """The findings on the nodes of a kind: each ratio is the change of a node."""

    matters: NDArray[bool_]  # the whole interval is beyond the margin
    lies_out: NDArray[bool_]  # by more than changes of nodes do that nothing happened to
    between: float  # the standard deviation of the changes themselves, as a share
    noise: float  # the typical standard error of one, as a share
    allowance: float  # by how much a node may change that is known as well as most, as a share


def judge(kinds: Sequence[Measured], margin: float) -> list[Judged]:
    """Return what is found of each kind's nodes; ``margin`` is the smallest share of more time that matters."""
    enough = [len(kind.centre) >= MIN_NODES for kind in kinds]
    nodes = sum(len(kind.centre) for kind, judged in zip(kinds, enough, strict=True) if judged)
    side, rate = RATE / (2 * max(nodes, 1)), RATE / max(sum(enough), 1)
    return [_of_kind(kind, judged, margin, side, rate) for kind, judged in zip(kinds, enough, strict=True)]


def _of_kind(kind: Measured, judged: bool, margin: float, side: float, rate: float) -> Judged:
    import numpy
    from scipy.special import stdtrit

    distance = kind.centre - numpy.median(kind.centre)
    between = math.sqrt(max(0.0, deviation(distance) ** 2 - float(numpy.median(kind.error**2))))
    reach = -stdtrit(kind.degrees, side) * numpy.sqrt(kind.error**2 + middle_variance(kind))
    low, high = distance - reach, distance + reach
    passes = math.log1p(margin)
    lies_out: NDArray[bool_] = numpy.zeros(len(distance), dtype=bool)
    allowance = passes
    if judged:
        scale = numpy.sqrt(between**2 + kind.error**2)
        outliers = outlying(numpy.abs(distance) / scale, rate)
        lies_out = numpy.abs(distance) > outliers.limit * scale
        allowance = max(passes, outliers.limit * float(numpy.median(scale)))
    return Judged(
        ratio=numpy.exp(distance),
        low=numpy.exp(low),
        high=numpy.exp(high),
        matters=(low > passes) | (high < -passes),
        lies_out=lies_out,
        between=math.expm1(between),
        noise=math.expm1(float(numpy.median(kind.error))),
        allowance=math.expm1(min(allowance, NO_LIMIT)),
        judged=judged,
    )
