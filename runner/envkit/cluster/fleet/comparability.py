"""Which nodes can be compared with each other: those of one kind of machine that measured the same in the same image.

A node can be compared with what it was itself in an earlier report, too, and then the image may be another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from envkit.cluster.fleet.messages import (
    MOST,
    UNFINISHED,
    WAS,
    FactBeside,
    Facts,
    MeasuredOtherwise,
    OtherKind,
    TooFewSamples,
)
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.messages import Message

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
    """Return the nodes of each kind that can be compared, the largest group first; and the nodes that can't, and why.

    ``least`` is the fewest samples with which a node counts. All nodes of a kind must have measured what most have.
    """
    kinds: dict[str, list[Node]] = {}
    left_out = []
    for node in nodes:
        if len(node.step_s) < least:
            left_out.append(LeftOut(node.name, _too_few(node, least)))
        else:
            kinds.setdefault(node.kind, []).append(node)
    groups_by_kind = []
    for of_kind in kinds.values():
        counted = Counter(tuple(sorted(node.must_agree.items())) for node in of_kind)
        usual = dict(max(counted.items(), key=lambda entry: (entry[1], entry[0]))[0])
        groups_by_kind.append([node for node in of_kind if node.must_agree == usual])
        left_out += [
            LeftOut(node.name, _difference(node.must_agree, usual)) for node in of_kind if node.must_agree != usual
        ]
    groups_by_kind.sort(key=lambda group: (-len(group), group[0].kind))
    return groups_by_kind, left_out


def why_not(then: Node, now: Node) -> Message | None:
    """Return why a node can't be compared with itself in an earlier report, or None if it can."""
    if then.kind != now.kind:
        facts = changed(then.facts, now.facts)
        return OtherKind(now.kind, then.kind, in_words(facts) if facts else None)
    measured = [change for change in changed(then.must_agree, now.must_agree) if not may_change(change[0])]
    for label, old, new in (("workload", then.workload, now.workload), ("profile", then.profile, now.profile)):
        if old != new and label not in [name for name, _, _ in measured]:
            measured.append((label, old, new))
    facts_now = [FactBeside(name, _shown(new), _shown(old), WAS) for name, old, new in measured]
    return MeasuredOtherwise(_first(facts_now, MOST_REASONS)) if facts_now else None


def may_change(fact: str) -> bool:
    """Return whether times can be compared although this fact has changed."""
    return fact in MAY_CHANGE or fact.startswith(VARIABLE)


def changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[Changed]:
    """Return the facts that have changed."""
    names = dict.fromkeys([*then, *now])
    both = [(name, then.get(name) or "none", now.get(name) or "none") for name in names]
    return [values for values in both if values[1] != values[2]]


def in_words(facts: Sequence[Changed]) -> Facts:
    """Return the first facts, and how many more there are."""
    return _first([FactBeside(name, now, then, WAS) for name, then, now in facts], MOST_FACTS)


def _too_few(node: Node, least: int) -> Message:
    return TooFewSamples(len(node.step_s), least, None if node.finished else UNFINISHED)


def _difference(facts: Mapping[str, str], usual: Mapping[str, str]) -> Message:
    """Return what a node measured otherwise than most."""
    names = [name for name in dict.fromkeys([*usual, *facts]) if facts.get(name) != usual.get(name)]
    unlike = [FactBeside(name, _shown(facts.get(name)), _shown(usual.get(name)), MOST) for name in names]
    return MeasuredOtherwise(_first(unlike, MOST_REASONS))


def _first(facts: Sequence[Message], most: int) -> Facts:
    more = len(facts) - most
    return Facts(tuple(facts[:most]), more if more > 0 else None)


def _shown(value: str | None) -> str:
    """Return a value that is short enough for a line. Digests are cut."""
    if not value:
        return "none"
    return value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
