"""Which nodes can be held against each other: those of one kind of machine that measured the same in the same image.

A node can be held against what it was itself in an earlier report, too, and then the image may be another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from envkit.cluster.fleet.node import LeftOut, Node

# A trimmed mean with an error of its own takes so many; the same that a speedup takes.
MIN_SAMPLES = 6
# What a message tells of a node that differs in many things.
MOST_REASONS = 2
MOST_FACTS = 3
SHOWN = 24
# What may be another from one report to the next, as it is what a fleet is measured again for: all nodes have it, and
# each is held against the middle one. Variables may be, too. Whatever else was measured decides how long a step takes.
MAY_CHANGE = {"engine", "image digest", "PyTorch", "prefix"}
VARIABLE = "variable "

# A fact's name, what it was then, and what it is now.
Changed = tuple[str, str, str]


def groups(nodes: Sequence[Node], least: int = MIN_SAMPLES) -> tuple[list[list[Node]], list[LeftOut]]:
    """The nodes of each kind that can be compared, the largest group first; and the nodes that can't, and why.

    ``least`` is the fewest samples with which a node counts.

    What most nodes of a kind measured is what the others of that kind must have measured too.
    """
    kinds: dict[str, list[Node]] = {}
    left_out = []
    for node in nodes:
        if len(node.step_s) < least:
            left_out.append(LeftOut(node.name, _too_few(node, least)))
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


def why_not(then: Node, now: Node) -> str | None:
    """Why a node can't be held against itself in an earlier report; None where it can."""
    if then.kind != now.kind:
        facts = changed(then.facts, now.facts)
        return f"its kind was {then.kind}, and is {now.kind}{facts and f': {in_words(facts)}'}"
    measured = [one for one in changed(then.must_agree, now.must_agree) if not may_change(one[0])]
    for what, old, new in (("workload", then.workload, now.workload), ("profile", then.profile, now.profile)):
        if old != new and what not in [name for name, _, _ in measured]:
            measured.append((what, old, new))
    texts = [f"its {name} was {_shown(old)}, and is {_shown(new)}" for name, old, new in measured]
    return _first(texts) if texts else None


def may_change(what: str) -> bool:
    """Whether times can be compared although this, of what was measured, is another now."""
    return what in MAY_CHANGE or what.startswith(VARIABLE)


def changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[Changed]:
    """The facts that are others now."""
    names = dict.fromkeys([*then, *now])
    both = [(name, then.get(name) or "none", now.get(name) or "none") for name in names]
    return [one for one in both if one[1] != one[2]]


def in_words(facts: Sequence[Changed]) -> str:
    """``kernel 6.12 (was 6.1), microcode 0x2c (was 0x2b)``, and how many more."""
    shown = [f"{name} {now} (was {then})" for name, then, now in facts[:MOST_FACTS]]
    more = [f"{len(facts) - MOST_FACTS} more"] if len(facts) > MOST_FACTS else []
    return ", ".join([*shown, *more])


def _too_few(node: Node, least: int) -> str:
    count = len(node.step_s)
    ended = "" if node.finished else ", its run has not ended"
    return f"has {count} sample{'' if count == 1 else 's'} only{ended}; {least} are needed"


def _difference(own: Mapping[str, str], usual: Mapping[str, str]) -> str:
    """What was not the same, as a clause."""
    names = [name for name in dict.fromkeys([*usual, *own]) if own.get(name) != usual.get(name)]
    texts = [f"its {name} is {_shown(own.get(name))}, most have {_shown(usual.get(name))}" for name in names]
    return _first(texts)


def _first(texts: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = len(texts) - MOST_REASONS
    return "; ".join(texts[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _shown(value: str | None) -> str:
    """Short enough for a line, as digests need not be shown whole."""
    if not value:
        return "none"
    return value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
