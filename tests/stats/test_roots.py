from __future__ import annotations

import math

import pytest
from envkit.stats.roots import root
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize

ENDS = st.floats(-50, 50)


@given(low=ENDS, high=ENDS, shift=st.floats(-5, 5), bend=st.floats(0, 2), tolerance=st.sampled_from([2e-12, 1e-6]))
def test_it_is_what_scipy_finds(low, high, shift, bend, tolerance):
    def function(value):
        return math.tanh(value - shift) + bend * (value - shift) ** 3 - 0.5

    assume(function(low) * function(high) < 0)
    assert root(function, low, high, tolerance) == optimize.brentq(function, low, high, xtol=tolerance)


def test_a_root_at_an_end_is_found():
    assert root(lambda value: value - 1, 1, 2) == 1
    assert root(lambda value: value - 2, 1, 2) == 2


def test_a_flat_function_is_halved():
    assert root(lambda value: math.copysign(1, value - 0.3), 0, 1) == pytest.approx(0.3, abs=1e-11)


def test_ends_of_one_sign_have_no_root():
    with pytest.raises(AssertionError):
        root(lambda value: value, 1, 2)
