"""Which nodes became slower from one report to the next.

A node's change is that of its place: its time over the middle node's now, over the same then. A change of all nodes, as
by another image, is reported for the fleet and not for a node. In a fleet in which nothing changed, any node is called
slower or faster in at most 5% of comparisons: ``envkit.cluster.fleet.changes`` says what that assumes of how the times
of healthy nodes change.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from envkit.cluster.fleet import changes, comparability, slow
from envkit.cluster.fleet.changes import RATE, Judged
from envkit.cluster.fleet.comparability import Changed
from envkit.cluster.fleet.diff_messages import NO_CHANGE_FOUND
from envkit.cluster.fleet.messages import InReport, NoCommonNode, NoNameInBoth
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.cluster.fleet.slow import Measured
from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.common.text_enum import TextEnum
from envkit.messages import Message
from envkit.stats.outlying import FEWEST

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


class ChangeVerdict(TextEnum):
    """The change of a node."""

    SLOWER = "slower"  # it lies out, and the whole interval is beyond the margin
    FASTER = "faster"
    NOT_CERTAIN = "not certain"  # the interval is beyond the margin, but healthy nodes may change by as much
    SAME = NO_CHANGE_FOUND
    NOT_JUDGED = "not judged"  # too few nodes of its kind are in both


@dataclass(frozen=True)
class Change:
    """A node's time over the middle node's, now over then, with its interval; and its own facts that are others now."""

    node: str
    ratio: float
    low: float
    high: float
    verdict: ChangeVerdict
    facts: tuple[Changed, ...]

    def to_json(self) -> dict[str, object]:
        """JSON has no infinity, which an interval of two samples may reach to."""
        high = self.high if math.isfinite(self.high) else None
        return {**asdict(self), "high": high, "verdict": str(self.verdict)}


@dataclass(frozen=True)
class KindDiff:
    """The nodes of one kind that are in both: ``fleet_ratio`` is the middle node's time now over then."""

    name: str
    fleet_ratio: float
    between: float  # the standard deviation of the changes themselves, as a share
    noise: float  # the typical standard error of one, as a share
    allowance: float  # by how much a node may change, as a share
    measured: float  # when the last of its nodes began now, by its own clock, in seconds since 1970
    changes: list[Change]
    other_now: list[Changed]  # the facts that are the same other ones now on all of them, as of another image


@dataclass(frozen=True)
class Diff:
    """``gone`` and ``new`` are nodes of one report only; ``left_out`` can't be compared, and why."""

    kinds: list[KindDiff]
    gone: list[str]
    new: list[str]
    left_out: list[LeftOut]
    margin: float
    back_in_time: bool  # whether the second report is the earlier one, by the middle nodes' clocks

    def of(self, verdict: ChangeVerdict) -> list[Change]:
        """The nodes of one verdict, those that changed most first."""
        changes = [change for kind in self.kinds for change in kind.changes if change.verdict == verdict]
        return sorted(changes, key=lambda change: -max(change.ratio, 1 / change.ratio))

    @property
    def complete(self) -> bool:
        """Return whether every node except new ones was judged."""
        return not (self.gone or self.left_out or self.of(ChangeVerdict.NOT_JUDGED))

    def counts(self) -> dict[str, int]:
        """How many nodes there are by what became of them."""
        judged = {str(verdict): len(self.of(verdict)) for verdict in ChangeVerdict}
        return {**judged, "left out": len(self.left_out), "gone": len(self.gone), "new": len(self.new)}

    def to_json(self) -> dict[str, object]:
        return {
            "margin": self.margin,
            "comparisons_with_a_false_alarm_at_most": RATE,
            "assumed_degrees_of_freedom_at_least": FEWEST,
            "complete": self.complete,
            "back_in_time": self.back_in_time,
            "nodes_by_verdict": self.counts(),
            "kinds": [
                {**asdict(kind), "changes": [change.to_json() for change in kind.changes]} for kind in self.kinds
            ],
            "gone": self.gone,
            "new": self.new,
            "left_out": [node.to_json() for node in self.left_out],
        }


Report = tuple[Sequence[Node], Sequence[LeftOut]]


