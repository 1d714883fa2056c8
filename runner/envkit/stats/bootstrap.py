"""A bootstrap of blocks, and of steps within samples: the structure that the measurements have.

Blocks are drawn with replacement, both arms of a block together. Within each sample the steps are drawn as runs of
neighbours, because a step resembles the one before it.

References:
  B. Efron, R. Tibshirani: An Introduction to the Bootstrap (1993), chapters 8 and 13.
  A. C. Davison, D. V. Hinkley: Bootstrap Methods and their Application (1997), section 3.8 (nested data).
  H. R. Kuensch: The jackknife and the bootstrap for general stationary observations. Annals of Statistics 17 (1989).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envkit.stats.interval import ERROR_RATE

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

RESAMPLES = 2000
# Means of resampled steps that are kept for each sample; the blocks' resamples draw from these.
WITHIN_RESAMPLES = 100


@dataclass(frozen=True)
class Bootstrap:
    """Percentile interval of the speedup, and how much of a block's noise comes from within its samples (0 to 1)."""

    low: float
    high: float
    within_share: float


def bootstrap(reference: Sequence[Sequence[float]], profile: Sequence[Sequence[float]]) -> Bootstrap | None:
    """Resample blocks and steps; each argument has, per block, the seconds of a sample's steps.

    Percentile intervals of few blocks cover the truth too seldom, so verdicts come from ``interval.py``; this one is
    given beside it as a check that rests on other assumptions. None with fewer than two blocks. Seeded: one record
    always gives one answer.
    """
    import numpy

    if len(reference) < 2:
        return None
    random = numpy.random.default_rng(0)
    logs = [_resampled_means(steps, random) for steps in (*reference, *profile)]
    half = len(reference)
    ratios = numpy.stack(logs[:half]) - numpy.stack(logs[half:])  # blocks x resamples
    blocks = random.integers(half, size=(RESAMPLES, half))
    within = random.integers(WITHIN_RESAMPLES, size=(RESAMPLES, half))
    means = ratios[blocks, within].mean(axis=1)
    low, high = numpy.quantile(means, (ERROR_RATE / 2, 1 - ERROR_RATE / 2))
    of_blocks = float(ratios.mean(axis=1).var(ddof=1))
    of_steps = float(ratios.var(axis=1, ddof=1).mean())
    share = min(1.0, of_steps / of_blocks) if of_blocks > 0 else 0.0
    return Bootstrap(math.exp(low), math.exp(high), share)


def _resampled_means(steps: Sequence[float], random: Generator) -> NDArray[float64]:
    """Logarithms of WITHIN_RESAMPLES means of as many steps, drawn as runs of about the cube root of their number."""
    import numpy

    times = numpy.asarray(steps, dtype=float)
    length = math.ceil(len(times) ** (1 / 3))
    starts = random.integers(len(times), size=(WITHIN_RESAMPLES, math.ceil(len(times) / length)))
    chosen = (starts[:, :, None] + numpy.arange(length)) % len(times)  # runs go round the end (circular)
    return numpy.log(times[chosen.reshape(WITHIN_RESAMPLES, -1)[:, : len(times)]].mean(axis=1))
