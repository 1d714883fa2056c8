"""Who gets more trials."""

from __future__ import annotations

import pytest
from envkit.tuning.halving import promoted


def ranked(count):
    """Candidates 0 to count - 1, the first the best."""
    return {number: -float(number) for number in range(count)}


@pytest.mark.parametrize(("count", "going"), [(2, []), (3, [0]), (5, [0]), (6, [0, 1]), (9, [0, 1, 2])])
def test_the_better_third_goes_up(count, going):
    scores = ranked(count)
    assert promoted(scores, dict.fromkeys(scores, 0), dict.fromkeys(scores, 1), (1, 3)) == dict.fromkeys(going, 1)


def test_who_went_up_before_counts_among_the_third_and_does_not_go_up_again():
    scores = ranked(6)
    rung_of = {**dict.fromkeys(scores, 0), 1: 1}
    trials = {**dict.fromkeys(scores, 1), 1: 3}
    assert promoted(scores, rung_of, trials, (1, 3)) == {0: 1}
    assert promoted(scores, {**rung_of, 0: 1}, trials, (1, 3)) == {}


def test_nobody_goes_up_before_all_trials_of_the_rung_are_there():
    scores = ranked(3)
    assert promoted(scores, dict.fromkeys(scores, 1), dict.fromkeys(scores, 2), (1, 3, 9)) == {}
    assert promoted(scores, dict.fromkeys(scores, 1), dict.fromkeys(scores, 3), (1, 3, 9)) == {0: 2}


def test_nobody_goes_up_from_the_last_rung():
    scores = ranked(9)
    assert promoted(scores, dict.fromkeys(scores, 1), dict.fromkeys(scores, 30), (1, 3)) == {}


def test_what_failed_has_no_score_and_takes_nobody_s_place():
    scores = ranked(7)
    del scores[0]
    rung_of, trials = dict.fromkeys(range(7), 0), dict.fromkeys(range(7), 1)
    assert promoted(scores, rung_of, trials, (1, 3)) == {1: 1, 2: 1}
