"""Trimmed means of many series, with errors that hold, and how alike neighbours are."""

from __future__ import annotations

import math

import numpy
import pytest
import scipy
from envkit.stats import two_sample
from envkit.stats.trimmed import LEAST_VARIANCE, autocorrelation, trimmed


def test_a_worked_example():
    """Of 1 to 10 two are cut off at either end; drawn in, squares are 6 * 2.5² + 2 * 1.5² + 2 * 0.5²."""
    found = trimmed(numpy.array([numpy.arange(10.0, 0.0, -1.0)]))
    assert (found.kept, found.degrees) == (6, 5)
    assert found.centre.tolist() == [5.5]
    assert found.variance[0] == pytest.approx(42.5 / 5)


@pytest.mark.parametrize("length", [5, 10, 20])
def test_it_is_what_scipy_has_but_for_degrees_of_freedom(length):
    series = numpy.random.default_rng(1).standard_t(3, (50, length))
    found = trimmed(series)
    assert found.centre == pytest.approx(scipy.stats.trim_mean(series, 0.2, axis=1))
    errors = numpy.array([float(scipy.stats.mstats.trimmed_stde(row, limits=(0.2, 0.2))) for row in series])
    expected = errors * math.sqrt((length - 1) / length * found.kept / found.degrees)
    assert numpy.sqrt(found.variance / found.kept) == pytest.approx(expected)


def test_a_few_wild_values_hardly_count():
    series = numpy.tile(numpy.linspace(-1, 1, 20), (2, 1))
    series[1, :4] = 1e6
    usual, wild = trimmed(series).centre
    assert abs(wild - usual) < 0.5


def test_equal_values_have_the_least_variance_that_clocks_tell():
    assert trimmed(numpy.ones((1, 8))).variance.tolist() == [LEAST_VARIANCE]


def test_correlation_of_neighbours():
    random = numpy.random.default_rng(2)
    noise = random.normal(size=(3000, 20))
    assert autocorrelation([noise]) < 0.02
    for step in range(1, 20):
        noise[:, step] = 0.5 * noise[:, step - 1] + math.sqrt(0.75) * noise[:, step]
    assert 0.42 < autocorrelation([noise]) < 0.5
    assert 0.42 < autocorrelation([noise[:1500], noise[1500:, :12]]) < 0.5
    assert autocorrelation([numpy.ones((3, 20))]) == 0.0
    assert autocorrelation([numpy.arange(20.0)[None, :]]) == two_sample.MOST_AUTOCORRELATION
