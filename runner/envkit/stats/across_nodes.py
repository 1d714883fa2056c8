"""The speedup of a profile on nodes of one type, from blocks that each of several nodes measured by itself.

A profile is worth a little more on one node than on another, however equal they are to be. So the nodes that were
measured are taken for a sample of their type: each node's log speedup is that of the type, plus an effect of the node,
plus what its own blocks leave uncertain. How far nodes differ (the standard deviation of that effect) is badly known
from few nodes: it has a prior distribution, the positive half of a normal one with PRIOR as its deviation, and the
interval is the central part of the posterior distribution of the type's log speedup, on which there is no prior.

References:
  R. DerSimonian, N. Laird: Meta-analysis in clinical trials. Controlled Clinical Trials 7 (1986) (the model).
  T. Friede, C. Roever, S. Wandel, B. Neuenschwander: Meta-analysis of few small studies in orphan diseases. Research
    Synthesis Methods 8 (2017) (a half-normal prior where studies are few, and how often its intervals miss).
  C. Roever: Bayesian random-effects meta-analysis using the bayesmeta R package. J. Statistical Software 93 (2020)
    (the marginal distribution of the deviation, and the mixture of normal ones that follows from it).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from envkit.stats.interval import Speedup, middle_of

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# The deviation between nodes, as a logarithm: two of three node types are taken to differ by less than this.
PRIOR = 0.1
# The deviations that are integrated over, up to so many times the prior's; and the steps of the integration.
FARTHEST, STEPS = 5.0, 400
# A Hodges-Lehmann estimate has this many times the variance of a mean, of normal values (Hollander 2014, section 3.2).
HODGES_LEHMANN = math.pi / 3
# The fewest blocks of a node that tell how far blocks differ.
MIN_BLOCKS = 2


@dataclass(frozen=True)
class AcrossNodes:
    """The speedup of a profile on a type of nodes. ``ratios`` are those of the nodes that were measured, in order."""

    speedup: Speedup  # its interval covers the type's, and not each node's
    ratios: tuple[float, ...]
    between: float  # the standard deviation between nodes, as a share: the middle of what is believed
    between_high: float  # and what it hardly exceeds
    another_low: float  # where the ratio of another node of the type lies, as sure as the speedup's interval is
    another_high: float

    @property
    def nodes(self) -> int:
        return len(self.ratios)

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "speedup": {**self.speedup.to_json(), "verdict": self.speedup.words}}


def across_nodes(log_ratios: Sequence[Sequence[float]], error_rate: float, margin: float) -> AcrossNodes | None:
    """The speedup of a node type from the log ratios of each node's blocks.

    ``error_rate`` is how often the interval may miss. None without a node that has MIN_BLOCKS blocks.
    """
    import numpy

    by_node = [numpy.asarray(ratios, dtype=float) for ratios in log_ratios if len(ratios) >= MIN_BLOCKS]
    if not by_node:
        return None
    centre = numpy.array([middle_of(ratios) for ratios in by_node])
    variance = _variance(by_node) * HODGES_LEHMANN / numpy.array([len(ratios) for ratios in by_node])
    between, weight, middle, spread = _posterior(centre, variance)
    low, high = _within(middle, spread, weight, error_rate)
    another = _within(middle, numpy.hypot(spread, between), weight, error_rate)
    cumulated = numpy.cumsum(weight)
    likely, most = (float(between[numpy.searchsorted(cumulated, share)]) for share in (0.5, 1 - error_rate))
    ratio = math.exp(float(weight @ middle))
    blocks = sum(len(ratios) for ratios in by_node)
    return AcrossNodes(
        Speedup(ratio, math.exp(low), math.exp(high), blocks, margin),
        tuple(math.exp(value) for value in centre),
        math.expm1(likely),
        math.expm1(most),
        *(math.exp(value) for value in another),
    )


def _variance(by_node: Sequence[NDArray[float64]]) -> float:
    """The variance of one block's log ratio, taken to be the same on all nodes, a little more where few tell of it.

    The factor is the variance of Student's t, of which there is none with fewer than three degrees of freedom.
    """
    degrees = sum(len(ratios) - 1 for ratios in by_node)
    pooled = sum(float(((ratios - ratios.mean()) ** 2).sum()) for ratios in by_node) / degrees
    return max(pooled, 1e-12) * (degrees / (degrees - 2) if degrees > 2 else 3.0)


def _posterior(
    centre: NDArray[float64], variance: NDArray[float64]
) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64], NDArray[float64]]:
    """Deviations between nodes with their weights, and for each the type's log speedup and its standard error."""
    import numpy

    between = (numpy.arange(STEPS) + 0.5) * (FARTHEST * PRIOR / STEPS)
    total = variance[None, :] + between[:, None] ** 2
    precision = (1 / total).sum(axis=1)
    middle = (centre / total).sum(axis=1) / precision
    distance = ((centre - middle[:, None]) ** 2 / total).sum(axis=1)
    log_density = -0.5 * (numpy.log(total).sum(axis=1) + numpy.log(precision) + distance + (between / PRIOR) ** 2)
    weight = numpy.exp(log_density - log_density.max())
    return between, weight / weight.sum(), middle, 1 / numpy.sqrt(precision)


def _within(
    middle: NDArray[float64], spread: NDArray[float64], weight: NDArray[float64], error_rate: float
) -> tuple[float, float]:
    """The central part of a mixture of normal distributions that leaves out ``error_rate``."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def below(value: float, share: float) -> float:
        return float(weight @ ndtr((value - middle) / spread)) - share

    ends = float((middle - 12 * spread).min()), float((middle + 12 * spread).max())
    low, high = (float(brentq(below, *ends, args=(share,))) for share in (error_rate / 2, 1 - error_rate / 2))
    return low, high
