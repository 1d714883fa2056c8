from __future__ import annotations

import math

import numpy as np
import pytest
from envkit.stats.drift import MIN_VALUES, drift
from envkit.stats.messages import InvalidTimesError, NoLogarithm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

CLEAR = 0.01
VALUES = st.lists(st.floats(1e-3, 1e3), min_size=MIN_VALUES, max_size=40)


def found(values):
    one = drift(values)
    assert one is not None
    return one


@pytest.mark.parametrize("blocks", [6, 12, 40])
@pytest.mark.parametrize("heavy", [False, True])
def test_values_in_random_order_seldom_show_a_drift(blocks, heavy):
    generator = np.random.default_rng(blocks)
    noise = generator.standard_t(2, (400, blocks)) if heavy else generator.normal(size=(400, blocks))
    alarms = sum(found(np.exp(0.05 * values)).p_value < CLEAR for values in noise)
    assert alarms <= 12  # 4 are expected, and more than 12 in 1 of 4,000 cases


@pytest.mark.parametrize("change", [0.1, -0.1])
def test_a_planted_drift_is_found_and_measured(change):
    generator = np.random.default_rng(1)
    line = (1 + change) ** np.linspace(0, 1, 20)
    runs = [found(line * np.exp(0.02 * generator.normal(size=20))) for _ in range(200)]
    assert np.mean([one.p_value < CLEAR for one in runs]) > 0.95
    assert np.median([one.change for one in runs]) == pytest.approx(change, abs=0.005)


def test_a_slow_start_that_ends_soon_and_wild_values_do_not_move_the_change():
    values = [1.0 + 0.001 * (block % 3) for block in range(20)]
    values[0], values[11] = 3.0, 9.0
    assert abs(found(values).change) < 0.01


def test_a_straight_rise_is_measured_exactly():
    one = found([1.1 ** (block / 9) for block in range(10)])
    assert one.change == pytest.approx(0.1)
    assert one.p_value < 1e-5


@pytest.mark.parametrize("values", [[2.0] * 10, [1e-9] * 6])
def test_equal_values_do_not_drift(values):
    one = found(values)
    assert (one.change, one.p_value) == (0.0, 1.0)


def test_too_few_values_say_nothing():
    assert drift([]) is None
    assert drift([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert drift([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) is not None


@pytest.mark.parametrize("wrong", [0.0, -0.1])
def test_logarithms_given_by_mistake_are_refused(wrong):
    with pytest.raises(InvalidTimesError, match=NoLogarithm.code):
        drift([1.0, 2.0, 3.0, wrong, 5.0, 6.0])


@given(values=VALUES, unit=st.sampled_from([1e-3, 0.5, 8.0, 1024.0]))
def test_the_unit_does_not_matter(values, unit):
    one, other = found(values), found([value * unit for value in values])
    assert one.change == pytest.approx(other.change, rel=1e-6, abs=1e-9)


@given(values=VALUES)
def test_backwards_it_is_the_opposite(values):
    one, back = found(values), found(values[::-1])
    assert (1 + one.change) * (1 + back.change) == pytest.approx(1, rel=1e-6)
    assert one.p_value == pytest.approx(back.p_value)
    assert 0 <= one.p_value <= 1
    assert math.isfinite(one.change)


@given(values=st.lists(st.sampled_from([0.5, 1.0, 1.1, 1.2, 2.0]), min_size=MIN_VALUES, max_size=40) | VALUES)
def test_it_is_what_scipy_finds(values):
    one, order, logarithms = found(values), np.arange(len(values)), np.log(values)
    assert one.change == pytest.approx(
        math.expm1(stats.theilslopes(logarithms, order).slope * (len(values) - 1)), rel=1e-9, abs=1e-12
    )
    expected = stats.kendalltau(order, logarithms).pvalue
    assert one.p_value == pytest.approx(1.0 if math.isnan(expected) else expected, abs=1e-12)
