"""Many tests at once: how many of them to believe, and whether those believed have something in common.

References:
  Y. Benjamini, Y. Hochberg: Controlling the false discovery rate: a practical and powerful approach to multiple
  testing. Journal of the Royal Statistical Society B 57 (1995).
  Y. Benjamini, D. Yekutieli: The control of the false discovery rate in multiple testing under dependency. Annals of
  Statistics 29 (2001): it also holds for tests that go up and down together.
  Y. Benjamini, D. Yekutieli: False discovery rate-adjusted multiple confidence intervals for selected parameters.
  Journal of the American Statistical Association 100 (2005).
  R. A. Fisher: Statistical Methods for Research Workers, 5th edition (1934), section 21.02, on the exact test.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


def believed(p_values: NDArray[float64], rate: float) -> int:
    """How many of the smallest p-values to believe, so that the expected share of wrong ones among them is ``rate``.

    Those believed are the ones that are not above ``level``, and intervals at that level agree with it: they are right
    about all but ``rate`` of what they were chosen for (2005).
    """
    import numpy

    ordered = numpy.sort(p_values)
    fits = numpy.nonzero(ordered <= rate * numpy.arange(1, len(ordered) + 1) / max(1, len(ordered)))[0]
    return int(fits[-1]) + 1 if len(fits) else 0


def level(chosen: int, tests: int, rate: float) -> float:
    """The level of each test, and of each side of an interval, where ``chosen`` of ``tests`` are believed."""
    return rate * max(1, chosen) / max(1, tests)


def at_least(common: int, having: int, chosen: int, everything: int) -> float:
    """How likely it is by chance that ``common`` or more of the ``chosen`` are among those ``having`` something.

    Fisher's exact test, one-sided: ``chosen`` are drawn from ``everything`` without regard to what they have.
    """

    def ways(total: int, drawn: int) -> float:
        return math.lgamma(total + 1) - math.lgamma(drawn + 1) - math.lgamma(total - drawn + 1)

    total = ways(everything, chosen)
    fewest = max(common, chosen - (everything - having))
    terms = (
        math.exp(ways(having, number) + ways(everything - having, chosen - number) - total)
        for number in range(fewest, min(having, chosen) + 1)
    )
    return min(1.0, math.fsum(terms))
