"""How far one sample lies from another that was taken apart from it: two sessions, without any pairs.

Reference:
  J. L. Hodges, E. L. Lehmann: Estimates of Location Based on Rank Tests (Annals of Mathematical Statistics 34, 1963).
  M. Hollander, D. A. Wolfe, E. Chicken: Nonparametric Statistical Methods (3rd edition, 2014), sections 4.2 and 4.3.
  H. B. Mann, D. R. Whitney: On a Test of Whether one of Two Random Variables is Stochastically Larger than the Other
  (Annals of Mathematical Statistics 18, 1947).
  G. V. Bayley, J. M. Hammersley: The "Effective" Number of Independent Observations in an Autocorrelated Time Series
  (Supplement to the Journal of the Royal Statistical Society 8, 1946).
  M. G. Kendall: Note on Bias in the Estimation of Autocorrelation (Biometrika 41, 1954); F. H. C. Marriott,
  J. A. Pope: Bias in the Estimation of Autocorrelations (Biometrika 41, 1954).
  J. R. Bence: Analysis of Short Time Series: Correcting for Autocorrelation (Ecology 76, 1995).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import NamedTuple

# Up to this many differences the distribution is worked out exactly, which takes a tenth of a second at most.
EXACT_UP_TO = 10_000
# A short series can't tell more than this from one that wanders off; the interval is then 4.4 times as wide.
MOST_AUTOCORRELATION = 0.9


class Shift(NamedTuple):
    """How much the new sample's values are above the old one's, in their unit, and the interval for it."""

    estimate: float
    low: float
    high: float


def shift(old: Sequence[float], new: Sequence[float], confidence: float) -> Shift | None:
    """The Hodges-Lehmann estimate (the median of all differences new - old) and the interval that inverts the
    Mann-Whitney test; None where the samples are too small for ``confidence`` (a share, such as 0.95).

    It takes the two distributions to have one shape, whatever it is, and their values to be independent; where they
    are not, see ``widened``.
    With ties the interval covers the truth rather more often than it says.
    """
    differences = sorted(after - before for after in new for before in old)
    rank = _rank(*sorted((len(old), len(new))), confidence)
    if rank < 1:
        return None
    return Shift(statistics.median(differences), differences[rank - 1], differences[-rank])


def autocorrelation(*sessions: Sequence[float]) -> float:
    """How alike neighbouring values are, by the lag-1 autocorrelation: from 0 (independent) to MOST_AUTOCORRELATION.

    It is pooled over the sessions, each centred on its own mean, because a change from one to the next is no
    correlation. A series of n values around its own mean shows too little of it: r on average (1 + 3r) / n too little
    (Kendall; Marriott and Pope), so what was found is corrected to (n * r + 1) / (n - 3). Negative values count as 0.
    """
    mean_length = statistics.fmean(len(session) for session in sessions)
    centred = [[value - statistics.fmean(session) for value in session] for session in sessions if session]
    total = math.fsum(value * value for session in centred for value in session)
    if total <= 0 or mean_length <= 3:
        return 0.0
    correlation = math.fsum(value * other for session in centred for value, other in pairwise(session)) / total
    return min(max((mean_length * correlation + 1) / (mean_length - 3), 0.0), MOST_AUTOCORRELATION)


def widened(shift: Shift, correlation: float) -> Shift:
    """The interval for values of which neighbours have this ``correlation``, from the one for independent values.

    As many of a first-order autoregressive series are worth n * (1 - r) / (1 + r) independent ones (Bayley and
    Hammersley; Bence), so both sides grow by the square root of (1 + r) / (1 - r).

    With r by ``autocorrelation`` the intervals of 12 against 12 values at 95% cover the truth in 97% of simulated
    sessions where r is 0, in 92% where it is 0.5, and in 84% where it is 0.8 (95%, 76% and 49% if not widened): so
    short a series does not tell its own correlation well. With 30 against 30 it is 96%, 94% and 89%.
    """
    by = math.sqrt((1 + correlation) / (1 - correlation))
    return Shift(
        shift.estimate,
        shift.estimate - by * (shift.estimate - shift.low),
        shift.estimate + by * (shift.high - shift.estimate),
    )


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
