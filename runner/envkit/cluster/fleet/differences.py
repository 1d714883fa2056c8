"""Facts that differ among nodes of one kind, and those that slow nodes have more often than by chance.

Counts are shown, and how unlikely they are by chance. Such a fact is not a cause: nodes of one delivery share many
things.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from envkit.cluster.fleet.node import Node
from envkit.stats.many_tests import at_least

# The chance that anything at all is called shared by slow nodes where nothing is, over all facts of one kind of nodes.
ERROR_RATE = 0.01
MEMORY = "memory"
# Firmware and kernels keep a little for themselves: so close together (as a share), memory is the same.
SAME_MEMORY = 0.02
UNKNOWN = "not known"


@dataclass(frozen=True)
class Value:
    """One value of a fact: how many nodes have it, how many of them are slow, and the median of these nodes' ratios.

    ``chance`` is how likely so many slow ones are where slowness has nothing to do with it, times the number of values
    that were looked at (Bonferroni's correction); None where no node with this value is slow.
    """

    text: str
    nodes: int
    slow: int
    ratio: float
    chance: float | None

    @property
    def shared(self) -> bool:
        """Return whether slow nodes have it more often than others, as far as counts can say."""
        return self.chance is not None and self.chance < ERROR_RATE


@dataclass(frozen=True)
class Fact:
    """Something that is not the same on all nodes of a kind; the commonest of its ``values`` comes first."""

    name: str
    values: list[Value]

    @property
    def clearest(self) -> float:
        """The smallest chance of any of its values; 1 where none is slow."""
        return min((value.chance for value in self.values if value.chance is not None), default=1.0)


def facts(nodes: Sequence[Node]) -> list[dict[str, str]]:
    """Each node's facts by name, with the sizes of memory put together that mean the same."""
    labels = _memory_labels([node.memory_bytes for node in nodes])
    labelled = []
    for node in nodes:
        others = {name: value for name, value in node.facts.items() if name != "memory bytes"}
        labelled.append({**others, MEMORY: UNKNOWN if node.memory_bytes is None else labels[node.memory_bytes]})
    return labelled


def _memory_labels(sizes: Sequence[int | None]) -> dict[int, str]:
    """``503 GiB`` for each size: the largest of those that lie close together, one by one."""
    sizes_known = sorted({size for size in sizes if size is not None}, reverse=True)
    labels: dict[int, str] = {}
    largest = previous = 0
    for size in sizes_known:
        if previous == 0 or size < previous * (1 - SAME_MEMORY):
            largest = size
        labels[size] = f"{largest / 2**30:.4g} GiB"
        previous = size
    return labels


def differences(of_nodes: Sequence[dict[str, str]], slow: Sequence[bool], ratios: Sequence[float]) -> list[Fact]:
    """The facts that differ among nodes, those that slow nodes share most clearly first.

    For each node, in one order: its facts, whether it is slow, and its time over the middle node's.
    """
    slow_nodes = sum(slow)
    varied: dict[str, dict[str, list[int]]] = {}
    for name in dict.fromkeys(name for facts in of_nodes for name in facts):
        having: dict[str, list[int]] = {}
        for number, facts in enumerate(of_nodes):
            having.setdefault(facts.get(name, UNKNOWN), []).append(number)
        if len(having) > 1:
            varied[name] = having
    tests = sum(any(slow[number] for number in numbers) for having in varied.values() for numbers in having.values())
    varying = []
    for name, having in varied.items():
        values = []
        for text, numbers in having.items():
            common = sum(slow[number] for number in numbers)
            chance = at_least(common, len(numbers), slow_nodes, len(of_nodes)) if common else None
            ratio = statistics.median(ratios[number] for number in numbers)
            together = None if chance is None else min(1.0, chance * tests)
            values.append(Value(text, len(numbers), common, ratio, together))
        values.sort(key=lambda value: (-value.nodes, value.text))
        varying.append(Fact(name, values))
    return sorted(varying, key=lambda fact: fact.clearest)


def commonest(of_nodes: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return what most nodes have, by the fact's name."""
    counts: dict[str, Counter[str]] = {}
    for facts in of_nodes:
        for name, value in facts.items():
            counts.setdefault(name, Counter())[value] += 1
    for counter in counts.values():
        counter[UNKNOWN] += len(of_nodes) - counter.total()
    return {name: max(counter, key=lambda value: (counter[value], value)) for name, counter in counts.items()}


def unusual(facts: dict[str, str], usual: dict[str, str]) -> list[tuple[str, str, str]]:
    """In what a node differs from most: the fact's name, what it has, and what most have."""
    return [
        (name, facts.get(name, UNKNOWN), value) for name, value in usual.items() if facts.get(name, UNKNOWN) != value
    ]
