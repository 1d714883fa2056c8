"""After how many steps is training steady? Warm-up is detected from the step times, not assumed.

The rule is MSER with batches of two steps: average the curve over the batches, and cut where the standard error of the
mean of what is left is least, but never in its second half. On a curve that is flat from the start the least is found
anywhere. With 48 steps of noise of 5%, MSER-5 as published drops more than 5 steps every third time. So the first cut
is taken that is as good as the least within the error of that comparison (the one-standard-error rule), and only if
what it drops is off by enough to matter. A burst of load that lasts for dozens of steps can still not be told from a
warm-up in one process.

Batches of 1, 2 and 5 steps were compared on stretches of recorded step times of the CNN, and with simulated noise.
Batches of five find a little more, but call three times as many steady series unsteady. docs/statistics.md has the
figures.

References:
  K. P. White: An effective truncation heuristic for bias reduction in simulation output. Simulation 69 (1997).
  K. P. White, M. J. Cobb, S. C. Spratt: A comparison of five steady-state truncation heuristics for simulation. Winter
  Simulation Conference (2000).
  W. W. Franklin, K. P. White: Stationarity tests and MSER-5: exploring the intuition behind
  mean-squared-error-reduction in detecting and correcting initialization bias. Winter Simulation Conference (2008).
  K. Hoad, S. Robinson, R. Davies: Automating warm-up length estimation. J. Operational Research Society 61 (2010).
  L. Breiman, J. Friedman, R. Olshen, C. Stone: Classification and Regression Trees (1984).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envkit.stats.messages import InvalidTimesError, UnequalLengths
from envkit.stats.moderated import NORMAL_DEVIATION

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

BATCH_STEPS = 2
# With fewer steps than that a cut would be chance too often.
MIN_STEPS = 40
# What is dropped must be off the steady level by this share on average, ...
MATTERS = 0.05
# ... or on a machine with more noise by so many standard deviations of a step, but no more than that share.
DEVIATIONS, MATTERS_DESPITE_NOISE = 2.0, 0.10
# Farther than this from the steady level, in standard deviations, a step is an outlier: it counts as if it were just
# there, or one spike in the middle would weigh more than a whole warm-up.
FARTHEST = 5.0


@dataclass(frozen=True)
class Steady:
    """After how many steps it is steady."""

    steps: int  # the leading ones that are a transient
    reached: bool  # False where that is half of all: then it may not have been steady at all


def steady(curves: Sequence[Sequence[float]]) -> Steady | None:
    """Return where training becomes steady; None if the samples have too few steps to tell.

    ``curves`` has, for each sample of one arm, the time of each step from the very first: above 0 and in any unit, and
    as many for each sample.

    Raise InvalidTimesError if the samples have different numbers of steps.
    """
    import numpy

    lengths = [len(curve) for curve in curves]
    if len(set(lengths)) > 1:
        raise InvalidTimesError(UnequalLengths(min(lengths), max(lengths)))
    if not lengths or lengths[0] < MIN_STEPS:
        return None
    curve = measured = _typical(numpy.asarray(curves, dtype=float))
    half = len(curve) // 2
    level = numpy.median(curve[half:])
    deviation = NORMAL_DEVIATION * numpy.median(numpy.abs(curve[half:] - level))
    matters = max(MATTERS, min(DEVIATIONS * deviation, MATTERS_DESPITE_NOISE))
    bound = FARTHEST * deviation
    outlying = numpy.abs(curve - level) > bound
    if bound > 0:
        curve = numpy.clip(curve, level - bound, level + bound)
    # a slow first step or two is a warm-up as well, and would be lost in a batch
    leading = int(numpy.argmin([*outlying[:half], False]))
    most = half // BATCH_STEPS * BATCH_STEPS
    steps = min(most, max(_cut(curve) * BATCH_STEPS, leading))
    if steps == 0 or abs(measured[:steps].mean() / level - 1) < matters:
        return Steady(0, reached=True)
    return Steady(steps, reached=steps < most)


def _typical(curves: NDArray[float64]) -> NDArray[float64]:
    """One curve for all samples (samples x steps), 1 being each sample's own level in its second half.

    At each step it is the lower median over the samples: a spike in one of them does not show.
    """
    import numpy

    level = numpy.median(curves[:, curves.shape[1] // 2 :], axis=1, keepdims=True)
    return numpy.sort(curves / level, axis=0)[(len(curves) - 1) // 2]


def _cut(curve: NDArray[float64]) -> int:
    """How many leading batches to leave out."""
    import numpy

    batches = len(curve) // BATCH_STEPS
    means = curve[: batches * BATCH_STEPS].reshape(batches, BATCH_STEPS).mean(axis=1)
    # sums over all that is left when the first 0, 1, 2, ... batches are out
    counts = numpy.arange(batches, 0, -1)
    centred = means - means[-1]
    sums, squares = (numpy.cumsum(values[::-1])[::-1] for values in (centred, centred**2))
    variance = squares - sums**2 / counts
    variance[variance < squares[0] * 1e-12] = 0  # a rounding error of nothing
    criterion = (variance / counts**2)[: len(curve) // 2 // BATCH_STEPS + 1]
    # the relative standard error of a variance that is estimated from so many normal values
    tolerance = (2 / batches) ** 0.5
    cut = int(numpy.argmax(criterion <= criterion.min() * (1 + tolerance)))
    # the least at the very end of what may be cut: it went on falling, and has not been steady there either
    falls = criterion.argmin() == len(criterion) - 1
    return len(criterion) - 1 if cut and falls else cut
