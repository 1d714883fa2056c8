from __future__ import annotations

import itertools
import math

import numpy
import pytest
import scipy
from envkit.stats import interval
from envkit.stats.interval import MIN_BLOCKS, Speedup, attained_rate, log_ratios, speedup, walsh_averages
from envkit.stats.verdict import Verdict
from hypothesis import given
from hypothesis import strategies as st

RATIOS = st.lists(st.integers(-1000, 1000).map(lambda value: value / 1000), min_size=MIN_BLOCKS, max_size=14)


def close(found, ratio, low, high):
    return (found.ratio, found.low, found.high) == pytest.approx((ratio, low, high), rel=1e-9)


def test_a_worked_example():
    """Six blocks: P(W = 0) is 1/64, so both limits are the outermost averages: the smallest and the largest ratio."""
    ratios = log_ratios([1.0, 1.1, 1.2, 1.3, 1.4, 1.6], [1.0] * 6)
    averages = sorted(math.log(one * other) / 2 for one, other in itertools.combinations_with_replacement(
        [1.0, 1.1, 1.2, 1.3, 1.4, 1.6], 2))  # fmt: skip
    found = speedup(ratios, 0.05, 0.02)
    assert close(found, math.exp(averages[10]), 1.0, 1.6)
    assert (found.blocks, found.margin) == (6, 0.02)
    assert found.half_width == pytest.approx(0.3 / found.ratio)


def test_eight_blocks_leave_three_averages_out_at_each_end():
    """2 P(W <= 3) = 2 * 5/256 is 3.9% and 2 P(W <= 4) = 2 * 7/256 is 5.5%: so the fourth from each end."""
    ratios = [0.01 * value for value in (1, 2, 4, 8, 16, 32, 64, 128)]
    averages = walsh_averages(ratios)
    assert len(averages) == 36
    found = speedup(ratios, 0.05, 0.02)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((averages[3], averages[-4]))
    assert attained_rate(8, 0.05) == pytest.approx(10 / 256)


@pytest.mark.parametrize("blocks", [6, 7, 8, 10])
@pytest.mark.parametrize("rate", [0.05, 0.02])
def test_the_interval_misses_exactly_as_often_as_it_says(blocks, rate):
    """All signs that blocks without a difference can have are equally likely; each of them is tried."""
    sizes = [2.0**-place for place in range(blocks)]
    missed = 0
    for signs in itertools.product((-1, 1), repeat=blocks):
        found = speedup([sign * size for sign, size in zip(signs, sizes, strict=True)], rate, 0.02)
        missed += found is not None and not found.low <= 1 <= found.high
    assert missed / 2**blocks == pytest.approx(attained_rate(blocks, rate))
    assert missed / 2**blocks <= rate


@pytest.mark.parametrize("blocks", [7, 12, 30])
def test_it_agrees_with_the_test_that_it_inverts(blocks):
    """A speedup just inside the interval is not rejected by the signed-rank test, one just outside is."""
    ratios = numpy.random.default_rng(blocks).normal(0.1, 0.05, blocks)
    found = speedup(list(ratios), 0.05, 0.02)
    for limit, outwards in ((found.low, -1e-9), (found.high, 1e-9)):
        inside, outside = (
            scipy.stats.wilcoxon(ratios - (math.log(limit) + step), method="exact").pvalue
            for step in (-outwards, outwards)
        )
        assert outside <= 0.05 < inside


def test_blocks_that_differ_much_do_not_matter_when_the_ratio_is_the_same():
    reference = [2.0, 20.0, 4.0, 8.0, 6.0, 100.0]
    found = speedup(log_ratios(reference, [second / 2 for second in reference]), 0.05, 0.02)
    assert close(found, 2.0, 2.0, 2.0)
    assert found.verdict == Verdict.FASTER


@pytest.mark.parametrize(
    ("ratio", "low", "overstated"),
    [(1.10, 1.02, True), (1.10, 1.06, False), (1.10, 0.99, False), (0.90, 0.80, False), (2.0, 1.99, False)],
)
def test_a_gain_whose_interval_begins_near_1_may_be_overstated(ratio: float, low: float, overstated: bool):
    assert Speedup(ratio, low, 1.2, 20, 0.02).may_be_overstated == overstated


def test_one_wild_block_moves_little():
    calm = speedup(log_ratios([1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.005, 0.995], [1.0] * 8), 0.05, 0.02)
    wild = speedup(log_ratios([50.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.005, 0.995], [1.0] * 8), 0.05, 0.02)
    assert wild.ratio == pytest.approx(calm.ratio, abs=0.01)


@pytest.mark.parametrize("blocks", range(MIN_BLOCKS))
def test_too_few_blocks_for_an_interval(blocks):
    assert speedup([0.5] * blocks, 0.05, 0.02) is None
    assert attained_rate(blocks, 0.05) == 0


