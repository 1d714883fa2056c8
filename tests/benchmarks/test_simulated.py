"""The proof that intervals and verdicts are right: 2,000 simulated runs for each kind of noise and planted effect."""

from __future__ import annotations

import math

import pytest
from envkit.stats.power import POWER

from benchmarks.selection import VARIES
from benchmarks.simulated import NOISES, RUNS, power, rates, run

# Which tell a power of 80% to within 3.3% (two standard deviations); `make simulated` takes RUNS.
POWER_RUNS = 600
PLANNED = 13
# An interval at the end of PLANNED blocks has a nominal rate of 3.88%, and one of 8 blocks in a run that stopped early
# has 3%. Ranks are whole numbers, so these miss in 3.27% and 2.34% (Wilcoxon's exact distribution).
AT_END, EARLY = 1 - 0.0327, 1 - 0.0234


def chance(share):
    """Return what chance adds to a share in so many runs: two standard deviations."""
    return 2 * math.sqrt(share * (1 - share) / RUNS)


# An effect moves all of an interval, so more of them would show little more; `make simulated` has five.
@pytest.mark.parametrize("effect", [0.0, 0.2])
@pytest.mark.parametrize("noise", NOISES)
def test_interval_covers_the_truth_as_often_as_it_says(noise, effect):
    seen = rates(NOISES[noise], effect, RUNS, PLANNED)
    most = AT_END if seen.blocks > PLANNED - 0.1 else EARLY
    assert 0.95 - chance(0.95) <= seen.covered <= most + chance(most)
    assert seen.excluded <= 0.025 + chance(0.025)
    if effect == 0:
        assert seen.claimed <= 0.05 + chance(0.05)
    if effect == 0.2:
        assert seen.claimed > 0.5


def test_an_effect_that_varies_from_block_to_block_is_covered_as_often():
    runs = RUNS // 4
    reported = [run(NOISES["independent"], 0.2, seed, PLANNED, effects=VARIES)[0] for seed in range(runs)]
    covered = sum(speedup.low <= 1.2 <= speedup.high for speedup in reported) / runs
    assert covered >= 0.95 - 2 * chance(0.95)  # a quarter of the runs


@pytest.mark.parametrize(
    ("noise", "difference"), [("quiet", 0.01), *((noise, 0.05) for noise in NOISES if noise != "quiet")]
)
def test_plan_keeps_its_promise(noise, difference):
    found, _ = power(NOISES[noise], difference, POWER_RUNS)
    assert abs(found - POWER) <= 0.05
