"""Simulated runs with many profiles: the right one is chosen, and no more is claimed than promised."""

from __future__ import annotations

import math

import numpy
import pytest
from envkit.stats.interval import ERROR_RATE
from envkit.stats.sequential import at_end, at_look, design, stretched
from envkit.stats.verdict import Verdict

from benchmarks.selection import (
    CAUTIONED,
    CONSTANT,
    GAINS,
    IN_BURSTS,
    VARIES,
    VARYING,
    Case,
    false_claims,
    log_effects,
    rates,
)

MARGIN = 0.02
RUNS = 300
CLAIMS = (Verdict.FASTER, Verdict.SLOWER)


def chance(runs):
    """Two standard deviations of a share of 5%."""
    return 2 * math.sqrt(ERROR_RATE * (1 - ERROR_RATE) / runs)


@pytest.mark.parametrize("noise", ["normal", "bursts"])
@pytest.mark.parametrize("gains", [(1.5, 1.5, 1.0, 1.0, 1.0, 1.0, 1.0), (1.0, 1.0), (1.0,) * 7])
def test_no_more_false_claims_than_promised_and_the_fastest_stays(gains, noise):
    found = rates(Case(gains, 20, 0.11, drops=True, noise=noise), RUNS)
    assert found.false_claims <= ERROR_RATE + chance(RUNS)
    assert found.of_all.lost <= ERROR_RATE + chance(RUNS)


def test_the_time_of_dropped_arms_makes_the_leader_s_interval_narrower():
    kept, dropped = (rates(Case(GAINS, 20, 0.11, drops=drops), RUNS // 2) for drops in (False, True))
    assert dropped.half_width < 0.9 * kept.half_width
    assert dropped.of_all.right >= kept.of_all.right
    assert dropped.of_all.lost <= ERROR_RATE
    assert (kept.share, dropped.share) == pytest.approx((1, 1), abs=0.02)


def test_runs_that_stop_early_choose_a_profile_near_the_best():
    found = rates(Case(GAINS, 30, 0.08, drops=True, precision=None), RUNS // 2)
    assert found.of_all.near >= 0.95
    assert found.share < 1


def test_the_fastest_without_a_caution_stays_beside_a_faster_one_with_one():
    """A run that drops arms keeps two leaders, and ends early once both are known."""
    one, two = (
        rates(Case(GAINS, 45, 0.11, drops=True, precision=None, cautioned=cautioned), RUNS // 2)
        for cautioned in (frozenset(), CAUTIONED)
    )
    assert two.of_supported.lost <= ERROR_RATE + chance(RUNS // 2)
    assert two.of_all.lost <= ERROR_RATE + chance(RUNS // 2)
    assert two.of_supported.right >= 0.85
    assert one.of_all == one.of_supported
    assert one.share <= two.share < 1


@pytest.mark.parametrize("effects", [CONSTANT, VARIES])
def test_all_intervals_of_95_percent_of_runs_hold_the_truth(effects):
    found = rates(Case(GAINS, 30, 0.11, drops=True, effects=effects, precision=None), RUNS)
    assert found.all_covered >= 1 - ERROR_RATE - chance(RUNS)
    assert found.found == 1
    assert found.share < 0.8


def test_a_run_knows_its_leader_in_two_thirds_of_the_time():
    before, today = (
        rates(Case(GAINS, 45, 0.11, drops=drops, precision=precision), 60)
        for drops, precision in ((False, 0.04), (True, None))
    )
    assert today.share <= 2 / 3 * before.share
    assert today.of_all.near >= 0.95


@pytest.mark.parametrize(("effects", "mean"), [(CONSTANT, 1.0), (VARIES, 1.0), (IN_BURSTS, 1.2)])
def test_effects_differ_from_block_to_block(effects, mean):
    drawn = log_effects(effects, numpy.array([0.2, 0.0]), 100_000, numpy.random.default_rng(1))
    assert drawn[:, 0].mean() == pytest.approx(0.2 * mean, abs=0.002)
    assert numpy.median(drawn[:, 0]) == pytest.approx(0.2, abs=0.002)
    assert drawn[:, 1].std() == pytest.approx(VARYING if effects == VARIES else 0.0, abs=0.001)


def test_the_estimand_lies_between_the_median_effect_and_the_mean_one():
    little, much = (Case((1.2,), 30, deviation, True, effects=IN_BURSTS).log_speedups[0] for deviation in (0.02, 0.2))
    assert math.log(1.2) < little < much < 1.22 * math.log(1.2)
    assert Case((1.2,), 30, 0.2, True, effects=VARIES).log_speedups == (math.log(1.2),)


def claims(random):
    """Return whether a run claims an effect that is not there, and grows just where the arm looks good."""
    ratios, fixed = random.normal(0, 0.16, 40), design(20, 1)
    for number in range(len(fixed.looks) - 1):
        blocks = fixed.looks[number]
        look = at_look(fixed, list(ratios[:blocks]), MARGIN)
        if look is not None and look.verdict in CLAIMS:
            return True
        if fixed.planned == 20 and ratios[:blocks].mean() > 0.03:
            fixed = stretched(fixed, blocks, 40)
    return at_end(fixed, list(ratios[: fixed.planned]), MARGIN, stopped_early=False).verdict in CLAIMS


def test_a_run_that_grows_where_ratios_are_high_keeps_the_error_rate():
    random, runs = numpy.random.default_rng(3), 2000
    assert sum(claims(random) for _ in range(runs)) / runs <= ERROR_RATE + chance(runs)


def test_a_second_baseline_claims_what_is_not_there():
    assert false_claims("bursts", 45, second=False, tests=2000) <= ERROR_RATE + chance(2000)
    assert false_claims("bursts", 45, second=True, tests=2000) > 1.5 * ERROR_RATE
