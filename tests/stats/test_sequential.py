from __future__ import annotations

import math

import numpy
import pytest
import scipy
from envkit.stats.interval import ERROR_RATE, MIN_BLOCKS
from envkit.stats.sequential import FIRST_LOOK, LOOKS, Design, at_end, at_look, design, interim, may_stop, nominal_rates
from hypothesis import given
from hypothesis import strategies as some

MARGIN = 0.02
RUNS = 4000


def test_bounds_are_the_published_ones():
    # three equal looks, 2.5% on each side, gamma -4: what R's gsDesign prints; the sizes are beyond exact counting
    rates = nominal_rates((1000, 2000, 3000), 3000, 0.05, True)
    assert [-scipy.special.ndtri(rate / 2) for rate in rates] == pytest.approx([3.0107, 2.5465, 1.9992], abs=0.001)


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


def blocks_about(middle, spread, number=24):
    """Log ratios in equal steps, whose centre is ``middle``."""
    return [middle + spread * (2 * place / (number - 1) - 1) for place in range(number)]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("middle", "spread", "precision", "stops"),
    [
        (0.10, 0.02, None, True),
        (0.60, 0.60, None, True),  # +-25%, less than half of the gain
        (0.60, 0.60, 0.10, False),
        (0.10, 0.20, None, False),  # more than 4%, and than half of the gain
        (0.02, 0.03, None, True),  # decided: a small gain needs no more than 4%
        (0.02, 0.03, 0.001, False),
        (0.02, 0.20, None, False),  # not decided
        (0.0, 0.02, None, True),  # no relevant difference
        (0.0, 0.02, 0.001, False),
    ],
)
def test_a_run_may_stop_when_it_is_decided_and_knows_the_gain_well_enough(sign, middle, spread, precision, stops):
    fixed = design(40, 1)
    ratios = [sign * ratio for ratio in blocks_about(middle, spread)]
    assert may_stop(fixed, ratios, MARGIN, precision) == stops


def test_no_run_stops_with_too_few_blocks_for_an_interval():
    assert not may_stop(design(40, 1), [0.5] * (MIN_BLOCKS - 1), MARGIN, None)


@given(some.lists(some.floats(-0.5, 0.5), min_size=8, max_size=30), some.integers(8, 40))
def test_a_run_that_stopped_reports_an_interval_inside_the_one_that_decided(ratios, planned):
    fixed = design(planned, 1)
    look, reported = at_look(fixed, ratios, MARGIN), at_end(fixed, ratios, MARGIN, stopped_early=True)
    if look is not None:
        assert look.low <= reported.low <= reported.ratio <= reported.high <= look.high


@pytest.mark.parametrize("planned", [12, 45])
def test_what_the_screen_shows_leaves_out_the_truth_at_any_block_in_at_most_5_percent_of_runs(planned):
    fixed = Design(planned, (planned,), 1)  # a number of blocks that was ordered has no look that may stop it
    random = numpy.random.default_rng(4)
    missed = 0
    for _ in range(RUNS // 2):
        ratios = random.standard_t(3, planned) * 0.05
        shown = {interim(fixed, ratios[:blocks], MARGIN) for blocks in design(planned, 1).looks}
        missed += any(one is not None and not one.low <= 1 <= one.high for one in shown)
    assert missed / (RUNS // 2) <= ERROR_RATE


def test_the_screen_keeps_the_latest_look_until_the_next():
    fixed, ratios = design(45, 1), blocks_about(0.2, 0.1, 45)
    assert interim(fixed, ratios[: FIRST_LOOK - 1], MARGIN) is None
    assert interim(fixed, ratios[:20], MARGIN) == at_look(fixed, ratios[:18], MARGIN)
    assert interim(fixed, ratios[:22], MARGIN) == at_look(fixed, ratios[:22], MARGIN)


def test_too_few_blocks_give_no_interval():
    assert at_end(design(12, 1), [0.1] * (MIN_BLOCKS - 1), MARGIN, stopped_early=False) is None
    assert at_end(design(12, 1), [], MARGIN, stopped_early=True) is None
