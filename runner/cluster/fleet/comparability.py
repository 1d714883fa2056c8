"""Which nodes can be held against each other: those of one kind of machine that measured the same in the same image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from runner.cluster.fleet.node import LeftOut, Node

# A trimmed mean with an error of its own takes so many; the same that a speedup takes.
MIN_SAMPLES = 6
# What a message tells of a node that differs in many things.
MOST_REASONS = 2
SHOWN = 24


def groups(nodes: Sequence[Node]) -> tuple[list[list[Node]], list[LeftOut]]:
    """The nodes of each kind that can be compared, the largest group first; and the nodes that can't, and why.

    What most nodes of a kind measured is what the others of that kind must have measured too.
    """
    kinds: dict[str, list[Node]] = {}
    left_out = []
    for node in nodes:
        if len(node.step_s) < MIN_SAMPLES:
            left_out.append(LeftOut(node.name, _too_few(node)))
        else:
            kinds.setdefault(node.kind, []).append(node)
    found = []
    for of_kind in kinds.values():
        counted = Counter(tuple(sorted(node.must_agree.items())) for node in of_kind)
        usual = dict(max(counted.items(), key=lambda one: (one[1], one[0]))[0])
        found.append([node for node in of_kind if node.must_agree == usual])
        left_out += [
            LeftOut(node.name, _difference(node.must_agree, usual)) for node in of_kind if node.must_agree != usual
        ]
    found.sort(key=lambda group: (-len(group), group[0].kind))
    return found, left_out


def _too_few(node: Node) -> str:
    count = len(node.step_s)
    ended = "" if node.finished else ", its run has not ended"
    return f"has {count} sample{'' if count == 1 else 's'} only{ended}; {MIN_SAMPLES} are needed"


def _difference(own: Mapping[str, str], usual: Mapping[str, str]) -> str:
    """What was not the same, as a clause."""
    names = [name for name in dict.fromkeys([*usual, *own]) if own.get(name) != usual.get(name)]
    texts = [f"its {name} is {_shown(own.get(name))}, most have {_shown(usual.get(name))}" for name in names]
    more = len(texts) - MOST_REASONS
    return "; ".join(texts[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _shown(value: str | None) -> str:
    """Short enough for a line, as digests need not be shown whole."""
    if not value:
        return "none"
    return value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
