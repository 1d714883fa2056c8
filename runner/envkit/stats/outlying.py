"""Which of many values lie farther out than the others can explain, at a rate of false alarms that is kept.

The values are sizes, as distances from a centre are. It is tested of the outermost one, of the two outermost, and so on
up to half of them, whether they are too far beyond the next one. All tests together have the rate (Bonferroni); most of
it is for one value alone, and ever less for more, which need a smaller gap. The largest number that is found counts, so
that none hides another (Kimber 1982).

Values are taken to have the distribution of Student's t, of any scale, and of degrees of freedom that are not known but
FEWEST at least: from such heavy tails on to normal ones. How likely a gap is follows from all values on its inner side
(the predictive distribution: Geisser 1993, with a scale of which nothing is known before, Jeffreys 1961). For given
degrees of freedom that is right as often as it says (Severini, Mukerjee and Ghosh 2002), however few values there are.
Tails can't be seen in few values: lighter ones than the heaviest count once the values speak for them by CAUTION times.
So a few values have to be far apart, and of hundreds of normal ones one has to lie out by six deviations or so.

References:
  A. C. Kimber: Tests for many outliers in an exponential sample. Applied Statistics 31 (1982): one test for each number
  of outliers, by the gap within which they end.
  S. Geisser: Predictive Inference: An Introduction (1993).
  H. Jeffreys: Theory of Probability, 3rd edition (1961), section 3.1.
  T. A. Severini, R. Mukerjee, M. Ghosh: On an exact probability matching property of right-invariant priors. Biometrika
  89 (2002).
  K. L. Lange, R. J. A. Little, J. M. G. Taylor: Robust statistical modeling using the t distribution. Journal of the
  American Statistical Association 84 (1989).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# Of freedom: the fewest that values may have; what is worked with in their place, with some reserve, as sizes are taken
# about a centre that is itself estimated; and those of lighter tails.
FEWEST = 3
HEAVIEST = 2.5
LIGHTER = (4.0, 8.0, 30.0)
CAUTION = 1000.0
# The share of the rate that the test for j values has falls as this power of j.
FALLING = 4.0
LEAST = 1e-300  # probabilities below can't be told from 0
WIDEST = 60.0  # the logarithm of the widest gap that is looked for


@dataclass(frozen=True)
class Outlying:
    """The ``count`` largest values lie out, beyond ``limit``; or, where none does, one would have to be beyond that."""

    count: int
    limit: float


def outlying(sizes: NDArray[float64], rate: float) -> Outlying:
    """``sizes`` are at least four values, none below 0, and ``rate`` how often any may be found where none lies out."""
    import numpy
    from scipy.optimize import brentq

    ordered = numpy.sort(sizes)[::-1]
    if numpy.median(ordered) == 0:  # most are exactly alike
        return Outlying(int((ordered > 0).sum()), 0.0)
    outer = numpy.arange(1, (len(ordered) - 2) // 2 + 1)
    rates = rate * outer**-FALLING / (outer**-FALLING).sum()
    degrees, scales, weights = _posterior(ordered, len(outer))

    def log_beyond(value: NDArray[float64]) -> NDArray[float64]:
        return _log_beyond(numpy.asarray(value) / scales, degrees)

    following = log_beyond(ordered[outer])
    chances = (weights * numpy.exp(outer * (log_beyond(ordered[outer - 1]) - following))).sum(axis=(0, 1))
    beyond = numpy.nonzero(chances <= rates)[0]
    count = int(outer[beyond[-1]]) if len(beyond) else 0
    tested = max(count, 1) - 1

    def excess(gap_log: float) -> float:
        value = float(ordered[tested + 1]) * math.exp(gap_log)
        farther = log_beyond(numpy.array([value]))[..., 0] - following[..., tested]
        return float((weights[..., tested] * numpy.exp((tested + 1) * farther)).sum() - rates[tested])

    if ordered[tested + 1] == 0 or excess(WIDEST) > 0:
        return Outlying(count, math.inf if count == 0 else float(ordered[tested + 1]))
    return Outlying(count, float(ordered[tested + 1]) * math.exp(brentq(excess, 0.0, WIDEST)))


def _posterior(ordered: NDArray[float64], most: int) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64]]:
    """Degrees of freedom, scales, and how likely each is by the values on the inner side of each of ``most`` gaps.

    Arrays over degrees of freedom, scales, and gaps; of the values on the outer side it is used that they are there.
    """
    import numpy
    from scipy.special import gammaln, stdtrit

    degrees = numpy.array([HEAVIEST, *LIGHTER])[:, None, None]
    prior = numpy.array([1.0, *(1 / CAUTION / len(LIGHTER) for _ in LIGHTER)])[:, None, None]
    # more closely than the scale is known; and as far as it can be known, or the shape does not fit
    step, reach = 1 / math.sqrt(len(ordered)), 0.3 + 5 / math.sqrt(len(ordered))
    around = numpy.median(ordered) / stdtrit(degrees, 0.75)
    scales = around * numpy.exp(numpy.arange(-reach, reach + step, step))[None, :, None]
    ratios = ordered / scales
    density = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - numpy.log(degrees) / 2 - numpy.log(scales)
    density = density - (degrees + 1) / 2 * numpy.log1p(ratios**2 / degrees)
    inner = density.sum(axis=-1, keepdims=True) - numpy.cumsum(density, axis=-1)[..., :most]
    outer = numpy.arange(1, most + 1)
    log_weights = numpy.log(prior) + inner + outer * _log_beyond(ratios[..., 1 : most + 1], degrees)
    weights = numpy.exp(log_weights - log_weights.max(axis=(0, 1)))
    return degrees, scales, weights / weights.sum(axis=(0, 1))


def _log_beyond(ratios: NDArray[float64], degrees: NDArray[float64]) -> NDArray[float64]:
    """The logarithm of the probability that a value is larger than so many times its scale."""
    import numpy
    from scipy.special import stdtr

    return numpy.log(numpy.maximum(2 * stdtr(degrees, -ratios), LEAST))
