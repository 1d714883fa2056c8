"""When a run may stop, so that looking at it several times does not raise the rate of wrong verdicts.

A group-sequential design: few looks, at fixed shares of the planned blocks, each with a stricter error rate than the
whole has. The looks' rates come from an error-spending function (of O'Brien and Fleming's shape), which also covers
runs that end before the last planned block. Each look uses the exact interval of ``interval.py`` at its nominal rate;
the rates follow from the looks' canonical joint distribution (a Brownian motion that is seen at the looks).

References:
  P. C. O'Brien, T. R. Fleming: A multiple testing procedure for clinical trials. Biometrics 35 (1979).
  K. K. G. Lan, D. L. DeMets: Discrete sequential boundaries for clinical trials. Biometrika 70 (1983).
  P. Armitage, C. K. McPherson, B. C. Rowe: Repeated significance tests on accumulating data. JRSS A 132 (1969).
  C. Jennison, B. W. Turnbull: Group Sequential Methods with Applications to Clinical Trials (2000), ch. 3, 7, 9, 19.
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

LOOKS = 5
# Before that many blocks no look's rate can be met anyway.
FIRST_LOOK = 8
# Beyond this many standard deviations a look rejects nothing; it is a bound for the search.
FARTHEST = 9.0
# Between looks, the ranks of few blocks correlate a little less than a Brownian motion does. In simulations (normal
# noise, 60,000 runs for each of 8 designs) that made 5% up to 5.24%; so this share of the error rate is held back.
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
    the interval reported is the plain one inside it, because the wider one would cover the truth too often. None with
    fewer than MIN_BLOCKS blocks.
    """
    if len(ratios) < MIN_BLOCKS:
        return None
    if stopped_early:
        look, plain = at_look(fixed, ratios, margin), speedup(ratios, fixed.error_rate, margin)
        return replace(plain, settled=look.verdict) if look and plain else plain
    return speedup(ratios, look_rate(fixed, len(ratios), last=True), margin)


def may_stop(speedup: Speedup | None, precision: float) -> bool:
    """Return whether a look may end the run: decided, with a half-width of at most ``precision``."""
    return speedup is not None and speedup.decided and speedup.half_width <= precision


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
    # Lan and DeMets' function for each side
    spent = [4 * normal.below(normal.quantile(error_rate / 4) / math.sqrt(min(1.0, time))) for time in times]
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
