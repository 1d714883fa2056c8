"""Simulated races: they choose a profile near the best, and their winner is claimed no more often than promised."""

from __future__ import annotations

import math

import pytest
from envkit.bench.race import halvings
from envkit.stats.interval import ERROR_RATE

from benchmarks.race import GAINS, Case, false_claims, rates

RUNS = 400


@pytest.mark.parametrize(("blocks", "near"), [(2, 0.92), (4, 0.95)])
def test_a_race_chooses_a_profile_near_the_best(blocks, near):
    gains = GAINS["far apart"]
    assert rates(Case(gains, halvings(len(gains), blocks), 0.08), RUNS).near >= near


def test_more_blocks_choose_better():
    gains = GAINS["close"]
    short, long = (rates(Case(gains, halvings(len(gains), blocks), 0.11), RUNS).regret for blocks in (1, 6))
    assert long < short


@pytest.mark.parametrize("noise", ["normal", "bursts"])
def test_fresh_samples_keep_the_error_rate_and_those_of_the_race_do_not(noise):
    runs, rate = 1500, ERROR_RATE / 2
    fresh, raced = false_claims(noise, runs)
    assert fresh <= rate + 2 * math.sqrt(rate * (1 - rate) / runs)
    assert raced > 2 * rate
