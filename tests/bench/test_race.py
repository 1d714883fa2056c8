"""Plans of races: how many blocks they have, and how many steps a sample times."""

from __future__ import annotations

import pytest
from envkit.bench import race
from envkit.bench.arms import Arm
from envkit.bench.race import halvings, plan, sample_steps, samples_of
from envkit.bench.study import StoppingRule, Study
from envkit.stats.selection import slower_half, standings


@pytest.mark.parametrize(
    ("arms", "after", "samples"),
    [(6, (2, 6, 12), 36), (5, (2, 5, 10), 29), (4, (2, 6), 16), (3, (2, 5), 12), (2, (2,), 4), (1, (), 0)],
)
def test_half_of_the_arms_leave_and_rounds_have_equally_many_samples(arms, after, samples):
    assert (halvings(arms, 2), samples_of(arms, after)) == (after, samples)
    assert halvings(4, 2, equal_samples=False) == (2, 4)


def test_a_race_takes_at_most_half_of_the_time_if_it_can():
    assert plan(4, 0.5, 180.0).halvings == halvings(4, race.MOST_BLOCKS)
    assert plan(4, 4.0, 160.0).halvings == (2, 6)
    assert plan(4, 6.5, 160.0).halvings == (2, 4)
    slow = plan(4, 40.0, 160.0)
    assert slow.halvings == (2, 4)
    assert slow.total_s > 160.0
    assert plan(9, 1.0, 180.0).arms == race.MOST


@pytest.mark.parametrize("arms", [2, 4, 5, 6])
@pytest.mark.parametrize("sample_s", [1.0, 4.0, 40.0])
def test_a_race_whose_samples_take_as_long_as_planned_has_the_time_for_all_blocks(arms, sample_s):
    names = [f"profile-{number}" for number in range(arms)]
    base = Study("advise", StoppingRule(180.0)).with_arms([Arm("baseline", "baseline", "local")])
    planned = plan(arms, sample_s, 163.0)
    rule = race.race_of(base, names, planned).stopping
    assert rule.budget_s >= samples_of(arms, rule.halvings) * sample_s
    assert rule.timeout_s >= 10 * sample_s


def test_three_minutes_are_enough_for_a_training_that_starts_in_five_seconds():
    watched_s, sample_s = 17.0, 5.0 + 1.5
    assert watched_s + plan(4, sample_s, 180.0 - watched_s).least_s <= 190.0


def test_a_sample_times_no_more_steps_than_were_watched():
    assert sample_steps(0.1, 1.0, watched=90) == 15
    assert sample_steps(0.1, 40.0, watched=90) == 90, "a slow start makes longer samples worthwhile"
    assert sample_steps(2.0, 1.0, watched=20) == race.FEWEST_STEPS
    assert sample_steps(2.0, 1.0, watched=4) == 4


def test_steps_that_get_longer_change_no_number_of_steps():
    """The pace is that of the watched steps, in the middle; samples time the first steps, which are shorter."""
    assert sample_steps(0.3, 1.0, watched=30) == 6


RATIOS = {"first": [0.0, 0.0, 0.0], "fast": [0.5, 0.6, 0.4], "slow": [-0.2, -0.1, -0.3], "near": [0.4, 0.5, 0.4]}


def test_standings_begin_with_the_fastest_and_do_not_depend_on_the_reference():
    assert list(standings(RATIOS)) == ["fast", "near", "first", "slow"]
    others = {
        arm: [one - of_fast for one, of_fast in zip(values, RATIOS["fast"], strict=True)]
        for arm, values in RATIOS.items()
    }
    assert standings(others) == pytest.approx(standings(RATIOS))


def test_of_an_odd_number_the_arm_in_the_middle_stays():
    assert slower_half(RATIOS) == ["first", "slow"]
    assert slower_half({name: RATIOS[name] for name in ("fast", "slow", "near")}) == ["slow"]
    assert slower_half({"fast": RATIOS["fast"]}) == []


@pytest.mark.parametrize(
    ("ruled_out", "leaving"),
    [
        (("fast",), ["slow", "fast"]),
        (("fast", "near", "first"), ["fast", "near", "first"]),
        (tuple(RATIOS), ["first", "slow"]),
        (("another",), ["first", "slow"]),
    ],
)
def test_arms_that_are_ruled_out_leave_first_unless_no_other_is_left(ruled_out, leaving):
    assert slower_half(RATIOS, ruled_out) == leaving
