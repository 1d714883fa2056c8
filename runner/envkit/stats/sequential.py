"""When a run may stop, so that looking at it several times does not raise the rate of wrong verdicts.

A group-sequential design: few looks, at fixed shares of the planned blocks, each with a stricter error rate than the
whole has. The looks' rates come from an error-spending function (Hwang, Shih and DeCani's with gamma -4), which also
covers runs that end before the last planned block. Each look uses the exact interval of ``interval.py`` at its nominal
rate; the rates follow from the looks' canonical joint distribution (a Brownian motion that is seen at the looks).

The design was chosen by simulation, with 20,000 runs of normal noise for each case. A pair's deviation was 7, 11 or
16%. The true gain was 0, 2, 5, 10, 20 or 50%, and 12, 20, 45 or 60 blocks were planned. Compared were 5, 10, 20 and
all possible looks. Spending was of O'Brien and Fleming's shape, of Pocock's, or with gamma from -4 to -1. Runs stopped
at a half-width of 4%, at a third or half of the gain, or at any verdict. Figures are for a deviation of 16%.

Five looks of O'Brien and Fleming's shape at 4% took 44.8 of 45 blocks for a gain of 20%. Ten looks with gamma -4 at
half of the gain take 21.3 of 45, 22.0 of 60, and 16.4 of 20. A gain of 10% takes 40.4 of 45, and 50% takes 14.0.
Stopping at any verdict takes 16.5 of 45 for 20%. At a third of the time that is saved it takes 38.2.

Power falls from 45.3% to 44.5% for a gain of 5% with 45 blocks. In all cases it falls by at most 2 points with 45 and
60 blocks, and by at most 2.4 with 20. Gamma -2 leaves 39.9%, and Pocock's shape 30.4%. Twenty looks save one more
block of 45, and lose one more point.

False claims: at most 4.8%. The reported interval covers the truth in 95.1% of runs or more. At the plain rate that
was 92.8% at worst, and 93.8% with five looks. For a gain of 10% with 60 blocks the median estimate is 10.4%, because a
run stops where the gain looks large.

References:
  K. K. G. Lan, D. L. DeMets: Discrete sequential boundaries for clinical trials. Biometrika 70 (1983).
  K. K. G. Lan, D. L. DeMets: Group sequential procedures: calendar versus information time. Statistics in Medicine 8
  (1989).
  P. Armitage, C. K. McPherson, B. C. Rowe: Repeated significance tests on accumulating data. JRSS A 132 (1969).
  I. K. Hwang, W. J. Shih, J. S. DeCani: Group sequential designs using a family of type I error probability spending
  functions. Statistics in Medicine 9 (1990).
  C. Jennison, B. W. Turnbull: Group Sequential Methods with Applications to Clinical Trials (2000), ch. 3, 7, 9, 19.
  O. J. Dunn: Multiple comparisons among means. J. American Statistical Association 56 (1961) (Bonferroni's inequality).
"""

from __future__ import annotations

import math
from bisect import bisect, bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from envkit.stats import normal
from envkit.stats.interval import ERROR_RATE, MIN_BLOCKS, Speedup, attained_rate, speedup
from envkit.stats.verdict import Verdict

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

LOOKS = 10
# The shape of Hwang, Shih and DeCani's spending function: below 0, early looks spend less than their share.
GAMMA = -4.0
# A run may stop where half of the interval's width is at most this share of the ratio ...
PRECISION = 0.04
# ... or this share of the gain, so that the interval tells a large gain from one of half its size.
OF_GAIN = 0.5
# A run that stopped early reports an interval at this share of the error rate, as runs stop where ratios are extreme.
REPORTED = 0.6
# Before that many blocks no look's rate can be met anyway.
FIRST_LOOK = 8
# Beyond this many standard deviations a look rejects nothing; it is a bound for the search.
FARTHEST = 9.0
# Between looks, the ranks of few blocks correlate a little less than a Brownian motion does. In simulations (80,000
# runs each of 12, 20, 45, 60 and 100 blocks) that made 5% up to 5.35%; with this share held back it is at most 4.97%.
HELD_BACK = 0.05
# How closely bounds are worked out.
GRID = 1e-6
# Points of the numerical integration (Gauss and Legendre); enough for looks that are one block of hundreds apart.
NODES = 256


