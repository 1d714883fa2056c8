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

from envkit.stats.messages import InvalidTimesError, NoLogarithm

# With 6 values in perfect order chance does as much in 1 of 360 cases; with fewer nothing could be said with certainty.
MIN_VALUES = 6


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
    from scipy import stats

    order = numpy.arange(len(values))
    logarithms = numpy.log(numpy.asarray(values, dtype=float))
    slope = float(stats.theilslopes(logarithms, order).slope)
    p_value = float(stats.kendalltau(order, logarithms).pvalue)
    # among equal values there is no order to test
    return Drift(math.expm1(slope * (len(values) - 1)), 1.0 if math.isnan(p_value) else p_value)
