"""The speedup of one profile over the reference, with an interval, from samples measured side by side.

References:
  B. Efron, R. Tibshirani: An Introduction to the Bootstrap (1993), chapter 13 (the percentile interval).
  T. Hoefler, R. Belli: Scientific Benchmarking of Parallel Computing Systems (SC 2015): medians and intervals
  instead of bare means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

CONFIDENCE = 0.95
RESAMPLES = 9999
# With fewer pairs a percentile interval of medians covers the truth clearly less often than it says.
MIN_BLOCKS = 6

Verdict = Literal["faster", "slower", "no difference found"]


@dataclass(frozen=True)
class Speedup:
    """``ratio`` is the reference's median time over the profile's: above 1 the profile is faster."""

    ratio: float
    low: float
    high: float
    blocks: int

    @property
    def half_width(self) -> float:
        """Half of the interval's width as a share of the ratio."""
        return (self.high - self.low) / 2 / self.ratio

    @property
    def verdict(self) -> Verdict:
        """A difference counts as found when the interval leaves out 1."""
        if self.low > 1:
            return "faster"
        if self.high < 1:
            return "slower"
        return "no difference found"


def speedup(reference_s: Sequence[float], profile_s: Sequence[float]) -> Speedup | None:
    """Ratio of medians with a 95% percentile bootstrap interval, or None with fewer than MIN_BLOCKS blocks.

    Both sequences hold one time (seconds) per block, in the same order. Blocks are resampled as pairs, because what
    slows a whole block (another process, a warmer machine) slows both of its samples; a ratio of medians does not
    cancel that, so the interval is then rather too wide than too narrow. The resampling is seeded, so a
    record always gives the same interval. scipy gives NaN for the interval where all samples are equal: there the
    ratio is the interval.
    """
    if len(reference_s) != len(profile_s):
        raise ValueError("each block has one sample of the reference and one of the profile")
    if len(reference_s) < MIN_BLOCKS:
        return None
    import numpy
    from scipy import stats

    def ratio(reference: Any, profile: Any, axis: int = -1) -> Any:
        return numpy.median(reference, axis=axis) / numpy.median(profile, axis=axis)

    observed = float(ratio(numpy.asarray(reference_s), numpy.asarray(profile_s)))
    interval = stats.bootstrap(
        (reference_s, profile_s), ratio, paired=True, vectorized=True, confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES, method="percentile", rng=numpy.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    low, high = float(interval.low), float(interval.high)
    if numpy.isnan(low) or numpy.isnan(high):
        low = high = observed
    return Speedup(observed, low, high, len(reference_s))
