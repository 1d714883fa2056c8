"""Values that lie out are found, and how often any is found where none does is kept."""

from __future__ import annotations

import numpy
import pytest
from envkit.stats.outlying import outlying

from benchmarks.page import proportion

RATE = 0.05


def sizes(values):
    return numpy.abs(values - numpy.median(values))


@pytest.mark.parametrize(("size", "runs"), [(8, 500), (64, 300), (300, 60)])
@pytest.mark.parametrize("degrees", [3, 5, numpy.inf])
def test_in_values_that_are_alike_hardly_any_is_found(size, runs, degrees):
    """The lower end of the interval for its share would be above the rate in one of 40 of such tests, at the rate."""
    chance = numpy.random.default_rng([size, runs])
    draw = chance.standard_normal if degrees == numpy.inf else lambda count: chance.standard_t(degrees, count)
    found = sum(outlying(sizes(draw(size)), RATE).count > 0 for _ in range(runs))
    assert proportion(found, runs)[0] <= RATE


@pytest.mark.parametrize(("size", "deviations"), [(8, 20.0), (64, 15.0), (500, 8.0)])
def test_one_that_lies_out_is_found_and_no_other(size, deviations):
    chance = numpy.random.default_rng(size)
    found = []
    for _ in range(50):
        values = chance.standard_normal(size)
        values[3] += deviations
        found.append(outlying(sizes(values), RATE).count)
    assert found.count(1) >= 48


def test_many_do_not_hide_each_other_and_the_limit_parts_them():
    values = numpy.random.default_rng(1).standard_normal(200)
    values[:30] += numpy.linspace(12, 25, 30)
    found = outlying(sizes(values), RATE)
    assert found.count == 30
    assert set(numpy.flatnonzero(sizes(values) > found.limit)) == set(range(30))


def test_where_none_lies_out_the_limit_is_what_it_would_take():
    values = sizes(numpy.random.default_rng(2).standard_normal(100))
    found = outlying(values, RATE)
    assert found.count == 0
    outermost = int(values.argmax())
    for share, count in ((0.99, 0), (1.01, 1)):
        values[outermost] = share * found.limit
        assert outlying(values, RATE).count == count


def test_the_unit_is_no_matter():
    values = sizes(numpy.random.default_rng(3).standard_normal(20))
    values[4] = 40.0
    one, other = outlying(values, RATE), outlying(1e-6 * values, RATE)
    assert (one.count, other.count) == (1, 1)
    assert other.limit == pytest.approx(1e-6 * one.limit)


def test_values_that_are_exactly_alike():
    assert outlying(numpy.zeros(8), RATE).count == 0
    assert outlying(numpy.array([0.0] * 7 + [1.0]), RATE).count == 1