@dataclass(frozen=True)
class Design:
    """The design that is fixed before the first look. ``comparisons`` share the error rate, so that it holds for all
    together.
    """

    planned: int
    looks: tuple[int, ...]
    comparisons: int
    shares: tuple[float, ...] = ()  # of the spending, one for each look; without them a look's share of the blocks

    @property
    def error_rate(self) -> float:
        """Return the error rate of one comparison."""
        return ERROR_RATE / self.comparisons

    def share(self, blocks: int) -> float:
        """Return where a look at so many blocks is on the way to the last: between looks in proportion, at most 1."""
        if not self.shares:
            return min(1.0, blocks / self.planned)
        later = bisect_left(self.looks, blocks)
        if later == len(self.looks):
            return 1.0
        before, share = (self.looks[later - 1], self.shares[later - 1]) if later else (0, 0.0)
        return share + (self.shares[later] - share) * (blocks - before) / (self.looks[later] - before)


def design(planned: int, comparisons: int) -> Design:
    """Looks at even shares of ``planned`` blocks, from FIRST_LOOK on."""
    planned = max(planned, MIN_BLOCKS)
    shares = {max(FIRST_LOOK, round(planned * look / LOOKS)) for look in range(1, LOOKS + 1)}
    return Design(planned, (*sorted(look for look in shares if look < planned), planned), comparisons)


def stretched(fixed: Design, blocks: int, planned: int) -> Design:
    """Return the design with as many looks and another, larger number of planned blocks, after a look at ``blocks``.

    Looks to come move away in proportion. Each keeps its share of the spending (calendar time; Lan and DeMets 1989), so
    that the looks that were made stay valid.
    """
    scale = (planned - blocks) / (fixed.planned - blocks)
    looks = tuple(look if look <= blocks else blocks + int(scale * (look - blocks) + 0.5) for look in fixed.looks)
    return Design(planned, looks, fixed.comparisons, tuple(map(fixed.share, fixed.looks)))


def at_look(fixed: Design, ratios: Sequence[float], margin: float) -> Speedup | None:
    """Return the interval of a look before the last, which decides there (a repeated confidence interval).

    None with fewer than MIN_BLOCKS blocks.
    """
    if len(ratios) < MIN_BLOCKS:
        return None
    return speedup(ratios, look_rate(fixed, len(ratios), last=False), margin)


def at_end(fixed: Design, ratios: Sequence[float], margin: float, stopped_early: bool) -> Speedup | None:
    """The interval to report.

    A run whose blocks or time were used up is at its last look, which spends what the error rate has left. The verdict
    of one that ``stopped_early`` is that of ``at_look``. Its interval is narrower than the look's, which would cover
    the truth too often. None with fewer than MIN_BLOCKS blocks.
    """
    if len(ratios) < MIN_BLOCKS:
        return None
    reported = speedup(ratios, reported_rate(fixed, len(ratios), stopped_early), margin)
    look = at_look(fixed, ratios, margin) if stopped_early else None
    return replace(reported, settled=look.verdict) if look and reported else reported


def reported_rate(fixed: Design, blocks: int, stopped_early: bool) -> float:
    """Return the nominal two-sided rate of the interval that ``at_end`` reports."""
    if stopped_early:
        return max(look_rate(fixed, blocks, last=False), REPORTED * fixed.error_rate)
    return look_rate(fixed, blocks, last=True)


def interim(fixed: Design, ratios: Sequence[float], margin: float) -> Speedup | None:
    """Return the interval to show while a run goes on: that of the latest look, which may be some blocks ago.

    In 95% of runs, all that are shown cover the truth (a confidence sequence), with --blocks too. None before the first
    look that can have an interval.
    """
    looking = fixed if len(fixed.looks) > 1 else design(fixed.planned, fixed.comparisons)
    latest = max((look for look in looking.looks[:-1] if look <= len(ratios)), default=0)
    return at_look(looking, ratios[:latest], margin)


