"""The middle of many short series at once, and how sure it is: trimmed means with the variances that belong to them.

A fifth of the values is cut off at either end of each series, so that a tail, or a neighbour who disturbs up to a fifth
of the values, hardly moves the middle, and is hardly taken for noise that the middle has.

References:
  J. W. Tukey, D. H. McLaughlin: Less vulnerable confidence and significance procedures for location based on a single
  sample: trimming/winsorization 1. Sankhya A 25 (1963).
  K. K. Yuen: The two-sample trimmed t for unequal population variances. Biometrika 61 (1974).
  R. R. Wilcox: Introduction to Robust Estimation and Hypothesis Testing, 3rd edition (2012), sections 3.3 and 4.3, on
  cutting off 20%.
  For the correlation of neighbours those of ``envkit.stats.two_sample``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from envkit.stats.two_sample import MOST_AUTOCORRELATION

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# Of five values one is cut off at either end.
ONE_OF = 5
# Of logarithms: no clock tells two times apart that differ by less than a millionth.
LEAST_VARIANCE = 1e-12


class Trimmed(NamedTuple):
    """Hold the ``centre`` of each series, and the ``variance`` that one of the values kept stands for.

    ``kept`` is how many values of each series were not cut off. The variance of a centre is ``variance / kept``, and
    centre over its standard error has Student's distribution with ``degrees`` degrees of freedom, nearly.
    """

    centre: NDArray[float64]
    variance: NDArray[float64]
    kept: int
    degrees: int


def trimmed(series: NDArray[float64]) -> Trimmed:
    """``series`` is an array with a series of at least three values in each row, all equally long."""
    import numpy

    length = series.shape[1]
    cut = length // ONE_OF
    kept = length - 2 * cut
    ordered = numpy.sort(series, axis=1)
    centre = ordered[:, cut : length - cut].mean(axis=1)
    squares = length * _winsorised(series, ordered).var(axis=1)
    return Trimmed(centre, numpy.maximum(squares / (kept - 1), LEAST_VARIANCE), kept, kept - 1)


def autocorrelation(groups: Sequence[NDArray[float64]]) -> float:
    """How alike neighbours in a series are, from 0 to MOST_AUTOCORRELATION: the mean over all series of all groups.

    Each group is an array as ``trimmed`` takes it, with the values of a series in the order in which they were
    measured. The lag-1 autocorrelation is taken of values that are drawn in to the limits of trimming, or single large
    ones would decide it; that makes 0.43 of 0.5 (normal values, 20 in a series). It is corrected as
    ``two_sample.autocorrelation`` corrects that of one series.
    """
    import numpy

    total, count = 0.0, 0
    for series in groups:
        length = series.shape[1]
        drawn_in = _winsorised(series, numpy.sort(series, axis=1))
        centred = drawn_in - drawn_in.mean(axis=1, keepdims=True)
        squares = (centred**2).sum(axis=1)
        varied = squares > 0
        if length <= 3 or not varied.any():
            continue
        correlations = (centred[varied, 1:] * centred[varied, :-1]).sum(axis=1) / squares[varied]
        total += float(((length * correlations + 1) / (length - 3)).sum())
        count += int(varied.sum())
    return min(max(total / count, 0.0), MOST_AUTOCORRELATION) if count else 0.0


def _winsorised(series: NDArray[float64], ordered: NDArray[float64]) -> NDArray[float64]:
    """The series with what would be cut off drawn in to the outermost values that would not; ``ordered`` is sorted."""
    import numpy

    cut = series.shape[1] // ONE_OF
    return numpy.clip(series, ordered[:, [cut]], ordered[:, [series.shape[1] - cut - 1]])
