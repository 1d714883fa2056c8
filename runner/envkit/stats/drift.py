"""Did something change in the course of a run?

Whether, says the rank correlation with the order: the test of Mann and Kendall, which asks for no shape of the noise
and no straight line. By how much, says the slope of Theil and Sen, which single wild values do not move.

References:
  H. B. Mann: Nonparametric tests against trend. Econometrica 13 (1945).
  M. G. Kendall: Rank Correlation Methods, 4th edition (1975).
  H. Theil: A rank-invariant method of linear and polynomial regression analysis. Proceedings of the Koninklijke
    Nederlandse Akademie van Wetenschappen 53 (1950).
  P. K. Sen: Estimates of the regression coefficient based on Kendall's tau. J. American Statistical Association 63
    (1968).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from envkit.stats import normal
from envkit.stats.messages import InvalidTimesError, NoLogarithm

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# With 6 values in perfect order chance does as much in 1 of 360 cases; with fewer nothing could be said with certainty.
MIN_VALUES = 6
# Of more values the normal distribution is as good as the exact one.
MOST_EXACT = 33


@dataclass(frozen=True)
class Drift:
    """A trend."""

    change: float  # from the first to the last value, as a share of the first: 0.1 is 10% more
    p_value: float  # how often values in random order show a trend as clear as this, in either direction


def drift(values: Sequence[float]) -> Drift | None:
    """Return the trend of ``values`` in their order: one for each block, above 0, in any unit. None if too few.

    Raise InvalidTimesError for a value that is not above 0: give ratios, and not their logarithms.
    """
    if len(values) < MIN_VALUES:
        return None
    if min(values) <= 0:
        raise InvalidTimesError(NoLogarithm(min(values)))
    import numpy

    logarithms = numpy.log(numpy.asarray(values, dtype=float))
    earlier, later = numpy.triu_indices(len(values), 1)
    rises = logarithms[later] - logarithms[earlier]
    slope = float(numpy.median(rises / (later - earlier)))
    p_value = _p_value(len(values), int(numpy.sign(rises).sum()), numpy.unique(logarithms, return_counts=True)[1])
    return Drift(math.expm1(slope * (len(values) - 1)), p_value)


def _p_value(count: int, score: int, tied: NDArray[float64]) -> float:
    """Return how often ``count`` values in random order have a score at least as far from 0, in either direction.

    ``score`` is the number of pairs that rise, less that of those that fall; ``tied`` is how many values there are of
    each size. Few values without ties have the exact distribution, others the normal one of Kendall (1975), chapter 4.
    """
    if len(tied) == 1:
        return 1.0  # among equal values there is no order to test
    if len(tied) == count <= MOST_EXACT:
        rarest = (count * (count - 1) // 2 - abs(score)) // 2  # pairs that go the rarer way
        return min(1.0, 2 * float(_chances(count)[: rarest + 1].sum()))
    variance = float(count * (count - 1) * (2 * count + 5) - (tied * (tied - 1) * (2 * tied + 5)).sum()) / 18
    return 2 * normal.below(-abs(score) / math.sqrt(variance))


@lru_cache(maxsize=MOST_EXACT)
def _chances(count: int) -> NDArray[float64]:
    """Return how likely each number of falling pairs is among ``count`` values in random order."""
    import numpy

    chances = numpy.ones(1)
    for place in range(2, count + 1):  # the next value falls below 0 to place - 1 of those before it
        chances = numpy.convolve(chances, numpy.full(place, 1 / place))
    return chances