@pytest.mark.parametrize(("rate", "fewest"), [(0.05, 6), (0.05 / 2, 7), (0.05 / 3, 7), (0.05 / 4, 8), (0.001, 11)])
def test_a_stricter_rate_needs_more_blocks(rate, fewest):
    assert speedup([0.5] * (fewest - 1), rate, 0.02) is None
    assert speedup([0.5] * fewest, rate, 0.02) is not None


def test_a_stricter_rate_gives_a_wider_interval():
    ratios = list(numpy.random.default_rng(1).normal(0, 0.1, 12))
    wide, narrow = speedup(ratios, 0.01, 0.02), speedup(ratios, 0.1, 0.02)
    assert wide.low < narrow.low <= narrow.ratio <= narrow.high < wide.high
    assert wide.ratio == narrow.ratio


def test_many_blocks_take_the_normal_approximation_and_give_nearly_the_same(monkeypatch):
    ratios = list(numpy.random.default_rng(2).normal(0, 0.1, 120))
    exact = speedup(ratios, 0.05, 0.02)
    monkeypatch.setattr(interval, "EXACT_BLOCKS", 100)
    interval.ranks_outside.cache_clear()
    approximate = speedup(ratios, 0.05, 0.02)
    interval.ranks_outside.cache_clear()
    assert approximate.ratio == exact.ratio
    assert (approximate.low, approximate.high) == pytest.approx((exact.low, exact.high), abs=0.0005)


def test_unpaired_times_are_refused():
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        log_ratios([1.0] * 7, [1.0] * 6)


@pytest.mark.parametrize(
    ("low", "high", "margin", "words"),
    [
        (1.01, 1.2, 0.02, "faster"),
        (1.001, 1.01, 0.02, "faster"),
        (0.8, 0.99, 0.02, "slower"),
        (0.9, 1.1, 0.02, "no difference found"),
        (1.0, 1.2, 0.02, "no difference found"),
        (0.8, 1.0, 0.02, "no difference found"),
        (0.99, 1.01, 0.02, "no difference larger than 2%"),
        (0.99, 1.01, 0.005, "no difference found"),
        (0.99, 1.02, 0.02, "no difference found"),
        (0.985, 1.02, 0.025, "no difference larger than 2.5%"),
        # a profile that takes 2% longer has the ratio 1 / 1.02
        (1 / 1.02, 1.01, 0.02, "no difference found"),
        (0.981, 1.01, 0.02, "no difference larger than 2%"),
    ],
)
def test_verdict_by_what_the_interval_leaves_out(low, high, margin, words):
    found = Speedup((low + high) / 2, low, high, 6, margin)
    assert found.words == words
    assert (found.verdict == Verdict.EQUIVALENT) == words.startswith("no difference larger")
    assert found.decided == (words != "no difference found")


@pytest.mark.parametrize(
    ("settled", "words"),
    [(None, "faster"), (Verdict.SLOWER, "slower"), (Verdict.EQUIVALENT, "no difference larger than 2.5%")],
)
def test_what_a_look_settled_is_the_verdict_and_plain_text_in_documents(settled, words):
    found = Speedup(1.01, 1.001, 1.02, 8, 0.025, settled)
    assert (found.verdict, found.words) == (settled or Verdict.FASTER, words)
    fields = {"ratio": 1.01, "low": 1.001, "high": 1.02, "blocks": 8, "margin": 0.025}
    assert found.to_json() == {**fields, "settled": settled and words}
    assert type(found.to_json()["settled"]) is type(settled and words)


@given(ratios=RATIOS, by=st.integers(-500, 500).map(lambda value: value / 1000))
def test_a_profile_that_is_faster_by_some_factor_moves_all_by_it(ratios, by):
    before = speedup(ratios, 0.05, 0.02)
    after = speedup([ratio + by for ratio in ratios], 0.05, 0.02)
    factor = math.exp(by)
    assert close(after, before.ratio * factor, before.low * factor, before.high * factor)


@given(ratios=RATIOS)
def test_exchanging_profile_and_reference_turns_all_round(ratios):
    there, back = speedup(ratios, 0.05, 0.02), speedup([-ratio for ratio in ratios], 0.05, 0.02)
    assert close(back, 1 / there.ratio, 1 / there.high, 1 / there.low)


@given(ratios=RATIOS, random=st.randoms(use_true_random=False))
def test_the_order_of_blocks_does_not_matter_and_the_estimate_lies_within(ratios, random):
    found = speedup(ratios, 0.05, 0.02)
    assert min(map(math.exp, ratios)) * (1 - 1e-9) <= found.low <= found.ratio <= found.high
    assert speedup(random.sample(ratios, len(ratios)), 0.05, 0.02) == found