def diff(before: Report, after: Report, margin: float) -> Diff:
    """Compare two reports, as ``kept.read`` returns them. Raise InputError if no node can be compared."""
    (old_groups, old_out), (new_groups, new_out) = (comparability.groups(nodes) for nodes, _ in (before, after))
    old = {node.name: node for group in old_groups for node in group}
    new = {node.name: node for group in new_groups for node in group}
    left_out: dict[str, Message] = {node.name: InReport("first", node.reason) for node in (*before[1], *old_out)}
    left_out |= {node.name: InReport("second", node.reason) for node in (*after[1], *new_out)}
    pairs: dict[str, list[tuple[Node, Node]]] = {}
    for name in sorted(old.keys() & new.keys()):
        if (why := comparability.why_not(old[name], new[name])) is None:
            pairs.setdefault(new[name].kind, []).append((old[name], new[name]))
        else:
            left_out[name] = why
    if not pairs:
        raise InputError(NoCommonNode(About(*next(iter(left_out.items())))) if left_out else NoNameInBoth())
    measured = [_measured(of_kind) for of_kind in pairs.values()]
    judgements = changes.judge([change for change, _ in measured], margin)
    then, now = (statistics.median(node.began for node in nodes) for nodes, _ in (before, after))
    return Diff(
        kinds=[
            _kind(name, of_kind, ratio, judged)
            for (name, of_kind), (_, ratio), judged in zip(pairs.items(), measured, judgements, strict=True)
        ],
        gone=sorted(names_of(before) - names_of(after)),
        new=sorted(names_of(after) - names_of(before)),
        left_out=[LeftOut(name, why) for name, why in sorted(left_out.items())],
        margin=margin,
        back_in_time=then > now,
    )


def names_of(report: Report) -> set[str]:
    """All nodes of a report, those that were left out too."""
    return {node.name for part in report for node in part}


def _measured(pairs: Sequence[tuple[Node, Node]]) -> tuple[Measured, float]:
    """The changes of all nodes' places, and how many times as long the middle node takes."""
    import numpy

    old, new = (slow.measure([pair[place].step_s for pair in pairs]) for place in (0, 1))
    middles = [float(numpy.median(side.centre)) for side in (old, new)]
    centre = (new.centre - middles[1]) - (old.centre - middles[0])
    squares: list[NDArray[float64]] = [side.error**2 for side in (old, new)]
    # Satterthwaite's degrees of freedom of a sum
    degrees = sum(squares) ** 2 / sum(
        square**2 / side.degrees for square, side in zip(squares, (old, new), strict=True)
    )
    alike = max(old.autocorrelation, new.autocorrelation)
    return Measured(centre, numpy.sqrt(sum(squares)), degrees, alike), float(numpy.exp(middles[1] - middles[0]))


def _kind(name: str, pairs: Sequence[tuple[Node, Node]], ratio: float, judged: Judged) -> KindDiff:
    changed = [
        comparability.changed({**old.facts, **old.must_agree}, {**new.facts, **new.must_agree}) for old, new in pairs
    ]
    of_all = set.intersection(*map(set, changed))
    changes = []
    for number, (_, new) in enumerate(pairs):
        ratio_of_it, low, high = (float(values[number]) for values in (judged.ratio, judged.low, judged.high))
        own_changes = tuple(change for change in changed[number] if change not in of_all)
        changes.append(Change(new.name, ratio_of_it, low, high, _verdict(judged, number), own_changes))
    began = max(new.began for _, new in pairs)
    return KindDiff(
        name, ratio, judged.between, judged.noise, judged.allowance, began, changes, other_now=sorted(of_all)
    )  # fmt: skip


def _verdict(judged: Judged, number: int) -> ChangeVerdict:
    if not judged.judged:
        return ChangeVerdict.NOT_JUDGED
    if not judged.matters[number]:
        return ChangeVerdict.SAME
    if not judged.lies_out[number]:
        return ChangeVerdict.NOT_CERTAIN
    return ChangeVerdict.SLOWER if judged.ratio[number] > 1 else ChangeVerdict.FASTER
