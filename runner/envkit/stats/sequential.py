"""When a run may stop, so that looking at it several times does not raise the rate of wrong verdicts.

A group-sequential design: looks at fixed shares of the planned blocks, each with a stricter error rate than the whole
has. The looks' rates come from an error-spending function (Hwang, Shih and DeCani's), which also covers runs that end
before the last planned block. Each look uses the exact interval of ``interval.py`` at its nominal rate; the rates
follow from the looks' canonical joint distribution (a Brownian motion that is seen at the looks).

The number of looks, the function and the rule that stops were chosen by simulation: normal noise, a pair's standard
deviation of 7% and 16%, runs of at most 20, 45 and 60 blocks, gains of 0 to 50%, 2,000 to 8,000 runs each; 5, 10 and 20
looks; O'Brien and Fleming's function, Pocock's, and Hwang, Shih and DeCani's with a parameter of -1, -2 and -4. With 45
blocks and 16%, a gain of 20% took 44.8 blocks with 5 looks of O'Brien and Fleming's and a half-width of 4%, and takes
21.8 now; one of 50% took 44.8 and takes 14.0; one of 5% is found in 44.4% of runs (45.3%). Pocock's function finds a
large gain in 9 blocks and one of 5% in 30% of runs only. Twenty looks save less than a tenth more.

References:
  P. C. O'Brien, T. R. Fleming: A multiple testing procedure for clinical trials. Biometrics 35 (1979).
  K. K. G. Lan, D. L. DeMets: Discrete sequential boundaries for clinical trials. Biometrika 70 (1983).
  I. K. Hwang, W. J. Shih, J. S. DeCani: Group sequential designs using a family of type I error probability spending
  functions. Statistics in Medicine 9 (1990).
  P. Armitage, C. K. McPherson, B. C. Rowe: Repeated significance tests on accumulating data. JRSS A 132 (1969).
  C. Jennison, B. W. Turnbull: Group Sequential Methods with Applications to Clinical Trials (2000), ch. 3, 7, 9, 19.
  H. Robbins: Statistical methods related to the law of the iterated logarithm. Annals of Math. Statistics 41 (1970).
  O. J. Dunn: Multiple comparisons among means. J. American Statistical Association 56 (1961) (Bonferroni's inequality).
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from envkit.stats import normal
from envkit.stats.interval import ERROR_RATE, MIN_BLOCKS, Speedup, attained_rate, speedup

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

LOOKS = 10
# The parameter of Hwang, Shih and DeCani's spending function.
SPENDING = -4.0
# Before that many blocks no look's rate can be met anyway.
FIRST_LOOK = 8
# Beyond this many standard deviations a look rejects nothing; it is a bound for the search.
FARTHEST = 9.0
# Between looks, the ranks of few blocks correlate a little less than a Brownian motion does. In simulations (normal
# noise, 80,000 runs for each of 5 designs) that made 5% up to 5.3%, and with this share held back at most 5.0%.
HELD_BACK = 0.05
# An interval that is seen after every block has more looks, whose ranks correlate even less.
HELD_BACK_LIVE = 0.15
# Precise enough to stop: half of the interval's width is at most this share of the ratio, or that share of the gain.
PRECISION, OF_GAIN = 0.04, 1 / 2
# A run that stops early reports the interval of this share of the error rate: that many runs stop by luck. In the
# simulations named above the plain interval covered as little as 93.9%, this one 94.7% to 96.7%.
STOPPED_EARLY = 0.8
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

    @property
    def error_rate(self) -> float:
        """Return the error rate of one comparison."""
        return ERROR_RATE / self.comparisons


def design(planned: int, comparisons: int) -> Design:
    """Looks at even shares of ``planned`` blocks, from FIRST_LOOK on."""
    planned = max(planned, MIN_BLOCKS)
    shares = {max(FIRST_LOOK, round(planned * look / LOOKS)) for look in range(1, LOOKS + 1)}
    return Design(planned, (*sorted(look for look in shares if look < planned), planned), comparisons)


def at_look(fixed: Design, ratios: Sequence[float], margin: float) -> Speedup | None:
    """The interval by which a planned look before the last decides (a repeated confidence interval).

    None with fewer than MIN_BLOCKS blocks.
    """
    if len(ratios) < MIN_BLOCKS:
        return None
    return speedup(ratios, look_rate(fixed, len(ratios), last=False), margin)


def at_end(fixed: Design, ratios: Sequence[float], margin: float, stopped_early: bool) -> Speedup | None:
    """The interval to report.

    A run that ended because its blocks or its time were used up is at its last look, which spends what the error rate
    has left. One that ``stopped_early`` was decided by the wider interval of ``at_look``: that gives the verdict, and
    the interval reported is one inside it (STOPPED_EARLY), because the wider one would cover the truth too often. None
    with fewer than MIN_BLOCKS blocks.
    """
    if len(ratios) < MIN_BLOCKS:
        return None
    if stopped_early:
        look = at_look(fixed, ratios, margin)
        inside = speedup(ratios, STOPPED_EARLY * fixed.error_rate, margin) or look
        return replace(inside, settled=look.verdict) if look and inside else inside
    return speedup(ratios, look_rate(fixed, len(ratios), last=True), margin)


def may_stop(fixed: Design, ratios: Sequence[float], margin: float, precision: float | None) -> bool:
    """Return whether a look may end the run: decided, by an interval that is narrow enough.

    The look's own interval decides; the one that would be reported must be narrow enough. Half of its width is at most
    ``precision``, a share of the ratio. None: at most PRECISION, or OF_GAIN of the gain where that is more.
    """
    look = at_look(fixed, ratios, margin)
    if look is None or not look.decided:
        return False
    reported = at_end(fixed, ratios, margin, stopped_early=True)
    assert reported is not None, "a look that decides has blocks enough"
    return reported.half_width <= (precision or max(PRECISION, OF_GAIN * _gain(reported.ratio)))


def _gain(ratio: float) -> float:
    """Return the share of the slower side's time that the faster side saves."""
    return 1 - min(ratio, 1 / ratio)


