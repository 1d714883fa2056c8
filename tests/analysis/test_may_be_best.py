"""Which of several arms can't be told from the fastest."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy
import pytest
from envkit.analysis.intervals import Intervals
from envkit.bench.arms import Arm
from envkit.bench.decide import PLANNED
from envkit.stats.interval import ERROR_RATE, speedup
from envkit.stats.sequential import design

from tests.records import conclude
from tests.report.planted import OTHER_LOSSES, busy, disturbed
from tests.reports import events_of, printed
from tests.simulation import times

MARGIN = 0.02
BASELINE = Arm("baseline", "baseline", "local")


class Simulated(Intervals):
    """The speedup of each arm from its times alone."""

    def of(self, arm, role):
        return speedup(self.run.block_ratios(arm, reference=BASELINE), ERROR_RATE, MARGIN)


def chosen(gains, deviation, blocks, random):
    """Return the arms that may be the best in one simulated run; ``gains`` are by arm."""
    log_s = {BASELINE.name: random.normal(0, deviation, blocks)}
    log_s |= {arm: random.normal(-math.log(gain), deviation, blocks) for arm, gain in gains.items()}
    arms = [Arm(name, name, "local") for name in gains]
    run = SimpleNamespace(
        design=design(blocks, len(gains)),
        ended=PLANNED,
        dropped={},
        study=SimpleNamespace(stopping=SimpleNamespace(margin=MARGIN), reference=BASELINE),
        block_ratios=lambda arm, reference: [*(log_s[reference.name] - log_s[arm.name])],
    )
    return [arm.name for arm in Simulated(run, {*gains}).may_be_best(arms)]


@pytest.mark.parametrize(
    "gains",
    [
        {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0, "f": 1.0},
        {"a": 1.5, "b": 1.45, "c": 1.4, "d": 1.2, "e": 1.02, "f": 1.0},
    ],
)
def test_the_fastest_is_missing_in_at_most_5_percent_of_runs(gains):
    random, runs = numpy.random.default_rng(1), 400
    missed = sum("a" not in chosen(gains, 0.11, 20, random) for _ in range(runs))
    assert missed / runs <= ERROR_RATE


def test_those_that_are_far_from_the_fastest_are_told_from_it():
    random = numpy.random.default_rng(2)
    for _ in range(20):
        assert chosen({"slow": 1.1, "fast": 2.0, "near": 1.99}, 0.05, 20, random)[:1] != ["slow"]
        assert "slow" not in chosen({"slow": 1.1, "fast": 2.0, "near": 1.99}, 0.05, 20, random)


def test_the_report_names_them():
    near = {"near": {"seconds": [*reversed(times(0.5))]}, "far": {"seconds": times(0.9)}, "same": {}}
    events = events_of(12, mine={"seconds": times(0.5)}, others=near)
    assert sorted(conclude(events).may_be_best) == ["mine", "near"]
    assert "Best      can't be told from the fastest: " in printed(events)


def test_one_that_is_fastest_beyond_doubt_needs_no_line():
    events = events_of(12, mine={"seconds": times(0.5)}, others={"far": {"seconds": times(0.9)}, "same": {}})
    assert conclude(events).may_be_best == ["mine"]
    assert "Best " not in printed(events)


def test_a_run_that_has_not_ended_has_none():
    events = events_of(12, others={"same": {}}, ended=None)
    assert conclude(events).may_be_best == []


def test_what_nobody_can_rely_on_is_not_among_them():
    """The fastest has other losses, and the next was measured beside a load."""
    others = {"near": {"seconds": [*reversed(times(0.5))]}, "learns": {"seconds": times(0.4), **OTHER_LOSSES}}
    events = events_of(12, mine={"seconds": times(0.5)}, others=others)
    assert sorted(conclude(events).may_be_best) == ["mine", "near"]
    assert conclude(disturbed(events, *range(12), arm="near")).may_be_best == ["mine"]
    assert conclude(busy(events)).may_be_best == []


def test_where_nothing_is_faster_there_is_no_best():
    assert conclude(events_of(12, mine={"seconds": times(1.5)}, others={"same": {}})).may_be_best == []
