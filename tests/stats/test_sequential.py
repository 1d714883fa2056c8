from __future__ import annotations

import math

import numpy
import pytest
from envkit.stats import sequential
from envkit.stats.interval import ERROR_RATE, MIN_BLOCKS
from envkit.stats.sequential import FIRST_LOOK, LOOKS, at_end, at_look, design, live, may_stop, nominal_rates
from hypothesis import given
from hypothesis import strategies as some
from scipy.special import ndtri

MARGIN = 0.02
RUNS = 4000


def test_bounds_are_the_published_ones():
    # three equal looks, 2.5% on each side (R's gsDesign prints them); the sizes are beyond exact counting
    rates = nominal_rates((1000, 2000, 3000), 3000, 0.05, True)
    assert [-ndtri(rate / 2) for rate in rates] == pytest.approx([3.0107, 2.5465, 1.9992], abs=0.001)


def test_the_integration_has_the_nodes_that_numpy_finds():
    nodes, weights = sequential._gauss_legendre()
    expected_nodes, expected_weights = numpy.polynomial.legendre.leggauss(sequential.NODES)
    assert nodes == pytest.approx(expected_nodes, abs=1e-14)
    assert weights == pytest.approx(expected_weights, rel=1e-9)


def test_one_look_spends_all():
    assert nominal_rates((300,), 300, 0.05, True) == pytest.approx((0.05,))


@pytest.mark.parametrize("planned", [6, 7, 9, 12, 30, 100])
def test_looks_end_with_the_planned_blocks_and_begin_where_a_look_can_decide(planned):
    looks = design(planned, 1).looks
    assert looks[-1] == planned
    assert list(looks) == sorted(set(looks))
    assert all(look >= FIRST_LOOK for look in looks[:-1])
    assert len(looks) <= LOOKS


def test_no_run_is_planned_with_too_few_blocks_for_a_verdict():
    assert design(2, 1).planned == MIN_BLOCKS


@pytest.mark.parametrize("planned", [12, 30])
@pytest.mark.parametrize("last", [None, 9])
def test_all_looks_together_claim_a_difference_that_is_not_there_in_5_percent_of_runs(planned, last):
    """Also where time was up after ``last`` blocks, before those that were planned."""
    fixed = design(planned, 1)
    end = last or planned
    random = numpy.random.default_rng(1)
    claimed = 0
    for _ in range(RUNS):
        ratios = random.standard_t(3, end) * 0.05
        looks = [at_look(fixed, ratios[:look], MARGIN) for look in fixed.looks[:-1] if look < end]
        found = [*looks, at_end(fixed, ratios, MARGIN, stopped_early=False)]
        claimed += any(one is not None and (one.low > 1 or one.high < 1) for one in found)
    assert claimed / RUNS <= ERROR_RATE + 2 * math.sqrt(ERROR_RATE * (1 - ERROR_RATE) / RUNS)
    assert claimed / RUNS > 0.03  # or the looks would waste what they may spend


def test_a_look_is_stricter_than_the_end():
    ratios = list(numpy.random.default_rng(2).normal(0.03, 0.05, 10))
    fixed = design(12, 1)
    look, end = at_look(fixed, ratios, MARGIN), at_end(fixed, ratios, MARGIN, stopped_early=False)
    assert look.low < end.low < end.high < look.high
    assert look.ratio == end.ratio


@given(some.lists(some.floats(-0.5, 0.5), min_size=8, max_size=30), some.integers(8, 40))
def test_what_a_look_found_the_report_says_too(ratios, planned):
    fixed = design(planned, 1)
    look = at_look(fixed, ratios, MARGIN)
    if look is not None and look.decided:
        assert at_end(fixed, ratios, MARGIN, stopped_early=True).verdict == look.verdict


def test_more_comparisons_make_wider_intervals():
    ratios = list(numpy.random.default_rng(3).normal(0.03, 0.05, 14))
    one, many = (at_end(design(14, count), ratios, MARGIN, stopped_early=False) for count in (1, 6))
    assert many.low < one.low < one.high < many.high


def spread(middle, width, blocks=24):
    """Log ratios about ``middle`` whose reported interval has about that half-width."""
    return [middle + width * (2 * number / (blocks - 1) - 1) * 2 for number in range(blocks)]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_run_may_stop_when_it_is_decided_and_narrow(sign):
    fixed = design(40, 1)

    def may(ratios, precision):
        return may_stop(fixed, [sign * ratio for ratio in ratios], MARGIN, precision)

    assert may(spread(0.10, 0.03), 0.04)
    assert not may(spread(0.50, 0.10), 0.04), "not narrow"
    assert not may([0.02 * (-1) ** number for number in range(24)], 0.04), "not decided"
    assert not may([0.5] * (MIN_BLOCKS - 1), 0.04), "no interval"


@pytest.mark.parametrize("sign", [1, -1])
def test_a_gain_needs_half_of_its_own_width_where_no_precision_was_given(sign):
    fixed = design(40, 1)

    def may(ratios, precision=None):
        return may_stop(fixed, [sign * ratio for ratio in ratios], MARGIN, precision)

    assert may(spread(0.50, 0.10)), "a gain of 39% to within 20%"
    assert not may(spread(0.50, 0.50)), "it is decided, to within half of the gain and more"
    assert may(spread(0.05, 0.03)), "4% is enough for a small gain"
    assert may([0.0] * 24), "no difference larger than the margin"


def test_a_run_that_stops_by_luck_reports_a_wider_interval_than_one_that_ends():
    ratios = list(numpy.random.default_rng(4).normal(0.3, 0.16, 24))
    planned_to_the_end, stopped = (at_end(design(24, 1), ratios, MARGIN, early) for early in (False, True))
    one_look = at_end(sequential.Design(24, (24,), 1), ratios, MARGIN, stopped_early=False)
    assert stopped.low < one_look.low < one_look.high < stopped.high
    assert planned_to_the_end.ratio == stopped.ratio


@pytest.mark.parametrize("planned", [12, 40])
def test_the_interval_of_progress_leaves_out_the_truth_after_any_block_in_5_percent_of_runs(planned):
    random = numpy.random.default_rng(5)
    runs, wrong = 600, 0
    for _ in range(runs):
        ratios = list(random.normal(0, 0.1, planned))
        shown = (live(planned, 1, ratios[:blocks], MARGIN) for blocks in range(1, planned + 1))
        wrong += any(one is not None and not one.low <= 1 <= one.high for one in shown)
    assert wrong / runs <= ERROR_RATE + 2 * math.sqrt(ERROR_RATE * (1 - ERROR_RATE) / runs)
    assert wrong / runs > 0.01, "or it would be wider than it need be"


def test_progress_shows_no_interval_before_it_says_anything_and_none_beyond_the_planned_blocks():
    assert live(12, 1, [0.1] * (FIRST_LOOK - 1), MARGIN) is None
    assert live(12, 1, [0.1] * 13, MARGIN) is None
    assert live(0, 1, [0.1] * 8, MARGIN) is None
    assert live(12, 1, [0.1] * 12, MARGIN) is not None


def test_too_few_blocks_give_no_interval():
    assert at_end(design(12, 1), [0.1] * (MIN_BLOCKS - 1), MARGIN, stopped_early=False) is None
    assert at_end(design(12, 1), [], MARGIN, stopped_early=True) is None
