"""Which nodes are slow, and by how much: every node's time against the middle node of its kind.

A node's time is the trimmed mean of the logarithms of its samples' times. Its error comes from its own samples,
steadied by those of all nodes of its kind, and widened where neighbouring samples are alike. A node is called slow
when it takes more time than the middle node by more than an allowance: what the user lets pass (``margin``) or, where
that is more, how far healthy nodes of this fleet differ. So machines that really are 1% apart are no alarm, however
well they were measured.

False alarms are counted over all nodes together: of the nodes called slow, at most ERROR_RATE are expected to be
within the allowance (Benjamini and Hochberg 1995, ``envkit.stats.many_tests``). As no more nodes are called slow
than there are, at most that share of all nodes is a false alarm as well.

References, beside those of the modules in ``envkit.stats``:
  D. J. McCarthy, G. K. Smyth: Testing significance relative to a fold-change threshold is a TREAT. Bioinformatics 25
  (2009): the test against an allowance and not against no difference, with steadied variances.
  F. R. Hampel: The influence curve and its role in robust estimation. Journal of the American Statistical Association
  69 (1974), on median and median deviation.
  P. J. Rousseeuw, C. Croux: Alternatives to the median absolute deviation. Journal of the American Statistical
  Association 88 (1993): its efficiency is 37%.
  E. Arias-Castro, S. Chen: Distribution-free multiple testing. Electronic Journal of Statistics 11 (2017): where
  healthy values lie symmetrically, one side shows how heavy the tails of the other are.
  T. A. Louis: Estimating a population of parameter values using Bayes and empirical Bayes methods. Journal of the
  American Statistical Association 79 (1984): how to shrink noisy values so that they are spread as the true ones are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envkit.stats.many_tests import believed, level
from envkit.stats.moderated import NORMAL_DEVIATION, moderated
from envkit.stats.trimmed import autocorrelation, trimmed

if TYPE_CHECKING:
    from numpy import bool_, float64
    from numpy.typing import NDArray

# The share of the nodes called slow that may be wrong.
ERROR_RATE = 0.01
# Fewer nodes say too little of how far healthy ones differ.
MIN_NODES = 6
# Healthy nodes may lie as far out as this many times the standard deviation between them, and where the fast side shows
# heavier tails, up to twice as far.
DEVIATIONS = 3.0
# Of the nodes on the fast side, how many are further out than is taken for their reach.
OUTERMOST = 0.005
MAD_EFFICIENCY = 0.37
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Measured:
    """The nodes of one kind, as arrays in their order, of logarithms of seconds."""

    centre: NDArray[float64]
    error: NDArray[float64]  # the standard error of the centre
    degrees: NDArray[float64]  # of freedom, that this has
    autocorrelation: float  # how alike neighbouring samples were, from 0 to 0.9


@dataclass(frozen=True)
class Spread:
    """How far the nodes of one kind differ."""

    nodes: int
    median_s: float  # the middle node's time per step
    quantiles: dict[float, float]  # of the nodes' times over that, by the share of nodes below
    between: float  # the standard deviation between healthy nodes themselves, as a share
    noise: float  # the typical standard error of one node, as a share
    allowance: float  # how much more time a node may take, as a share
    by_margin: bool  # whether that is the user's margin, or else the reach of healthy nodes
    autocorrelation: float


@dataclass(frozen=True)
class Ratios:
    """A ratio of each node of a kind with its interval, as arrays in the order of the nodes."""

    ratio: NDArray[float64]
    low: NDArray[float64]
    high: NDArray[float64]
    judged: bool  # False where there are too few nodes: then none stands out


@dataclass(frozen=True)
class Judged(Ratios):
    """The findings on the nodes of a kind: each ratio is the node's time over the middle node's."""

    spread: Spread
    slow: NDArray[bool_]  # whether the whole interval is beyond the allowance


def measure(samples: Sequence[Sequence[float]]) -> Measured:
    """The nodes' times; ``samples`` has each node's, in seconds above 0 and in order, at least MIN_SAMPLES of each."""
    import numpy

    by_length: dict[int, list[int]] = {}
    for number, times in enumerate(samples):
        by_length.setdefault(len(times), []).append(number)
    logs = {
        length: numpy.log(numpy.array([samples[number] for number in numbers], dtype=float))
        for length, numbers in by_length.items()
    }
    centre, variance, kept, degrees = (numpy.empty(len(samples)) for _ in range(4))
    for length, numbers in by_length.items():
        means = trimmed(logs[length])
        centre[numbers], variance[numbers] = means.centre, means.variance
        kept[numbers], degrees[numbers] = means.kept, means.degrees
    steadied = moderated(variance, degrees)
    alike = autocorrelation(list(logs.values()))
    widened = (1 + alike) / (1 - alike)  # by the sources of envkit.stats.two_sample.widened
    return Measured(centre, numpy.sqrt(widened * steadied.variance / kept), steadied.degrees, alike)


def judge(kinds: Sequence[Measured], margin: float) -> tuple[list[Judged], float]:
    """Return what is found of each kind's nodes, and the level of each side of every interval.

    ``margin`` is the smallest share of more time that matters.
    """
    import numpy
    from scipy.special import stdtr, stdtrit

    spreads = [_spread(kind, margin) for kind in kinds]
    errors = [numpy.sqrt(kind.error**2 + middle_variance(kind)) for kind in kinds]
    enough = [len(kind.centre) >= MIN_NODES for kind in kinds]
    beyond = [
        stdtr(kind.degrees, -(kind.centre - numpy.median(kind.centre) - math.log1p(spread.allowance)) / error)
        for kind, spread, error, judged in zip(kinds, spreads, errors, enough, strict=True)
        if judged
    ]
    p_values = numpy.concatenate([numpy.empty(0), *beyond])
    side = level(believed(p_values, ERROR_RATE), len(p_values), ERROR_RATE)
    judgements = []
    for kind, spread, error, judged in zip(kinds, spreads, errors, enough, strict=True):
        distance = kind.centre - numpy.median(kind.centre)
        reach = -stdtrit(kind.degrees, side) * error
        low, high = numpy.exp(distance - reach), numpy.exp(distance + reach)
        slow: NDArray[bool_] = numpy.zeros(len(distance), dtype=bool)
        if judged:  # the same as being believed: the interval has the test's own level
            slow = low > 1 + spread.allowance
        judgements.append(Judged(numpy.exp(distance), low, high, judged, spread, slow))
    return judgements, side


def _spread(kind: Measured, margin: float) -> Spread:
    import numpy
    from scipy.special import stdtrit

    middle = float(numpy.median(kind.centre))
    distance = kind.centre - middle
    together = deviation(distance)
    between = math.sqrt(max(0.0, together**2 - float(numpy.median(kind.error**2))))
    # of few nodes the deviation is badly known: one more normal value lies as far out as Student's t says
    information = max(1.0, MAD_EFFICIENCY * (len(distance) - 1))
    times = max(DEVIATIONS, float(stdtrit(information, 1 - OUTERMOST)))
    # shrunk so that their deviation is that between nodes, without the noise of each (Louis 1984)
    shrunk = distance * between / numpy.sqrt(between**2 + kind.error**2)
    fast_side = -float(numpy.quantile(shrunk, OUTERMOST))
    healthy = min(max(fast_side, times * between), 2 * times * between)
    allowed = max(math.log1p(margin), healthy)
    return Spread(
        nodes=len(distance),
        median_s=math.exp(middle),
        quantiles={
            share: float(value)
            for share, value in zip(QUANTILES, numpy.exp(numpy.quantile(distance, QUANTILES)), strict=True)
        },
        between=math.expm1(between),
        noise=math.expm1(float(numpy.median(kind.error))),
        allowance=math.expm1(allowed),
        by_margin=healthy <= math.log1p(margin),
        autocorrelation=kind.autocorrelation,
    )


def deviation(distance: NDArray[float64]) -> float:
    """The standard deviation about 0, from the median deviation: up to half of the nodes may be anything."""
    import numpy

    return NORMAL_DEVIATION * float(numpy.median(numpy.abs(distance)))


def middle_variance(kind: Measured) -> float:
    """The variance of the median of all nodes, for large numbers of normal values: pi / 2 that of the mean."""
    import numpy

    together = deviation(kind.centre - numpy.median(kind.centre))
    return math.pi / 2 * max(together**2, float(numpy.median(kind.error**2))) / len(kind.centre)
