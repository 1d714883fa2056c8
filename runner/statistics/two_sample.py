"""How far one sample lies from another that was taken apart from it: two sessions, without any pairs.

Reference:
  J. L. Hodges, E. L. Lehmann: Estimates of Location Based on Rank Tests (Annals of Mathematical Statistics 34, 1963).
  M. Hollander, D. A. Wolfe, E. Chicken: Nonparametric Statistical Methods (3rd edition, 2014), sections 4.2 and 4.3.
  H. B. Mann, D. R. Whitney: On a Test of Whether one of Two Random Variables is Stochastically Larger than the Other
  (Annals of Mathematical Statistics 18, 1947).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

# Up to this many differences the distribution is worked out exactly, which takes a tenth of a second at most.
EXACT_UP_TO = 10_000


class Shift(NamedTuple):
    """How much the new sample's values are above the old one's, in their unit, and the interval for it."""

    estimate: float
    low: float
    high: float


def shift(old: Sequence[float], new: Sequence[float], confidence: float) -> Shift | None:
    """The Hodges-Lehmann estimate (the median of all differences new - old) and the interval that inverts the
    Mann-Whitney test; None where the samples are too small for ``confidence`` (a share, such as 0.95).

    It takes the two distributions to have one shape, whatever it is, and their values to be independent.
    With ties the interval covers the truth rather more often than it says.
    """
    differences = sorted(after - before for after in new for before in old)
    rank = _rank(*sorted((len(old), len(new))), confidence)
    if rank < 1:
        return None
    return Shift(statistics.median(differences), differences[rank - 1], differences[-rank])


@cache
def _rank(few: int, many: int, confidence: float) -> int:
    """Which of the sorted differences, from either end, limits the interval; below 1 there is none.

    It is the largest c with P(U <= c - 1) <= (1 - confidence) / 2, U being Mann's and Whitney's statistic where both
    samples come from one distribution; for large samples its normal approximation, with a correction for continuity.
    """
    if few < 1:
        return 0
    tail = (1 - confidence) / 2
    if few * many > EXACT_UP_TO:
        deviation = math.sqrt(few * many * (few + many + 1) / 12)
        return math.floor(few * many / 2 + 0.5 + deviation * statistics.NormalDist().inv_cdf(tail))
    ways = _ways(few, many)
    most = tail * math.comb(few + many, few) * (1 + 1e-9)  # a tail of 1/40 may be written as a little less
    return sum(total <= most for total in accumulate(ways))


def _ways(few: int, many: int) -> list[int]:
    """In how many of the orders of both samples U is 0, 1, 2, …: the coefficients of a Gaussian binomial.

    It is the product over i from 1 to ``few`` of (1 - q**(many + i)) / (1 - q**i), multiplied out up to the degree
    ``few`` * ``many`` in whole numbers, which loses nothing.
    """
    ways = [1] + [0] * (few * many)
    for i in range(1, few + 1):
        for degree in range(few * many, many + i - 1, -1):
            ways[degree] -= ways[degree - many - i]
        for degree in range(i, few * many + 1):
            ways[degree] += ways[degree - i]
    return ways
