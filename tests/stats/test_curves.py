from __future__ import annotations

import math

import numpy as np
import pytest
from envkit.stats.curves import Apart, apart
from hypothesis import given
from hypothesis import strategies as st

CURVE = (2.3, 1.75, 1.2)


def times(factor, curve=CURVE):
    return [factor * height for height in curve]


def test_equal_curves():
    one = apart([CURVE] * 7, [CURVE] * 6)
    assert (one.between, one.within, one.within_other) == (0, 0, 0)


def test_the_largest_distance_is_a_share_of_the_mean_height():
    one = apart([[2.3, 1.75, 1.55]] * 6, [CURVE] * 6)
    assert one.between == pytest.approx(0.35 / 1.75)
    assert one.within == 0


def test_a_single_curve_of_the_reference_that_is_apart():
    one = apart([CURVE] * 6, [*[CURVE] * 5, [2.3, 1.75, 2.4]])
    assert one.within == pytest.approx(1.0 / np.mean([2.3, 1.75, 1.4]))
    assert one.between == pytest.approx(0.2 / np.mean([2.3, 1.75, 1.4]))


@pytest.mark.parametrize(
    ("printed", "share"), [(1.21, 0), (1.19, 0), (1.22, 0.02 / 1.75), (1.201, 0), (1.202, 0.002 / 1.75)]
)
def test_the_last_digit_does_not_count(printed, share):
    """It is 0.01, or 0.001 where one is given as 1.201."""
    assert apart([[2.3, 1.75, printed]], [CURVE]).between == pytest.approx(share)


def test_numbers_that_are_none_are_apart_from_all():
    for wrong in (math.nan, math.inf):
        assert apart([[2.3, wrong, 1.2]], [CURVE]) == Apart(math.inf, 0.0, 0.0)
        assert apart([CURVE], [[2.3, wrong, 1.2]]) == Apart(math.inf, 0.0, 0.0)


def test_very_large_and_very_small_numbers():
    assert apart([[1e308] * 3] * 6, [[1e308] * 3] * 6).between == 0
    assert apart([[1e-9] * 3] * 6, [[2e-9] * 3] * 6).between == 0  # by the last digit
    assert apart([[1.5e-9] * 3] * 6, [[3e-9] * 3] * 6).between == pytest.approx(0.5)
    assert apart([[0.5] * 3], [[0.0] * 3]).between == math.inf
    assert apart([[0.0] * 3], [[0.0] * 3]).between == 0


@pytest.mark.parametrize(("steps", "curves"), [(1, 6), (20, 6), (1, 12)])
@pytest.mark.parametrize("shape", ["normal", "exponential", "heavy"])
def test_by_chance_the_means_are_seldom_farther_apart_than_single_curves_are_from_them(steps, curves, shape):
    """As the losses of a training do that draws other random numbers each time."""
    generator = np.random.default_rng(curves)
    draw = {
        "normal": generator.normal,
        "exponential": generator.exponential,
        "heavy": lambda size: generator.standard_t(2, size),
    }[shape]
    runs = 10 + 0.1 * draw(size=(1000 if steps == 1 else 200, 2, curves, steps))
    found = [apart(*run.tolist()) for run in runs]
    assert sum(one.between > max(one.within, one.within_other) for one in found) <= 0.02 * len(found)


def test_a_difference_beyond_chance_is_found():
    generator = np.random.default_rng(1)
    runs = 10 + 0.1 * generator.normal(size=(100, 2, 6, 20))
    runs[:, 0, :, 12:] += 0.5
    found = [apart(*run.tolist()) for run in runs]
    assert all(one.between > max(one.within, one.within_other) for one in found)


@given(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3), st.sampled_from([0.5, 8.0, 1024.0]))
def test_the_unit_of_losses_does_not_matter(other, unit):
    # as many digits as there are, so that the last one is no matter
    digits = [[height / 3 for height in curve] for curve in (CURVE, other)]
    one = apart(digits[:1], digits[1:])
    scaled = apart([times(unit, digits[0])], [times(unit, digits[1])])
    assert scaled.between == pytest.approx(one.between, rel=1e-6, abs=1e-9)
