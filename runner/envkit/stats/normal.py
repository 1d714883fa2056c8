"""The standard normal distribution, of single numbers and of arrays.

scipy has it too. To import its special functions takes a fifth of a second, which every report would wait for.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

_SCALE = math.sqrt(0.5)
_STANDARD = NormalDist()


def below(value: float) -> float:
    """Return the probability of a value below ``value``."""
    return math.erfc(-value * _SCALE) / 2


def each_below(values: NDArray[float64]) -> NDArray[float64]:
    """Return an array with the probability of a value below each of ``values``, an array of one dimension."""
    import numpy

    return numpy.array([math.erfc(value) for value in (values * -_SCALE).tolist()]) / 2


def quantile(probability: float) -> float:
    """Return the value below which others are with ``probability``, above 0 and below 1."""
    return _STANDARD.inv_cdf(probability)
