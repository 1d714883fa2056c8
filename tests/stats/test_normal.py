from __future__ import annotations

import numpy
import pytest
import scipy
from envkit.stats import normal
from hypothesis import given
from hypothesis import strategies as st


@given(values=st.lists(st.floats(-37, 37), min_size=1))
def test_it_is_what_scipy_finds(values):
    expected = scipy.special.ndtr(values)
    assert normal.each_below(numpy.array(values)) == pytest.approx(expected, rel=1e-13)
    assert [normal.below(value) for value in values] == pytest.approx(expected, rel=1e-13)


@given(probability=st.floats(1e-300, 1 - 1e-9))
def test_quantiles_are_what_scipy_finds(probability):
    assert normal.quantile(probability) == pytest.approx(float(scipy.special.ndtri(probability)), rel=1e-9, abs=1e-12)
