"""The numbers that a record adds when its run goes on: no seal covers them, and workers get them."""

from __future__ import annotations

import pytest
from envkit.bench import resuming
from envkit.bench.record_messages import NoSeconds, NoWholeNumber
from envkit.common.errors import InputError


def study(steps=(200, 200), blocks=26, budget_s=600.0):
    workloads = {name: {"steps": of_one} for name, of_one in zip(("cnn", "mlp"), steps, strict=True)}
    return {"workloads": workloads, "stopping": {"blocks": blocks, "budget_s": budget_s}}


@pytest.mark.parametrize("budget_s", [0, 600, 12.5])
def test_lengths_of_a_recorded_study(budget_s):
    assert resuming.lengths_of(study(budget_s=budget_s)) == (200, 26, budget_s)


@pytest.mark.parametrize("budget_s", [-1, -0.5, float("inf"), float("nan"), True, "600", None])
def test_a_budget_that_is_no_number_of_seconds(budget_s):
    with pytest.raises(resuming.BadNumber) as error:
        resuming.lengths_of(study(budget_s=budget_s))
    assert error.value.message == NoSeconds("budget_s", repr(budget_s))


@pytest.mark.parametrize("number", [-1, 10**8 + 1, 2.0, True, "2", None])
def test_steps_and_blocks_that_are_no_whole_number_in_range(number):
    with pytest.raises(resuming.BadNumber) as error:
        resuming.lengths_of(study(steps=(number, number)))
    assert error.value.message == NoWholeNumber("steps", repr(number), 0, resuming.MOST_STEPS)
    with pytest.raises(resuming.BadNumber) as error:
        resuming.lengths_of(study(blocks=number))
    assert error.value.message == NoWholeNumber("blocks", repr(number), 0, resuming.MOST_BLOCKS)


def test_workloads_of_different_lengths_have_no_common_one():
    with pytest.raises(ValueError, match="too many values"):
        resuming.lengths_of(study(steps=(200, 300)))


@pytest.mark.parametrize("seed", [0, 2**63])
def test_the_smallest_and_the_largest_seed(tmp_path, seed):
    assert resuming.seed_of(tmp_path, {"seed": seed}) == seed


@pytest.mark.parametrize("seed", [-1, 2**63 + 1, 1.0, "1", None])
def test_a_seed_that_is_no_whole_number(tmp_path, seed):
    with pytest.raises(InputError):
        resuming.seed_of(tmp_path, {"seed": seed})
