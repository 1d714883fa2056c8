from __future__ import annotations

import math
from itertools import combinations

import numpy
import pytest
import scipy
from envkit.stats import two_sample
from envkit.stats.two_sample import MOST_AUTOCORRELATION, Shift, autocorrelation, shift, widened
from hypothesis import given
from hypothesis import strategies as st

RUNS = 2000
# Whole numbers, and far fewer of them than a double holds: so nothing is rounded, and results can be compared exactly.
VALUES = st.lists(st.integers(-1000, 1000).map(float), min_size=6, max_size=12)


def test_a_worked_example():
    """Of 4 and 5 values 20 differences; P(U <= 1) = 2/126 and P(U <= 2) = 4/126, so the second from each end."""
    old, new = [1.0, 2.0, 4.0, 8.0], [21.0, 22.0, 24.0, 28.0, 36.0]
    differences = sorted(after - before for after in new for before in old)
    found = shift(old, new, 0.95)
    assert found.estimate == (differences[9] + differences[10]) / 2
    assert (found.low, found.high) == (differences[1], differences[18])


@pytest.mark.parametrize(("few", "many"), [(4, 4), (3, 6), (5, 6), (6, 6)])
def test_the_limits_are_where_counting_all_orders_puts_them(few, many):
    """Every order of both samples is equally likely; U is counted in each of them."""
    counts = []
    for places in combinations(range(few + many), few):
        others = [place for place in range(few + many) if place not in places]
        counts.append(sum(mine > other for mine in places for other in others))
    below = [sum(count <= u for count in counts) / len(counts) for u in range(few * many + 1)]
    expected = sum(share <= 0.025 for share in below)
    old, new = [float(value) for value in range(few)], [100.0 * value for value in range(1, many + 1)]
    differences = sorted(after - before for after in new for before in old)
    assert shift(old, new, 0.95).low == differences[expected - 1]
    assert shift(old, new, 0.95).high == differences[-expected]
    assert shift(new, old, 0.95).high == -differences[expected - 1]


def test_it_agrees_with_the_test_that_it_inverts():
    """A shift that is just inside the interval is not rejected, one just outside is."""
    generator = numpy.random.default_rng(2)
    old, new = generator.normal(0, 1, 9), generator.normal(0.5, 1, 11)
    found = shift(list(old), list(new), 0.95)
    for limit, outwards in ((found.low, -1e-9), (found.high, 1e-9)):
        p_in, p_out = (
            scipy.stats.mannwhitneyu(new - (limit + step), old, method="exact").pvalue for step in (-outwards, outwards)
        )
        assert p_out <= 0.05 < p_in


@pytest.mark.parametrize(("few", "many", "enough"), [(3, 3, False), (4, 4, True), (1, 38, False), (1, 39, True)])
def test_too_small_for_the_confidence(few, many, enough):
    # the least two-sided level that there can be is 2 / (few + many over few)
    assert (2 / math.comb(few + many, few) <= 0.05) == enough
    found = shift([1.0] * few, [2.0] * many, 0.95)
    assert (found is not None) == enough
    assert (shift([2.0] * many, [1.0] * few, 0.95) is not None) == enough


def test_more_confidence_takes_a_wider_interval_and_may_take_more_samples():
    old, new = [1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 5.0, 7.0, 9.0, 11.0]
    wide, narrow = shift(old, new, 0.99), shift(old, new, 0.9)
    assert wide.low < narrow.low <= narrow.estimate <= narrow.high < wide.high
    assert shift(old, new, 0.999) is None


@pytest.mark.parametrize("samples", [([], []), ([], [1.0] * 60), ([1.0] * 60, [])])
def test_nothing_to_compare(samples):
    assert shift(*samples, 0.95) is None


@pytest.mark.parametrize("sizes", [(20, 60), (30, 50), (35, 35), (50, 50)])
@pytest.mark.parametrize("confidence", [0.90, 0.95])
def test_the_normal_approximation_has_the_exact_rank(sizes, confidence, monkeypatch):
    exact = two_sample._rank.__wrapped__(*sizes, confidence)
    monkeypatch.setattr(two_sample, "EXACT_UP_TO", 0)
    assert two_sample._rank.__wrapped__(*sizes, confidence) == exact


def test_many_values_take_the_normal_approximation_and_give_nearly_the_same(monkeypatch):
    generator = numpy.random.default_rng(5)
    old, new = generator.normal(0, 1, 40).tolist(), generator.normal(1, 1, 30).tolist()
    exact = shift(old, new, 0.95)
    monkeypatch.setattr(two_sample, "EXACT_UP_TO", 0)
    two_sample._rank.cache_clear()
    approximate = shift(old, new, 0.95)
    two_sample._rank.cache_clear()
    assert approximate.estimate == exact.estimate
    assert approximate.low == pytest.approx(exact.low, abs=0.01)
    assert approximate.high == pytest.approx(exact.high, abs=0.01)


