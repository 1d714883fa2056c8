"""Many variances steady each other as far as they are alike."""

from __future__ import annotations

import numpy
import pytest
from envkit.stats.moderated import moderated

SERIES, DEGREES = 4000, 8.0


def drawn(seed, truth):
    """Variances as they are found with DEGREES degrees of freedom where these are the true ones."""
    return truth * numpy.random.default_rng(seed).chisquare(DEGREES, len(truth)) / DEGREES


def test_equal_variances_are_taken_as_one():
    found = moderated(drawn(1, numpy.full(SERIES, 4.0)), numpy.full(SERIES, DEGREES))
    assert found.variance.min() == pytest.approx(4.0, rel=0.1)
    assert found.degrees.min() > 20 * DEGREES


def test_a_large_variance_is_not_made_smaller():
    variance = drawn(2, numpy.full(SERIES, 4.0))
    variance[7] = 100.0
    assert moderated(variance, numpy.full(SERIES, DEGREES)).variance[7] == 100.0


@pytest.mark.parametrize("prior", [4.0, 10.0])
def test_how_much_variances_differ_is_found(prior):
    """The true ones have the inverse chi-square distribution that the method takes them to have."""
    random = numpy.random.default_rng(3)
    truth = 2.0 * prior / random.chisquare(prior, SERIES)
    found = moderated(drawn(4, truth), numpy.full(SERIES, DEGREES))
    assert found.degrees[0] - DEGREES == pytest.approx(prior, rel=0.25)
    assert found.degrees.max() == found.degrees.min()


def test_few_series_know_no_more_than_their_values_together():
    found = moderated(numpy.array([1.0, 1.0, 1.1]), numpy.full(3, DEGREES))
    assert found.degrees.tolist() == [3 * DEGREES] * 3
    alone = moderated(numpy.array([2.0]), numpy.array([DEGREES]))
    assert (alone.variance[0], alone.degrees[0]) == (pytest.approx(2.0, rel=0.1), DEGREES)
