"""How many blocks it takes to find a difference.

References:
  E. L. Lehmann: Nonparametrics (1975), section 4.3 (the signed-rank test's power in terms of the t-test's).
  C. Stein: A two-sample test for a linear hypothesis whose power is independent of the variance. Annals of Mathematical
  Statistics 16 (1945) (a standard deviation from few blocks is uncertain; that is averaged over).
"""

from __future__ import annotations

import math
from functools import lru_cache

from envkit.stats.interval import MIN_BLOCKS
from envkit.stats.sequential import design, look_rate

POWER = 0.80
# Efficiency of the signed-rank test against the t-test for normal noise, 3 / pi.
EFFICIENCY = 3 / math.pi
# The signed-rank test's discrete levels cost a little with few blocks.
DISCRETE_BLOCKS = 2
_GRID = 2000


def blocks_needed(deviation: float, seen_blocks: int, difference: float, comparisons: int = 1) -> int:
    """Blocks at which a run finds ``difference`` (a share, 0.02) with the chance POWER.

    ``deviation`` is the standard deviation of a block's log ratio as estimated from ``seen_blocks`` blocks.
    """
    if deviation == 0:
        return MIN_BLOCKS
    signal = math.log1p(difference) / deviation
    # the last look's rate, which depends on the number of blocks only a little
    rate = look_rate(design(1000, comparisons), 1000, last=True)
    return max(MIN_BLOCKS, math.ceil(_factor(seen_blocks - 1, rate) / signal**2) + DISCRETE_BLOCKS)


@lru_cache(maxsize=64)
def _factor(freedom: int, rate: float) -> float:
    """Return what to multiply (deviation / difference) squared with, so that the chance is POWER on average.

    The estimate of a variance is the true one times a chi-square variable over its degrees of ``freedom``; the mean is
    taken over that variable's quantiles.
    """
    import numpy
    from scipy.optimize import brentq
    from scipy.special import gammaincinv, ndtr, ndtri

    # the quantiles of chi-square; scipy.stats has them by that name, and takes a second to import
    spread = 2 * gammaincinv(freedom / 2, (numpy.arange(_GRID) + 0.5) / _GRID) / freedom
    bound = -ndtri(rate / 2)

    def short_of(factor: float) -> float:
        return float(ndtr(numpy.sqrt(factor * spread * EFFICIENCY) - bound).mean()) - POWER

    return float(brentq(short_of, 1, 10000))