def may_stop(fixed: Design, ratios: Sequence[float], margin: float, precision: float | None) -> bool:
    """Return whether the look at ``ratios`` may end the run: it decides, and the interval to report is narrow enough.

    ``precision`` is the largest half-width, as a share of the ratio. None takes the larger of PRECISION and OF_GAIN of
    the gain; a verdict that excludes a relevant difference is then precise enough by its margin.
    """
    look = at_look(fixed, ratios, margin)
    reported = at_end(fixed, ratios, margin, stopped_early=True)
    if look is None or reported is None or not look.decided:
        return False
    if precision is not None:
        return reported.half_width <= precision
    gain = abs(math.log(reported.ratio))  # the same for a ratio and its reciprocal
    return look.verdict is Verdict.EQUIVALENT or reported.half_width <= max(PRECISION, OF_GAIN * gain)


def fewest_blocks(comparisons: int) -> int:
    """The fewest that can give each of so many comparisons an interval, at the rate that they share.

    All differences of n blocks have one sign in 2 of 2^n cases, which must be no more than that rate.
    """
    rate = ERROR_RATE * (1 - HELD_BACK) / comparisons
    return max(MIN_BLOCKS, math.ceil(1 - math.log2(rate)))


def look_rate(fixed: Design, blocks: int, last: bool) -> float:
    """The nominal two-sided rate of the look at ``blocks`` blocks."""
    looks = (*(look for look in fixed.looks if look < blocks), blocks)
    rate = fixed.error_rate * (1 - HELD_BACK if len(looks) > 1 else 1)
    shares = tuple(map(fixed.share, looks)) if fixed.shares else ()
    return nominal_rates(looks, fixed.planned, rate, last, shares)[-1]


@lru_cache(maxsize=1024)
def nominal_rates(
    looks: tuple[int, ...], planned: int, error_rate: float, last: bool, shares: tuple[float, ...] = ()
) -> tuple[float, ...]:
    """The nominal two-sided rate of each look, so that all together reject a true zero as often as was to be spent.

    ``looks`` are in blocks. ``last``: the last of them spends all that is left of ``error_rate``. ``shares`` are those
    of ``Design``. The chance to get as far as a look and to be rejected there is integrated look by look (Armitage,
    McPherson and Rowe 1969; Jennison and Turnbull, chapter 19): ``density`` is that of the Brownian motion among runs
    that no look has rejected yet. Ranks are whole numbers, so a look may spend less than its share. Later looks get
    the rest.
    """
    import numpy

    nodes, weights = _gauss_legendre()
    times = [look / planned for look in looks]
    spent = [error_rate * math.expm1(-GAMMA * min(1.0, share)) / math.expm1(-GAMMA) for share in shares or times]
    if last:
        spent[-1] = error_rate
    rates: list[float] = []
    before, at, density = 0.0, numpy.zeros(1), numpy.ones(1)  # it starts at 0
    for number, (look, time, total) in enumerate(zip(looks, times, spent, strict=True)):
        step = math.sqrt(time - (times[number - 1] if number else 0.0))

        def rejected(
            bound: float, at: NDArray[float64] = at, density: NDArray[float64] = density, step: float = step
        ) -> float:
            above, below = normal.each_below((at - bound) / step), normal.each_below((-bound - at) / step)
            return float((density * (above + below)).sum())

        farthest = FARTHEST * math.sqrt(time)
        bound, allowed = farthest, max(0.0, total - before)
        if rejected(farthest) < allowed:
            steps = range(int(farthest / GRID))  # the chance falls along them
            bound = GRID * bisect(steps, -allowed, key=lambda number: -rejected(GRID * number))
        rates.append(2 * normal.below(-bound / math.sqrt(time)))
        attained = attained_rate(look, rates[-1])
        bound = -normal.quantile(attained / 2) * math.sqrt(time) if attained else farthest
        before += rejected(bound)
        onward = numpy.exp(-(((bound * nodes[:, None] - at) / step) ** 2) / 2) / (step * math.sqrt(2 * math.pi))
        at, density = bound * nodes, bound * weights * (onward @ density)
    return tuple(rates)


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[NDArray[float64], NDArray[float64]]:
    import numpy

    return numpy.polynomial.legendre.leggauss(NODES)
