"""What is proposed next, from candidates whose scores are known."""

from __future__ import annotations

import random

import pytest
from envkit.tuning.proposals import STARTUP, promoted, propose

from tests.tuning.planted import read_space

SPACE = """\
parameters:
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000, 5000, 10000, 20000]}
  allocator: {variable: MALLOC_ARENA_MAX, values: [unset, 1, 2]}
"""

COUNTS = (
    "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_", "OMP_MAX_ACTIVE_LEVELS", "OMP_NUM_THREADS",
)  # fmt: skip


@pytest.mark.parametrize(("failures", "tried"), [(0, True), (1, True), (2, False)])
def test_a_level_of_which_several_failed_and_none_ran_is_not_predicted_to_be_good(tmp_path, failures, tried):
    space = read_space(tmp_path, SPACE)
    spins = list(next(parameter for parameter in space.parameters if parameter.name == "spin").levels)
    known = [({"spin": spin, "allocator": "unset"}, 0.1) for spin in spins[:STARTUP]]
    known += [({"spin": spin, "allocator": "1"}, 0.0) for spin in spins[:STARTUP]]
    known += [({"spin": spin, "allocator": "2"}, None) for spin in spins[:failures]]
    done = [choice for choice, _ in known] + [{"spin": spins[-1], "allocator": "unset"}]
    (first,) = propose(space, known, lambda choice: choice not in done, 1, seed=1)
    assert (first["allocator"] == "2") == tried


def test_of_a_space_too_large_to_look_at_all_of_it_the_best_of_all_parameters_is_predicted_at_once(tmp_path):
    """Also where no choice that was tried is near it."""
    lines = [f"  {name.lower()}: {{variable: {name}, values: [unset, 1, 2, 3]}}\n" for name in COUNTS]
    text = "parameters:\n" + "".join(lines)
    space = read_space(tmp_path, text)
    chance = random.Random(7)
    drawn = [{one.name: chance.choice(list(one.levels)) for one in space.parameters} for _ in range(100)]
    best, *others = drawn
    agree = [sum(best[name] == level for name, level in choice.items()) for choice in others]
    known = [(choice, 0.1 * number) for choice, number in zip(others, agree, strict=True) if number <= 4]
    tried = [choice for choice, _ in known]
    (first,) = propose(space, known, lambda choice: choice not in tried, 1, seed=1)
    assert first == best


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
