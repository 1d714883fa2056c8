"""What is proposed next, from candidates whose scores are known."""

from __future__ import annotations

import pytest

from runner.tuning.proposals import STARTUP, propose
from tests.tuning.planted import read_space

SPACE = """\
parameters:
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000, 5000, 10000, 20000]}
  allocator: {variable: MALLOC_ARENA_MAX, values: [unset, 1, 2]}
"""


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
