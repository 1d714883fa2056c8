from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy
import pytest
from envkit.stats.interval import ERROR_RATE, MIN_BLOCKS, middle_of, speedup
from envkit.stats.power import POWER, blocks_needed, blocks_past_extremes, interval_scale, noise_floor


def test_half_the_difference_takes_four_times_the_blocks():
    assert blocks_needed(0.1, 6, 0.01) == pytest.approx(4 * blocks_needed(0.1, 6, 0.02), rel=0.03)


def test_half_the_noise_takes_a_quarter_of_the_blocks():
    assert blocks_needed(0.05, 6, 0.01) == pytest.approx(blocks_needed(0.1, 6, 0.01) / 4, rel=0.03)


def test_what_is_known_from_few_blocks_needs_more_of_them():
    assert blocks_needed(0.1, 4, 0.02) > blocks_needed(0.1, 20, 0.02)


def test_more_comparisons_need_more_blocks():
    assert blocks_needed(0.1, 6, 0.02, comparisons=6) > blocks_needed(0.1, 6, 0.02)


def test_with_known_noise_it_is_the_textbooks_number():
    """The sum of both normal quantiles, squared, in deviations: 784 blocks for a two-sided 5% and a power of 80%.

    Of ten looks the last has a nominal rate of 3.71%, so it is 1.0906 times as many. Ranks take pi / 3 times as many as
    a t-test. A logarithm of 1.01 is below 0.01, which is another 1.0100. Two blocks are for the ranks' whole numbers.
    """
    of_power, of_look = (statistics.NormalDist().inv_cdf(share) for share in (0.8, 1 - 0.0371 / 2))
    textbook = ((of_power + of_look) * 0.1 / math.log(1.01)) ** 2 * math.pi / 3 + 2
    assert textbook == pytest.approx(1.158 * (1.96 + 0.84) ** 2 * 100, rel=0.001)
    assert blocks_needed(0.1, 10_000, 0.01) == pytest.approx(textbook, rel=0.002)


@pytest.mark.parametrize("deviation", [0.0, 1e-9])
def test_without_noise_the_fewest_blocks_do(deviation):
    assert MIN_BLOCKS <= blocks_needed(deviation, 6, 0.01) <= MIN_BLOCKS + 2


def test_of_normal_noise_the_scale_is_its_standard_deviation():
    ratios = numpy.random.default_rng(1).normal(0.3, 0.1, 2000)
    assert interval_scale(ratios) == pytest.approx(0.1, rel=0.05)


def test_blocks_far_out_hardly_change_the_scale():
    ratios = numpy.random.default_rng(1).normal(0, 0.1, 40)
    assert interval_scale([*ratios, 5.0, -5.0]) < 1.4 * interval_scale(ratios)


def test_the_scale_takes_two_blocks():
    assert interval_scale([0.1]) is None
    assert interval_scale([0.1, 0.2]) > 0
    assert interval_scale([0.1] * 6) == 0


def _normal(random, blocks):
    return random.normal(0, 0.14, blocks)


def _heavy_tails(random, blocks):
    return 0.1 * random.standard_t(3, blocks)


def _far_out(random, blocks):
    far = (random.random(blocks) < 0.08) * random.choice([-1, 1], blocks) * random.uniform(0.3, 1, blocks)
    return random.normal(0, 0.1, blocks) + far


@pytest.mark.parametrize("pilot_blocks", [8, 28])
@pytest.mark.parametrize("noise", [_normal, _heavy_tails, _far_out])
def test_the_named_blocks_find_the_difference_as_often_as_promised(noise: Callable, pilot_blocks: int):
    random, runs, found = numpy.random.default_rng(1), 400, 0
    for _ in range(runs):
        blocks = blocks_needed(interval_scale(noise(random, pilot_blocks)), pilot_blocks, 0.05)
        result = speedup(noise(random, blocks) + math.log(1.05), ERROR_RATE, 0.02)
        found += result is not None and result.low > 1
    # two standard deviations of so many runs are 4%
    assert abs(found / runs - POWER) <= 0.08


@pytest.mark.parametrize("noise", [_normal, _heavy_tails, _far_out])
def test_a_profile_without_effect_leaves_the_noise_floor_as_seldom_as_promised(noise: Callable):
    random, runs, beyond = numpy.random.default_rng(2), 400, 0
    for _ in range(runs):
        floor = noise_floor(interval_scale(noise(random, 20)), 20, 20)
        beyond += abs(middle_of(noise(random, 20))) > math.log1p(floor)
    # two standard deviations of so many runs are 2%
    assert beyond / runs == pytest.approx(ERROR_RATE, abs=0.025)


def test_the_noise_floor_falls_with_the_root_of_the_blocks():
    few, many = noise_floor(0.01, 20, 10), noise_floor(0.01, 20, 40)
    assert math.log1p(few) == pytest.approx(2 * math.log1p(many))


@pytest.mark.parametrize(("comparisons", "blocks"), [(1, 7), (6, 10)])
def test_past_the_extreme_blocks_an_interval_ignores_the_farthest(comparisons: int, blocks: int):
    assert blocks_past_extremes(comparisons) == blocks
    ratios = [0.01 * number for number in range(blocks)]
    wild = speedup([*ratios[:-1], 9.0], ERROR_RATE / comparisons, 0.02)
    assert wild.high < math.exp(9.0)
