"""Many variances, each from few values: what all of them say together steadies each one.

Where the variances differ no more than chance makes them, they are taken as one; where they do, each counts the more.
Small ones, which would make a chance difference look certain, are raised so; large ones are not lowered here, because
a noisy machine is one.

References:
  G. K. Smyth: Linear models and empirical Bayes methods for assessing differential expression in microarray
  experiments. Statistical Applications in Genetics and Molecular Biology 3 (2004), sections 6.1 and 6.2, and the
  appendix on the inverse of the trigamma function.
  B. Phipson, S. Lee, I. J. Majewski, W. S. Alexander, G. K. Smyth: Robust hyperparameter estimation protects against
  hypervariable genes and improves power to detect differential expression. Annals of Applied Statistics 10 (2016); here
  the median and the median deviation make it robust, and the larger of two variances counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# The median deviation of a normal distribution, times this, is its standard deviation.
NORMAL_DEVIATION = 1.4826
# An excess of the variances' spread below this is as good as none.
NO_EXCESS = 1e-6


class Moderated(NamedTuple):
    """Arrays: the steadied ``variance`` of each series, and its ``degrees`` of freedom."""

    variance: NDArray[float64]
    degrees: NDArray[float64]


def moderated(variance: NDArray[float64], degrees: NDArray[float64]) -> Moderated:
    """``variance`` and ``degrees`` are arrays with the variance (above 0) of each series and what it rests on."""
    import numpy
    from scipy.special import digamma, polygamma

    half = degrees / 2
    logs = numpy.log(variance) - digamma(half) + numpy.log(half)
    middle = float(numpy.median(logs))
    spread = (NORMAL_DEVIATION * float(numpy.median(numpy.abs(logs - middle)))) ** 2
    excess = spread - float(polygamma(1, half).mean())
    everything = float(degrees.sum())  # more than all the values there are can't be known
    prior = min(2 * _trigamma_inverse(excess), everything) if excess > NO_EXCESS else everything
    common = math.exp(middle + float(digamma(prior / 2)) - math.log(prior / 2))
    pooled = (prior * common + degrees * variance) / (prior + degrees)
    return Moderated(numpy.maximum(variance, pooled), numpy.minimum(prior + degrees, everything))


def _trigamma_inverse(value: float) -> float:
    """The x with trigamma(x) = ``value``, which is above 0: Newton's method as Smyth's appendix has it."""
    from scipy.special import polygamma

    estimate = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, estimate))
        change = trigamma * (1 - trigamma / value) / float(polygamma(2, estimate))
        estimate += change
        if abs(change) < 1e-9 * estimate:
            break
    return estimate
