"""Slow nodes are found, healthy ones are not called slow, and intervals say how far off a node's time may be."""

from __future__ import annotations

import math

import numpy
import pytest
from envkit.cluster.fleet.slow import ERROR_RATE, MIN_NODES, judge, measure
from scipy import stats

from benchmarks.fleet_alarms import NOISES, SPREADS, rates

MARGIN = 0.02


def times(seed, nodes=500, samples=20, noise=0.01, healthy=0.0, slower=None):
    """Samples of nodes, of which ``slower`` (by number) take more time."""
    random = numpy.random.default_rng(seed)
    logs = random.normal(0, noise, (nodes, samples)) + random.normal(0, healthy, (nodes, 1))
    for number, share in (slower or {}).items():
        logs[number] += math.log1p(share)
    return 0.025 * numpy.exp(logs)


def judged(*fleets, margin=MARGIN):
    found, side = judge([measure(fleet) for fleet in fleets], margin)
    return found, side


@pytest.mark.parametrize("noise", NOISES)
def test_hardly_a_healthy_node_is_called_slow_whatever_the_noise(noise):
    found = rates(NOISES[noise], SPREADS["0.5%"], nodes=1000, samples=20, at_least=4000)
    assert found.false_alarms <= ERROR_RATE * found.nodes
    assert found.found[0.25] > 0.9


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("noise", ["normal", "heavy tails"])
def test_hardly_a_healthy_node_is_called_slow_however_healthy_nodes_differ(noise, spread):
    found = rates(NOISES[noise], SPREADS[spread], nodes=1000, samples=20, at_least=4000)
    assert found.false_alarms <= ERROR_RATE * found.nodes
    assert found.found[0.25] > 0.9


@pytest.mark.parametrize(("nodes", "samples"), [(8, 20), (25, 8), (MIN_NODES, 6)])
@pytest.mark.parametrize("spread", ["0.5%", "2%"])
def test_hardly_a_healthy_node_is_called_slow_in_a_small_fleet(nodes, samples, spread):
    found = rates(NOISES["normal"], SPREADS[spread], nodes, samples, at_least=4000)
    assert found.false_alarms <= ERROR_RATE * found.nodes


def test_what_is_planted_is_found_and_its_interval_holds_it():
    planted = {3: 0.08, 77: 0.15, 200: 0.60}
    (found,), _ = judged(times(1, slower=planted))
    assert numpy.nonzero(found.slow)[0].tolist() == list(planted)
    for number, share in planted.items():
        assert found.low[number] < 1 + share < found.high[number]
        assert found.ratio[number] == pytest.approx(1 + share, rel=0.02)


def test_slow_is_who_has_the_whole_interval_beyond_what_is_allowed():
    (found,), side = judged(times(2, slower=dict.fromkeys(range(40), 0.03)))
    assert 0 < found.slow.sum() < 40
    assert (found.slow == (found.low > 1 + found.spread.allowance)).all()
    assert side == pytest.approx(ERROR_RATE * found.slow.sum() / 500)


@pytest.mark.parametrize("samples", [6, 10, 20])
@pytest.mark.parametrize("noise", ["normal", "heavy tails", "skewed", "correlated samples"])
def test_errors_are_as_large_as_they_say(noise, samples):
    """Of healthy nodes without any differences, the share that lies beyond the two-sided 5% limits."""
    logs = NOISES[noise](numpy.random.default_rng(3), 4000, samples)
    found = measure(numpy.exp(logs))
    distance = numpy.abs(found.centre - numpy.median(found.centre)) / found.error
    beyond = float((distance > stats.t.ppf(0.975, found.degrees)).mean())
    assert beyond <= 0.08
    assert beyond >= 0.01


def test_what_healthy_nodes_differ_by_is_told_from_noise():
    (found,), _ = judged(times(4, nodes=4000, noise=0.02, healthy=0.01))
    assert found.spread.between == pytest.approx(0.01, rel=0.1)
    # of the mean of 20 values it would be 0.02 / sqrt(20)
    assert found.spread.noise == pytest.approx(0.0048, rel=0.1)
    assert not found.spread.by_margin
    assert 0.027 <= found.spread.allowance < 0.04
    (found,), _ = judged(times(4, nodes=4000, noise=0.02))
    assert found.spread.between < 0.003
    assert (found.spread.by_margin, found.spread.allowance) == (True, pytest.approx(MARGIN))


def test_some_fast_nodes_do_not_hide_slow_ones():
    """The reach of healthy nodes is limited, however far out the fast side is."""
    slower = dict.fromkeys(range(20), -0.3) | {400: 0.2, 401: 0.2}
    (found,), _ = judged(times(5, healthy=0.005, slower=slower))
    assert numpy.nonzero(found.slow)[0].tolist() == [400, 401]


def test_kinds_are_judged_apart_and_counted_together():
    fast, half_as_fast = times(6, slower={5: 0.2}), 2 * times(7, nodes=100)
    found, side = judged(fast, half_as_fast)
    assert [one.spread.median_s for one in found] == pytest.approx([0.025, 0.05], rel=0.01)
    assert [int(one.slow.sum()) for one in found] == [1, 0]
    assert side == pytest.approx(ERROR_RATE / 600)


def test_too_few_nodes_are_not_judged():
    (found,), _ = judged(times(8, nodes=MIN_NODES - 1, slower={0: 5.0}))
    assert (found.judged, found.slow.any()) == (False, False)
    assert found.ratio[0] == pytest.approx(6.0, rel=0.05)
    (found,), _ = judged(times(8, nodes=1))
    assert found.ratio.tolist() == [1.0]


def test_nodes_may_have_different_numbers_of_samples():
    many, few = times(9, nodes=60, slower={0: 0.3}), times(10, nodes=60, samples=7, slower={1: 0.3})
    (found,), _ = judged([*many.tolist(), *few.tolist()])
    assert numpy.nonzero(found.slow)[0].tolist() == [0, 61]


def test_a_clock_that_always_tells_the_same_is_no_division_by_zero():
    (found,), _ = judged([[0.025] * 8] * 11 + [[0.030] * 8])
    assert found.slow.tolist() == [False] * 11 + [True]
