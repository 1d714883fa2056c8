"""The speedup of one profile over the reference, with an interval, from blocks measured side by side.

A block has one sample of each arm, in random order. Where the profile does nothing, the difference of two samples'
logarithms is therefore positive as often as negative, at any size, whatever the noise is: bursts, drift and heavy tails
change its size and not its symmetry. The test of no effect asks for nothing else and is exact. The interval about an
effect also takes it that the profile changes the time of all blocks by the same factor.

References:
  F. Wilcoxon: Individual comparisons by ranking methods. Biometrics Bulletin 1 (1945).
  J. L. Hodges, E. L. Lehmann: Estimates of location based on rank tests. Annals of Mathematical Statistics 34 (1963).
  M. Hollander, D. A. Wolfe, E. Chicken: Nonparametric Statistical Methods, 3rd edition (2014), sections 3.1 to 3.3.
  D. J. Schuirmann: A comparison of the two one-sided tests procedure. J. Pharmacokin. Biopharm. 15 (1987).
  A. Gelman, J. Carlin: Beyond power calculations: assessing type S (sign) and type M (magnitude) errors. Perspectives
  on Psychological Science 9 (2014) (effects found close to the noise are overstated).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from envkit.stats import normal
from envkit.stats.messages import NO_DIFFERENCE_LARGER
from envkit.stats.verdict import Verdict

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

ERROR_RATE = 0.05
# The fewest blocks that can say anything at this error rate: with 5 the widest interval covers 93.75% only.
MIN_BLOCKS = 6
# Up to here the null distribution is counted out; beyond, its normal approximation is as good as exact.
EXACT_BLOCKS = 200
# A gain whose interval begins below this share of it, as logarithms, is close to the noise.
CLOSE = 0.5


@dataclass(frozen=True)
class Speedup:
    """The speedup of a profile, and its interval."""

    ratio: float  # the reference's time over the profile's: above 1 the profile is faster
    low: float
    high: float
    blocks: int
    margin: float  # the smallest difference that matters, as a share
    settled: Verdict | None = None  # where the stricter interval of a look that ended the run gave the verdict

    @property
    def half_width(self) -> float:
        """Half of the interval's width as a share of the ratio."""
        return (self.high - self.low) / 2 / self.ratio

    @property
    def verdict(self) -> Verdict:
        """A difference is found when the interval leaves out 1, and excluded when the margin holds all of it.

        The second is an equivalence test (two one-sided tests; Schuirmann 1987).
        """
        if self.settled is not None:
            return self.settled
        if self.low > 1:
            return Verdict.FASTER
        if self.high < 1:
            return Verdict.SLOWER
        if self.within_margin:
            return Verdict.EQUIVALENT
        return Verdict.NOT_FOUND

    @property
    def may_be_overstated(self) -> bool:
        """Return whether a gain was found that is close to the noise.

        Runs find such a gain if their noise happens to add to it, so the ratio overstates it. The low end does so less.
        """
        return self.verdict == Verdict.FASTER and math.log(self.low) < CLOSE * math.log(self.ratio)

    @property
    def words(self) -> str:
        """The verdict in words: that nothing larger than the margin is there has its figure."""
        if self.verdict == Verdict.EQUIVALENT:
            return NO_DIFFERENCE_LARGER.format(self.margin * 100)
        return str(self.verdict)

    @property
    def within_margin(self) -> bool:
        return self.low > 1 / (1 + self.margin) and self.high < 1 + self.margin

    @property
    def decided(self) -> bool:
        return self.verdict != Verdict.NOT_FOUND

    def to_json(self) -> dict[str, object]:
        """Plain data, with what was ``settled`` in words."""
        return {**asdict(self), "settled": None if self.settled is None else self.words}


def log_ratios(reference_s: Sequence[float], profile_s: Sequence[float]) -> list[float]:
    """Per block, the logarithm of the reference's time (seconds) over the profile's."""
    return [math.log(reference / profile) for reference, profile in zip(reference_s, profile_s, strict=True)]


def speedup(ratios: Sequence[float], error_rate: float, margin: float) -> Speedup | None:
    """Hodges-Lehmann estimate and signed-rank interval of the speedup from the blocks' log ratios.

    ``error_rate`` is how often the interval may miss. None where so few blocks can't give that interval.
    """
    middle = walsh_averages(ratios)
    outside = ranks_outside(len(ratios), error_rate)
    if outside == 0:
        return None
    median = (middle[(len(middle) - 1) // 2] + middle[len(middle) // 2]) / 2
    ratio, low, high = (math.exp(value) for value in (median, middle[outside - 1], middle[-outside]))
    return Speedup(ratio, low, high, len(ratios), margin)


def middle_of(values: Sequence[float]) -> float:
    """The Hodges-Lehmann estimate of the centre of ``values``: the median of their Walsh averages."""
    import numpy

    return float(numpy.median(_averages(values)))


def walsh_averages(values: Sequence[float]) -> NDArray[float64]:
    """The means of all pairs of ``values``, each with itself too, sorted."""
    import numpy

    return numpy.sort(_averages(values))


def _averages(values: Sequence[float]) -> NDArray[float64]:
    import numpy

    array = numpy.asarray(values, dtype=float)
    first, second = _pairs(len(array))
    return (array[first] + array[second]) / 2


@lru_cache(maxsize=16)
def _pairs(number: int) -> tuple[NDArray[intp], NDArray[intp]]:
    """The places of the first and of the second of all pairs, each with itself too: they take longer than the rest."""
    import numpy

    return numpy.triu_indices(number)


def attained_rate(blocks: int, error_rate: float) -> float:
    """How often the interval of ``speedup`` really misses: ranks come in whole numbers, so at most ``error_rate``."""
    if blocks > EXACT_BLOCKS:
        return error_rate
    outside = ranks_outside(blocks, error_rate)
    return float(_two_sided(blocks)[outside - 1]) if outside else 0.0


@lru_cache(maxsize=1024)
def ranks_outside(blocks: int, error_rate: float) -> int:
    """How many of the Walsh averages lie outside the interval at either end: most w with 2 P(W < w) <= error_rate.

    W is the signed-rank statistic of ``blocks`` differences that are symmetric about 0.
    """
    import numpy

    if blocks > EXACT_BLOCKS:
        mean = blocks * (blocks + 1) / 4
        deviation = math.sqrt(blocks * (blocks + 1) * (2 * blocks + 1) / 24)
        return int(normal.quantile(error_rate / 2) * deviation + mean + 0.5)
    return int(numpy.searchsorted(_two_sided(blocks), error_rate * (1 + 1e-9), side="right"))


@lru_cache(maxsize=EXACT_BLOCKS)
def _two_sided(blocks: int) -> NDArray[float64]:
    """2 P(W <= w) for each w from 0, counted out: each rank is added to W or not, with even chances."""
    import numpy

    probability = numpy.ones(1)
    for rank in range(1, blocks + 1):
        added = numpy.zeros(len(probability) + rank)
        added[: len(probability)] += probability / 2
        added[rank:] += probability / 2
        probability = added
    return 2 * numpy.cumsum(probability)
