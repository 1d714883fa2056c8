"""Lay out how much faster profiles make training on nodes of one type: rows, and a table for many profiles."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sized
from pathlib import Path
from typing import TypeVar

from envkit.analysis.result import Comparison
from envkit.cluster.messages import (
    COLUMNS,
    LOSSES_DIFFER,
    NOT_IN_EFFECT,
    NodesOfType,
    NoSpeedup,
    NotInEffectOn,
    NotRecommended,
    OnNodes,
    RecordOfNodes,
    SpreadOfNodes,
    SpreadUnknown,
    TypeSpeedup,
)
from envkit.cluster.type_verdict import TypeVerdict
from envkit.common.folders import short
from envkit.messages import Message
from envkit.report import tables
from envkit.report.parts import Part, Row, Rows, Table
from envkit.stats.across_nodes import AcrossNodes
from envkit.stats.verdict import Verdict

WEIGHTS = {Verdict.FASTER: "good", Verdict.SLOWER: "bad"}
Why = TypeVar("Why", bound=Hashable)


def row(arm: str, found: AcrossNodes, reference: str, wrong: Message | None = None) -> Row:
    """Return one arm's speedup and verdict, and how far nodes differ in it; no speedup if it was not in effect."""
    one = found.speedup
    if isinstance(wrong, NotInEffectOn):
        return Row(arm, NoSpeedup(wrong), "bad")
    if wrong:
        return Row(arm, NotRecommended(one.ratio, one.low, one.high, reference, found.nodes, wrong), "bad")
    said = TypeSpeedup(one.ratio, one.low, one.high, reference, found.nodes, one.words, _spread(found))
    return Row(arm, said, WEIGHTS.get(one.verdict, "plain"))


def counted(nodes: Sized) -> str:
    return "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"


def _spread(found: AcrossNodes) -> Message:
    """Return how far nodes differ, and what that means for a node that was not measured."""
    if found.nodes == 1:
        return SpreadUnknown(found.another_low, found.another_high)
    return SpreadOfNodes(found.between, found.between_high, found.another_low, found.another_high)


def rows(verdict: TypeVerdict) -> list[Row]:
    """Return a row for each arm, then the type of the nodes and those that do not count."""
    reference = verdict.result.study.reference.name
    found = [row(arm, one, reference, verdict.not_recommended(arm)) for arm, one in verdict.found.items()]
    if verdict.versus is not None and verdict.pair is not None:
        own, other = verdict.pair
        found.append(row(own, verdict.versus, other))
    return found + _about(verdict)


def _about(verdict: TypeVerdict) -> list[Row]:
    """Return the type of the nodes, and those that do not count."""
    left_out = [Row("left out", OnNodes(tuple(nodes), why)) for why, nodes in alike(verdict.left_out).items()]
    return [Row("nodes", NodesOfType(len(verdict.nodes), verdict.kind)), *left_out]


def alike(reasons: Mapping[str, Why]) -> dict[Why, list[str]]:
    """Return the names that have each reason, in order."""
    found: dict[Why, list[str]] = {}
    for name, why in reasons.items():
        found.setdefault(why, []).append(name)
    return found


def table(verdict: TypeVerdict) -> Table:
    """Return a row for each arm, the fastest first, with the range in which another node of the type lies."""
    ordered = sorted(verdict.found.items(), key=lambda one: -one[1].speedup.ratio)
    lines, weights = [], []
    for arm, one in ordered:
        wrong = verdict.wrong.get(arm)
        comparison = Comparison(arm, one.speedup.verdict, one.speedup, load=verdict.load)
        speedup, interval, difference = tables.found_cells(comparison)
        another = f"{one.another_low:.2f} to {one.another_high:.2f}"
        cells = [
            arm,
            speedup,
            interval,
            LOSSES_DIFFER if wrong else difference,
            str(one.nodes),
            f"{one.between:.1%}",
            another,
        ]
        if isinstance(wrong, NotInEffectOn):
            cells = [arm, "-", "", NOT_IN_EFFECT, str(one.nodes), "-", ""]
        lines.append(cells)
        refused = verdict.not_recommended(arm) is not None
        weights.append("bad" if refused else WEIGHTS.get(one.speedup.verdict, "plain"))
    return Table(COLUMNS, lines, (1, 4, 5), weights)


def parts(verdict: TypeVerdict, folder: Path) -> list[Part]:
    """Return the table, why profiles are not recommended, the nodes, and the record of each node in ``folder``."""
    reference = verdict.result.study.reference.name
    refused = [
        row(arm, one, reference, why) for arm, one in verdict.found.items() if (why := verdict.not_recommended(arm))
    ]
    place = Row("record", RecordOfNodes(str(folder), report(short(folder) / "NODE")), whole=True)
    return [table(verdict), Rows([*refused, *_about(verdict), place])]


def report(place: Path) -> tuple[str, ...]:
    """Return the command that reports the run in ``place``."""
    return ("envkit", "report", str(place))
