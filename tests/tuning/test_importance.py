"""Are the parameters that matter found, where it is known which do?"""

from __future__ import annotations

import itertools
import math
import random

import pytest
from envkit.tuning.importance import importance
from envkit.tuning.space import choices

from tests.tuning.planted import read_space

TEXT = """parameters:
  allocator: {choices: {glibc: , jemalloc: {preload: [jemalloc]}}}
  thp: {when: {allocator: [jemalloc]}, variable: MALLOC_CONF, key: thp, values: [unset, always]}
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000]}
  dynamic: {variable: OMP_DYNAMIC, values: [unset, true]}
  bind: {variable: OMP_PROC_BIND, values: [unset, close]}
"""
EFFECTS = {("allocator", "jemalloc"): 0.2, ("thp", "always"): 0.15, ("spin", "0"): -0.05}


@pytest.fixture
def space(tmp_path):
    return read_space(tmp_path, TEXT)


def found(space, candidates=30, seed=1):
    chance = random.Random(seed)
    tried = chance.sample(list(choices(space)), candidates)
    scores = [sum(EFFECTS.get(pair, 0.0) for pair in choice.items()) + chance.gauss(0, 0.02) for choice in tried]
    return {one.parameter: one for one in importance(space, tried, scores)}


def test_parameters_come_in_the_order_of_what_they_explain(space):
    ranked = found(space)
    assert list(ranked)[:2] == ["allocator", "thp"]
    assert ranked["allocator"].low > 0.2
    assert ranked["thp"].low > 0


def test_a_parameter_that_does_nothing_explains_nothing(space):
    for seed in range(5):
        ranked = found(space, seed=seed)
        for parameter in ("dynamic", "bind"):
            assert 0 <= ranked[parameter].low < 0.01
            assert 0 <= ranked[parameter].share < 0.03
            assert ranked[parameter].worth_low < 1.01


def test_what_the_best_level_is_worth_is_said_with_an_interval_that_holds_the_truth(space):
    held = 0
    for seed in range(10):
        ranked = found(space, seed=seed)
        assert ranked["spin"].first == "unset"
        assert ranked["spin"].best in ("unset", "1000")
        for parameter, level, truth in (("allocator", "jemalloc", 0.2), ("thp", "always", 0.15)):
            one = ranked[parameter]
            assert one.best == level
            held += one.worth_low < math.exp(truth) < one.worth_high
            assert one.worth_high / one.worth_low < 1.3
    assert held >= 17  # of 20, at 95% each


def test_the_best_of_many_levels_that_do_nothing_is_not_said_to_be_worth_something(tmp_path):
    text = "parameters:\n" + "".join(
        f"  {name}: {{variable: {name}, values: [{', '.join(map(str, range(8)))}]}}\n"
        for name in ("GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    )
    space = read_space(tmp_path, text)
    wrong = 0
    for seed in range(60):
        chance = random.Random(seed)
        tried = chance.sample(list(choices(space)), 24)
        ranked = importance(space, tried, [chance.gauss(0, 0.05) for _ in tried])
        assert len(ranked) == 2
        wrong += sum(one.worth_low > 1 for one in ranked)
    assert wrong <= 9  # of 120, at 95% each


def test_it_is_the_same_each_time_and_silent_about_few_candidates(space):
    assert found(space) == found(space)
    assert found(space, candidates=7) == {}
    few = list(itertools.islice(choices(space), 1)) * 9
    assert importance(space, few, [0.1] * 9) == []
