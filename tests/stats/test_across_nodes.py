"""What a profile is worth on a type of nodes: planted effects, and how often the interval misses them."""

from __future__ import annotations

import math

import numpy
import pytest
from envkit.stats.across_nodes import across_nodes
from envkit.stats.verdict import Verdict

RATE, MARGIN = 0.05, 0.02


def blocks(chance, nodes, count=4, worth=0.0, differ=0.0, noise=0.03):
    """The log ratios of each node's blocks."""
    own = chance.normal(0, differ, nodes) if differ else numpy.zeros(nodes)
    return [(worth + effect + chance.normal(0, noise, count)).tolist() for effect in own]


def test_what_is_worth_the_same_on_all_nodes():
    found = across_nodes(blocks(numpy.random.default_rng(1), 16, worth=0.3), RATE, MARGIN)
    assert found.nodes == len(found.ratios) == 16
    assert found.speedup.low < math.exp(0.3) < found.speedup.high
    assert found.speedup.ratio == pytest.approx(math.exp(0.3), rel=0.02)
    assert (found.speedup.verdict, found.speedup.blocks) == (Verdict.FASTER, 64)
    assert found.between < 0.02


def test_how_far_nodes_differ_is_found_and_widens_what_is_said_of_another_node():
    alike = across_nodes(blocks(numpy.random.default_rng(2), 40, differ=0.0), RATE, MARGIN)
    apart = across_nodes(blocks(numpy.random.default_rng(2), 40, differ=0.10), RATE, MARGIN)
    assert alike.between < 0.03
    assert 0.07 < apart.between < 0.14
    for found in (alike, apart):
        assert found.another_low < found.speedup.low < found.speedup.high < found.another_high
    assert apart.another_high / apart.another_low > 1.3 > alike.another_high / alike.another_low


def test_of_one_node_little_is_known_of_its_type():
    """The prior: a node may be 10% or 20% from the middle of its type."""
    found = across_nodes(blocks(numpy.random.default_rng(3), 1, count=30, worth=0.1), RATE, MARGIN)
    assert found.speedup.verdict == Verdict.NOT_FOUND
    assert 0.15 < found.speedup.half_width < 0.30


@pytest.mark.parametrize(("nodes", "differ"), [(2, 0.0), (2, 0.05), (2, 0.1), (8, 0.02), (8, 0.1), (32, 0.05)])
def test_the_interval_misses_in_no_more_than_its_rate(nodes, differ):
    chance = numpy.random.default_rng(nodes)
    runs = 300
    found = [across_nodes(blocks(chance, nodes, differ=differ), RATE, MARGIN).speedup for _ in range(runs)]
    missed = sum(not one.low <= 1 <= one.high for one in found)
    assert missed <= 27  # as often as 9%: 5% in truth come to more in one of 1,000 such tests


def test_nodes_with_less_than_two_blocks_tell_nothing():
    assert across_nodes([[0.1], []], RATE, MARGIN) is None
    found = across_nodes([[0.1], [0.2, 0.21, 0.19]], RATE, MARGIN)
    assert (found.nodes, found.speedup.blocks) == (1, 3)


def test_a_stricter_rate_gives_a_wider_interval():
    ratios = blocks(numpy.random.default_rng(4), 8)
    strict, usual = (across_nodes(ratios, rate, MARGIN).speedup for rate in (0.01, 0.05))
    assert strict.low < usual.low < usual.high < strict.high


def test_the_inverse_ratios_have_the_inverse_interval():
    ratios = blocks(numpy.random.default_rng(5), 6, worth=0.1, differ=0.05)
    found, inverse = (
        across_nodes(ratios, RATE, MARGIN),
        across_nodes([[-one for one in node] for node in ratios], RATE, MARGIN),
    )
    assert inverse.speedup.low == pytest.approx(1 / found.speedup.high)
    assert inverse.speedup.high == pytest.approx(1 / found.speedup.low)
    assert inverse.another_low == pytest.approx(1 / found.another_high)
