from __future__ import annotations

import math

import numpy
import pytest

from runner.statistics.interval import CONFIDENCE, MIN_BLOCKS, Speedup, speedup


def noisy(generator, blocks, block_noise=0.1, noise=0.03):
    """Seconds of two profiles that are equally fast: a noise that both share in a block, and one of their own."""
    shared = generator.lognormal(0, block_noise, blocks)
    return [(shared * generator.lognormal(0, noise, blocks)).tolist() for _ in range(2)]


def test_ratio_of_medians_and_an_interval_of_pairs():
    # In every block the profile takes exactly half the time, so no resampling of pairs can say anything else,
    # however much the blocks differ. Resampling the two sides apart would.
    reference = [2.0, 20.0, 4.0, 8.0, 6.0, 100.0]
    found = speedup(reference, [second / 2 for second in reference])
    assert (found.ratio, found.low, found.high, found.blocks) == (2.0, 2.0, 2.0, 6)
    assert found.verdict == "faster"


def test_median_is_not_moved_by_one_slow_block():
    found = speedup([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 50.0], [1.0] * 7)
    assert found.ratio == 1.0


def test_known_interval():
    # The bootstrap distribution of a ratio of medians of these is discrete: with an odd number of blocks each
    # resampled median is one of the seven values, and the percentiles fall on values from the tails.
    reference = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    found = speedup(reference, [1.0] * 7)
    assert found.ratio == pytest.approx(1.3)
    # P(median of 7 draws is 1.0) = P(Binomial(7, 1/7) >= 4) = 1.0%; of 1.1 or less = P(Binomial(7, 2/7) >= 4) = 9.8%.
    # 2.5% lies between, so the limits are 1.1 and, by symmetry, 1.5.
    at_most = [sum(math.comb(7, k) * p**k * (1 - p) ** (7 - k) for k in range(4, 8)) for p in (1 / 7, 2 / 7)]
    assert at_most[0] < (1 - CONFIDENCE) / 2 < at_most[1]
    assert (found.low, found.high) == (pytest.approx(1.1), pytest.approx(1.5))
    assert found.half_width == pytest.approx(0.2 / 1.3)


def test_the_same_samples_give_the_same_interval():
    reference, profile = noisy(numpy.random.default_rng(3), 10)
    assert speedup(reference, profile) == speedup(reference, profile)


def test_the_unit_of_time_does_not_matter():
    reference, profile = noisy(numpy.random.default_rng(4), 8)
    found = speedup([second * 1000 for second in reference], [second * 1000 for second in profile])
    assert found.ratio == pytest.approx(speedup(reference, profile).ratio)


@pytest.mark.parametrize("blocks", range(MIN_BLOCKS))
def test_too_few_blocks_for_an_interval(blocks):
    assert speedup([1.0] * blocks, [0.5] * blocks) is None


def test_just_enough_blocks():
    assert speedup([1.0] * MIN_BLOCKS, [0.5] * MIN_BLOCKS) == Speedup(2.0, 2.0, 2.0, MIN_BLOCKS)


def test_unpaired_samples_are_refused():
    with pytest.raises(ValueError, match="each block has one sample of the reference and one of the profile"):
        speedup([1.0] * 7, [1.0] * 6)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.01, 1.2, "faster"),
        (0.8, 0.99, "slower"),
        (0.9, 1.1, "no difference found"),
        (1.0, 1.2, "no difference found"),
        (0.8, 1.0, "no difference found"),
    ],
)
def test_verdict_by_whether_the_interval_leaves_out_1(low, high, verdict):
    assert Speedup((low + high) / 2, low, high, 6).verdict == verdict


@pytest.mark.parametrize("blocks", [MIN_BLOCKS, 12])
def test_the_interval_covers_the_truth_as_often_as_it_says(blocks):
    """Of 400 simulated runs of two equal profiles about 95% must say so; 20 missed are expected, 35 are too many."""
    generator = numpy.random.default_rng(20)
    runs = [speedup(*noisy(generator, blocks)) for _ in range(400)]
    missed = sum(not run.low <= 1 <= run.high for run in runs)
    assert missed <= 35
    assert sum(run.verdict == "no difference found" for run in runs) == 400 - missed


def test_the_interval_is_not_merely_wide():
    """With a real gain of 10%, twice the noise of a block, twelve blocks find it nearly always."""
    generator = numpy.random.default_rng(21)
    runs = [noisy(generator, 12) for _ in range(100)]
    found = [speedup([second * 1.1 for second in reference], profile) for reference, profile in runs]
    assert sum(run.verdict == "faster" for run in found) >= 90
    assert numpy.median([run.half_width for run in found]) < 0.05