@pytest.mark.parametrize("sizes", [(8, 8), (8, 15), (15, 15)])
@pytest.mark.parametrize("distribution", ["normal", "heavy tails"])
def test_the_interval_covers_the_truth_as_often_as_it_says(sizes, distribution):
    """A planted shift of 0.3; 95% to 96.5% is what the exact ranks promise, and 2,000 runs tell it to within 1%."""
    generator = numpy.random.default_rng([*sizes, len(distribution)])

    def draw(size):
        shape = (RUNS, size)
        return generator.normal(0, 1, shape) if distribution == "normal" else generator.standard_t(3, shape)

    old, new = draw(sizes[0]).tolist(), (draw(sizes[1]) + 0.3).tolist()
    found = [shift(before, after, 0.95) for before, after in zip(old, new, strict=True)]
    covered = sum(one.low <= 0.3 <= one.high for one in found) / RUNS
    assert 0.93 <= covered <= 0.98
    assert abs(numpy.median([one.estimate for one in found]) - 0.3) < 0.06


def test_autocorrelation_of_a_worked_example():
    """Around the mean 0: (1 * 1 + 1 * -1 + -1 * -1) / 4 = 0.25, and (4 * 0.25 + 1) / (4 - 3) = 2, which is too much.

    Eight values of it, as 1 1 1 1 -1 -1 -1 -1, have 5/8, and (8 * 5/8 + 1) / 5 = 1.2; with 1 1 -1 -1 1 1 -1 -1 it is
    (4 - 3) / 8, and (1 + 1) / 5 = 0.4.
    """
    assert autocorrelation([1.0, 1.0, -1.0, -1.0]) == MOST_AUTOCORRELATION
    assert autocorrelation([1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0]) == MOST_AUTOCORRELATION
    assert autocorrelation([1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0]) == pytest.approx(0.4)
    assert autocorrelation([3.0, 3.0, 1.0, 1.0, 3.0, 3.0, 1.0, 1.0]) == pytest.approx(0.4)
    assert autocorrelation([1.0, -1.0] * 6) == 0.0


def test_a_change_between_the_sessions_is_no_correlation():
    one = [1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0]
    assert autocorrelation(one, [value + 100 for value in one]) == pytest.approx(0.4)


@pytest.mark.parametrize("sessions", [([2.0] * 8, [3.0] * 8), ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])])
def test_constant_or_very_few_values_tell_no_correlation(sessions):
    assert autocorrelation(*sessions) == 0.0


def test_widening_moves_the_limits_and_not_the_estimate():
    assert widened(Shift(1.0, 0.5, 2.0), 0.6) == pytest.approx((1.0, 0.0, 3.0))  # sqrt(1.6 / 0.4) = 2
    assert widened(Shift(1.0, 0.5, 2.0), 0.0) == (1.0, 0.5, 2.0)


def autoregressive(generator, correlation, size):
    """RUNS series with a standard deviation of 1, of which neighbours have this correlation."""
    values = generator.normal(0, 1, (RUNS, size))
    for place in range(1, size):
        values[:, place] = correlation * values[:, place - 1] + math.sqrt(1 - correlation**2) * values[:, place]
    return values


@pytest.mark.parametrize(
    ("correlation", "blocks", "least", "most", "at_most_if_not_widened"),
    [
        (0.0, 12, 0.945, 0.985, 0.97),
        (0.5, 12, 0.895, 0.94, 0.79),
        (0.8, 12, 0.82, 0.87, 0.54),
        (0.5, 30, 0.915, 0.955, 0.79),
        (0.8, 30, 0.87, 0.92, 0.54),
    ],
)
def test_coverage_where_neighbours_are_alike(correlation, blocks, least, most, at_most_if_not_widened):
    """What ``widened`` promises. A share of 2,000 runs is known to within 2%."""
    generator = numpy.random.default_rng([blocks, int(10 * correlation)])
    old, new = autoregressive(generator, correlation, blocks), autoregressive(generator, correlation, blocks) + 0.3
    plain = wide = 0
    for before, after in zip(old.tolist(), new.tolist(), strict=True):
        found = shift(before, after, 0.95)
        plain += found.low <= 0.3 <= found.high
        found = widened(found, autocorrelation(before, after))
        wide += found.low <= 0.3 <= found.high
    print(f"correlation {correlation}, {blocks} blocks: {wide / RUNS:.1%} covered, {plain / RUNS:.1%} if not widened")
    assert least <= wide / RUNS <= most
    assert plain / RUNS <= at_most_if_not_widened


@given(old=VALUES, new=VALUES, by=st.integers(-500, 500).map(float))
def test_moving_the_new_sample_moves_all_of_it(old, new, by):
    before, after = shift(old, new, 0.95), shift(old, [value + by for value in new], 0.95)
    assert after == (before.estimate + by, before.low + by, before.high + by)


@given(old=VALUES, new=VALUES)
def test_exchanging_the_samples_changes_only_the_sign(old, new):
    there, back = shift(old, new, 0.95), shift(new, old, 0.95)
    assert (-back.estimate, -back.high, -back.low) == there


@given(old=VALUES, new=VALUES, random=st.randoms(use_true_random=False))
def test_the_order_of_values_does_not_matter_and_the_estimate_lies_within(old, new, random):
    found = shift(old, new, 0.95)
    assert found.low <= found.estimate <= found.high
    assert shift(random.sample(old, len(old)), random.sample(new, len(new)), 0.95) == found
