"""How much higher each level scores than its parameter's first one, and how surely that is known."""

from __future__ import annotations

import random

import pytest
from envkit.tuning.main_effects import over_first
from envkit.tuning.space import choices

from tests.tuning.planted import read_space

TEXT = """parameters:
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000]}
  dynamic: {variable: OMP_DYNAMIC, values: [unset, true]}
  bind: {variable: OMP_PROC_BIND, values: [unset, close]}
"""
WORTH = {("spin", "0"): -0.05, ("spin", "1000"): 0.2, ("bind", "close"): 0.1}
NOISE = 0.01


@pytest.mark.parametrize("seed", range(5))
def test_planted_effects_are_within_a_few_standard_errors_which_are_as_small_as_the_noise(tmp_path, seed):
    chance, space = random.Random(seed), read_space(tmp_path, TEXT)
    tried = 3 * list(choices(space))
    scores = [sum(WORTH.get(pair, 0.0) for pair in choice.items()) + chance.gauss(0, NOISE) for choice in tried]
    effects = over_first(space, tried, scores)
    assert {("spin", "1000"), ("dynamic", "true"), ("bind", "close")} <= effects.keys()
    for (parameter, level), (worth, error) in effects.items():
        if level != next(iter(next(one.levels for one in space.parameters if one.name == parameter))):
            assert 0 < error < NOISE
            assert worth == pytest.approx(WORTH.get((parameter, level), 0.0), abs=4 * error)
