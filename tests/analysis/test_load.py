"""Other programs that take much of the machine beside a verdict."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy
import pytest
from envkit.analysis.load import CHANCE, Load, in_disturbed, load, neighbours
from envkit.analysis.messages import CPUS_HOT, MACHINE_SWAPPED, BesideOtherPrograms, While, WhileStolen
from envkit.checks.interference import HOT, OTHERS, STOLEN, SWAPPED

from tests.analysis.test_noise import others, sample


def measured(block, cpus):
    usage, seconds = sample(**others(cpus))
    return SimpleNamespace(block=block, usage=usage, seconds=seconds)


@pytest.mark.parametrize(
    ("taken", "disturbed"),
    [((1.0, 1.0, 0.5), 2), ((1.0, 0.99, 0.99), None), ((0.5, 2.0, 1.0), 2), ((3.0, 2.0, 1.5), 3)],
)
def test_blocks_count_in_which_others_took_as_much_as_the_limit(taken, disturbed):
    found = neighbours([measured(block, cpus) for block, cpus in enumerate(taken)], None)
    assert (found and (found.blocks, found.of, found.kind)) == (disturbed and (disturbed, 3, OTHERS))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (OTHERS, BesideOtherPrograms(1.5, 4.0)),
        (STOLEN, WhileStolen(1.5, 4.0)),
        (HOT, While(CPUS_HOT)),
        (SWAPPED, While(MACHINE_SWAPPED)),
    ],
)
def test_what_disturbed_a_result_is_told_by_its_kind(kind, message):
    assert Load(7, 8, kind, 1.5, 4.0).message == message


def test_interference_that_changes_the_effect_is_found():
    random = numpy.random.default_rng(1)
    quiet, disturbed = random.normal(math.log(0.9), 0.05, 14), random.normal(math.log(4.0), 0.3, 9)
    found = in_disturbed([*quiet], [*disturbed], 1)
    assert found is not None
    assert found.blocks == 9
    assert found.ratio == pytest.approx(4.0, rel=0.2)


@pytest.mark.parametrize("blocks", [(20, 2), (20, 4), (14, 9), (30, 12)])
@pytest.mark.parametrize("noisier", [1, 3, 5])
def test_interference_that_adds_noise_alone_is_seldom_called_another_effect(blocks, noisier):
    random, runs = numpy.random.default_rng(2), 1000
    claimed = 0
    for _ in range(runs):
        quiet, disturbed = (
            random.normal(0, sd, number) for sd, number in zip((0.1, 0.1 * noisier), blocks, strict=True)
        )
        claimed += in_disturbed([*quiet], [*disturbed], 1) is not None
    assert claimed / runs <= CHANCE


@pytest.mark.parametrize("blocks", [(0, 20), (20, 0), (8, 20), (20, 8)])
def test_too_few_blocks_of_either_kind_tell_nothing(blocks):
    quiet, disturbed = ([0.1 * number for number in range(count)] for count in blocks)
    assert in_disturbed(quiet, [5 + value for value in disturbed], 1) is None


def test_cpus_of_a_load_that_the_whole_training_alone_shows():
    usage = {**others(0.0), "training_s": 3.0, "training_busy_s": 6.0, "training_used_s": 3.0}
    marked = sample(**usage)
    samples = [SimpleNamespace(block=block, usage=marked[0], seconds=marked[1]) for block in range(8)]
    found = load(samples, 8, None)
    assert found is not None
    assert (found.kind, found.cpus) == (OTHERS, 1.0)
