from __future__ import annotations

import pytest
from envkit.stats.interval import MIN_BLOCKS
from envkit.stats.power import blocks_needed


def test_half_the_difference_takes_four_times_the_blocks():
    assert blocks_needed(0.1, 6, 0.01) == pytest.approx(4 * blocks_needed(0.1, 6, 0.02), rel=0.03)


def test_half_the_noise_takes_a_quarter_of_the_blocks():
    assert blocks_needed(0.05, 6, 0.01) == pytest.approx(blocks_needed(0.1, 6, 0.01) / 4, rel=0.03)


def test_what_is_known_from_few_blocks_needs_more_of_them():
    assert blocks_needed(0.1, 4, 0.02) > blocks_needed(0.1, 20, 0.02)


def test_more_comparisons_need_more_blocks():
    assert blocks_needed(0.1, 6, 0.02, comparisons=6) > blocks_needed(0.1, 6, 0.02)


def test_with_known_noise_it_is_the_textbooks_number():
    # two-sided 5%, power 80%: (1.96 + 0.84)^2 deviations squared; a little more for ranks, ten looks and whole numbers
    assert (1.96 + 0.84) ** 2 * 100 < blocks_needed(0.1, 10_000, 0.01) < 1.17 * (1.96 + 0.84) ** 2 * 100


@pytest.mark.parametrize("deviation", [0.0, 1e-9])
def test_without_noise_the_fewest_blocks_do(deviation):
    assert MIN_BLOCKS <= blocks_needed(deviation, 6, 0.01) <= MIN_BLOCKS + 2
