"""How many blocks it takes to find a difference.

References:
  E. L. Lehmann: Nonparametrics (1975), section 4.3 (the signed-rank test's power in terms of the t-test's).
  M. Hollander, D. A. Wolfe, E. Chicken: Nonparametric Statistical Methods, 3rd edition (2014), section 3.2 (the
  estimate's standard error from the width of its interval).
  C. Stein: A two-sample test for a linear hypothesis whose power is independent of the variance. Annals of Mathematical
  Statistics 16 (1945) (a scale from few blocks is uncertain; that is averaged over).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

from envkit.stats.interval import ERROR_RATE, MIN_BLOCKS, attained_rate, ranks_outside, walsh_averages
from envkit.stats.sequential import HELD_BACK, design, look_rate

POWER = 0.80
# Efficiency of the signed-rank test against the t-test for normal noise, 3 / pi.
EFFICIENCY = 3 / math.pi
# The signed-rank test's discrete levels cost a little with few blocks.
DISCRETE_BLOCKS = 2
# The chance that an interval of one standard error at either side misses. In simulations (normal noise, Student's t
# with 3 degrees of freedom, bursts, a few blocks far out; pilots of 5 to 45 blocks; 400 runs each) it led to a power of
# 77% to 85%. The standard deviation led to 74% to 98%: after 45 blocks with a few far out it names 184 for 55.
STANDARD_ERROR_RATE = 0.32
# So many Walsh averages outside of an interval at either end keep a single extreme block from setting that end.
OUTSIDE = 3
_GRID = 2000


def interval_scale(ratios: Sequence[float]) -> float | None:
    """Return the standard deviation of normal noise under which the interval would be as wide as it is.

    ``ratios`` are the blocks' log ratios; None for fewer than two. The half-width of the signed-rank interval is about
    Student's quantile times 1 / sqrt(12 n) over the integral of the squared density; for normal noise that is
    sqrt(pi / 3) standard errors of a mean. Blocks that lie far out hardly widen the interval, so they count for little.
    """
    from scipy.special import stdtrit  # Student's t, as few blocks tell the scale badly

    blocks = len(ratios)
    if blocks < 2:
        return None
    averages = walsh_averages(ratios)
    outside = max(1, ranks_outside(blocks, STANDARD_ERROR_RATE))  # the widest interval, of very few blocks
    rate = attained_rate(blocks, STANDARD_ERROR_RATE) or 2.0 ** (1 - blocks)
    half_width = float(averages[-outside] - averages[outside - 1]) / 2
    scale = half_width * math.sqrt(blocks * EFFICIENCY) / float(stdtrit(blocks - 1, 1 - rate / 2))
    return scale or statistics.stdev(ratios)  # rounded times may tie most ratios


def blocks_past_extremes(comparisons: int) -> int:
    """Return the fewest blocks whose interval leaves OUTSIDE Walsh averages out at either end.

    ``comparisons`` share the error rate. With one outside, an interval spans all blocks' ratios, lowest to highest.
    """
    rate = ERROR_RATE * (1 - HELD_BACK) / comparisons
    return next(blocks for blocks in itertools.count(MIN_BLOCKS) if ranks_outside(blocks, rate) >= OUTSIDE)


def noise_floor(scale: float, seen_blocks: int, blocks: int) -> float:
    """Return the share that the speedup of a profile without effect leaves in 5% of runs of so many ``blocks``.

    ``scale`` is the noise of a block's log ratio, of ``interval_scale`` from ``seen_blocks`` blocks. The error of the
    Hodges-Lehmann estimate follows from it. Student's t covers that so many blocks tell the scale badly.
    """
    from scipy.special import stdtrit

    farthest = float(stdtrit(seen_blocks - 1, 1 - ERROR_RATE / 2))
    return math.expm1(farthest * scale / math.sqrt(blocks * EFFICIENCY))


def blocks_needed(scale: float, seen_blocks: int, difference: float, comparisons: int = 1) -> int:
    """Blocks at which a run finds ``difference`` (a share, 0.02) with the chance POWER.

    ``scale`` is the noise of a block's log ratio, of ``interval_scale`` from ``seen_blocks`` blocks.
    """
    if scale == 0:
        return MIN_BLOCKS
    signal = math.log1p(difference) / scale
    # the last look's rate, which depends on the number of blocks only a little
    rate = look_rate(design(1000, comparisons), 1000, last=True)
    return max(MIN_BLOCKS, math.ceil(_factor(seen_blocks - 1, rate) / signal**2) + DISCRETE_BLOCKS)


@lru_cache(maxsize=64)
def _factor(freedom: int, rate: float) -> float:
    """Return what to multiply (scale / difference) squared with, so that the chance is POWER on average.

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
