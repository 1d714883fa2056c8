"""In what nodes differ, and what slow ones share."""

from __future__ import annotations

import pytest
from envkit.cluster.fleet.differences import UNKNOWN, commonest, differences, facts, unusual
from envkit.cluster.fleet.extract import read_node

from tests.cluster.fleet.nodes import node


def of_fleet(values, slow):
    """Nodes that have these values of the fact "thp", and else are all the same."""
    own = [{"cpu": "x", **({} if value is None else {"thp": value})} for value in values]
    ratios = [1.1 if number in slow else 1.0 for number in range(len(values))]
    return differences(own, [number in slow for number in range(len(values))], ratios)


def test_what_slow_nodes_share_is_marked():
    (fact,) = of_fleet(["never"] * 4 + ["always"] * 36, slow={0, 1, 2, 3})
    assert fact.name == "thp"
    usual, odd = fact.values
    assert (usual.text, usual.nodes, usual.slow, usual.ratio, usual.chance) == ("always", 36, 0, 1.0, None)
    assert (odd.text, odd.nodes, odd.slow, odd.ratio) == ("never", 4, 4, 1.1)
    assert odd.chance == pytest.approx(1 / 91390)  # of all ways to choose 4 of 40
    assert [value.shared for value in fact.values] == [False, True]


def test_what_slow_nodes_have_as_often_as_others_is_not():
    (fact,) = of_fleet(["never", "always"] * 20, slow={0, 1, 2, 3})
    assert not any(value.shared for value in fact.values)


def test_the_more_values_are_looked_at_the_less_one_means():
    few, slow = ["odd"] * 2 + ["usual"] * 38, {0, 1}
    own = [{"thp": value} for value in few]
    (alone,) = differences(own, [number in slow for number in range(40)], [1.0] * 40)
    more = [{**one, "serial": str(number)} for number, one in enumerate(own)]
    thp, _ = differences(more, [number in slow for number in range(40)], [1.0] * 40)
    assert thp.values[1].chance == pytest.approx(3 * alone.values[1].chance)


def test_the_clearest_comes_first_and_what_all_have_not_at_all():
    own = [{"a": str(number % 2), "b": "odd" if number < 3 else "usual", "c": "same"} for number in range(30)]
    found = differences(own, [number < 3 for number in range(30)], [1.0] * 30)
    assert [fact.name for fact in found] == ["b", "a"]


def test_what_is_not_known_of_a_node_is_a_value_too():
    (fact,) = of_fleet([None, "always", "always"], slow=set())
    assert [(value.text, value.nodes) for value in fact.values] == [("always", 2), (UNKNOWN, 1)]


def test_in_what_a_node_differs_from_most():
    own = [{"thp": "always", "governor": "performance"}] * 3 + [{"thp": "never", "driver": "odd"}]
    usual = commonest(own)
    assert unusual(own[0], usual) == []
    assert unusual(own[3], usual) == [
        ("thp", "never", "always"), ("governor", UNKNOWN, "performance"), ("driver", "odd", UNKNOWN),
    ]  # fmt: skip


def test_memory_that_differs_by_what_firmware_keeps_is_the_same(tmp_path):
    sizes = [2**36, 2**36 - 2**28, 2**36 - 2**29, 2**35, None]
    nodes = [read_node(node(tmp_path, f"n{at}", fingerprint={"memory_bytes": size})) for at, size in enumerate(sizes)]
    assert [one["memory"] for one in facts(nodes)] == ["64 GiB"] * 3 + ["32 GiB", UNKNOWN]
    assert "memory bytes" not in facts(nodes)[0]
