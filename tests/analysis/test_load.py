"""Other programs that take much of the machine beside a verdict."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from envkit.analysis.load import Load, neighbours
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