def live(planned: int, comparisons: int, ratios: Sequence[float], margin: float) -> Speedup | None:
    """Return an interval that may be looked at after every block: a confidence sequence (Robbins 1970).

    In at least 95% of runs the intervals of all blocks and of all ``comparisons`` hold the truth at once. It decides
    nothing. None before it says anything, and beyond the ``planned`` blocks.
    """
    blocks = len(ratios)
    if not FIRST_LOOK <= blocks <= planned:
        return None
    rate = ERROR_RATE * (1 - HELD_BACK_LIVE) / comparisons
    rates = nominal_rates(tuple(range(FIRST_LOOK, planned + 1)), planned, rate, last=True)
    return speedup(ratios, rates[blocks - FIRST_LOOK], margin)


def fewest_blocks(comparisons: int) -> int:
    """The fewest that can give each of so many comparisons an interval, at the rate that they share.

    Of n blocks' differences all have one sign in 2 of 2^n cases, which must be no more than that rate.
    """
    rate = ERROR_RATE * (1 - HELD_BACK) / comparisons
    return max(MIN_BLOCKS, math.ceil(1 - math.log2(rate)))


def look_rate(fixed: Design, blocks: int, last: bool) -> float:
    """The nominal two-sided rate of the look at ``blocks`` blocks."""
    looks = (*(look for look in fixed.looks if look < blocks), blocks)
    rate = fixed.error_rate * (1 - HELD_BACK if len(looks) > 1 else 1)
    return nominal_rates(looks, fixed.planned, rate, last)[-1]


@lru_cache(maxsize=1024)
def nominal_rates(looks: tuple[int, ...], planned: int, error_rate: float, last: bool) -> tuple[float, ...]:
    """The nominal two-sided rate of each look, so that all together reject a true zero as often as was to be spent.

    ``looks`` are in blocks. ``last``: the last of them spends all that is left of ``error_rate``. The chance to get as
    far as a look and to be rejected there is integrated look by look (Armitage, McPherson and Rowe 1969; Jennison and
    Turnbull, chapter 19): ``density`` is that of the Brownian motion among runs that no look has rejected yet. What a
    look can't spend, because ranks come in whole numbers, is left for later ones.
    """
    import numpy

    nodes, weights = _gauss_legendre()
    times = [look / planned for look in looks]
    spent = [error_rate * math.expm1(-SPENDING * min(1.0, time)) / math.expm1(-SPENDING) for time in times]
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
