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
    OVER_MEMORY,
    NodesOfType,
    NoSpeedup,
    NotInEffectOn,
    NotRecommended,
    OnNodes,
    OverMemoryOn,
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


def row(arm: str, across: AcrossNodes, reference: str, caution: Message | None = None) -> Row:
    """Return one arm's speedup and verdict, and how far nodes differ in it; no speedup if it was not in effect."""
    speedup = across.speedup
    if isinstance(caution, NotInEffectOn):
        return Row(arm, NoSpeedup(caution), "bad")
    if caution:
        return Row(
            arm, NotRecommended(speedup.ratio, speedup.low, speedup.high, reference, across.nodes, caution), "bad"
        )
    sentence = TypeSpeedup(
        speedup.ratio, speedup.low, speedup.high, reference, across.nodes, speedup.words, _spread(across)
    )
    return Row(arm, sentence, WEIGHTS.get(speedup.verdict, "plain"))


def counted(nodes: Sized) -> str:
    return "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"


def _spread(across: AcrossNodes) -> Message:
    """Return how far nodes differ, and what that means for a node that was not measured."""
    if across.nodes == 1:
        return SpreadUnknown(across.another_low, across.another_high)
    return SpreadOfNodes(across.between, across.between_high, across.another_low, across.another_high)


def rows(verdict: TypeVerdict) -> list[Row]:
    """Return a row for each arm, then the type of the nodes and those that do not count."""
    reference = verdict.result.study.reference.name
    arm_rows = [row(arm, across, reference, verdict.not_recommended(arm)) for arm, across in verdict.across.items()]
    if verdict.versus is not None and verdict.pair is not None:
        arm, other = verdict.pair
        arm_rows.append(row(arm, verdict.versus, other))
    return arm_rows + _about(verdict)


def _about(verdict: TypeVerdict) -> list[Row]:
    """Return the type of the nodes, and those that do not count."""
    left_out = [Row("left out", OnNodes(tuple(nodes), why)) for why, nodes in alike(verdict.left_out).items()]
    return [Row("nodes", NodesOfType(len(verdict.nodes), verdict.kind)), *left_out]


def alike(reasons: Mapping[str, Why]) -> dict[Why, list[str]]:
    """Return the names that have each reason, in order."""
    names_by_reason: dict[Why, list[str]] = {}
    for name, why in reasons.items():
        names_by_reason.setdefault(why, []).append(name)
    return names_by_reason


def table(verdict: TypeVerdict) -> Table:
    """Return a row for each arm, the fastest first, with the range in which another node of the type lies."""
    ordered = sorted(verdict.across.items(), key=lambda arm_and_result: -arm_and_result[1].speedup.ratio)
    lines, weights = [], []
    for arm, across in ordered:
        caution = verdict.cautions.get(arm)
        comparison = Comparison(arm, across.speedup.verdict, across.speedup, load=verdict.load)
        speedup, interval, difference = tables.found_cells(comparison)
        another = f"{across.another_low:.2f} to {across.another_high:.2f}"
        cells = [
            arm,
            speedup,
            interval,
            OVER_MEMORY if isinstance(caution, OverMemoryOn) else LOSSES_DIFFER if caution else difference,
            str(across.nodes),
            f"{across.between:.1%}",
            another,
        ]
        if isinstance(caution, NotInEffectOn):
            cells = [arm, "-", "", NOT_IN_EFFECT, str(across.nodes), "-", ""]
        lines.append(cells)
        refused = verdict.not_recommended(arm) is not None
        weights.append("bad" if refused else WEIGHTS.get(across.speedup.verdict, "plain"))
    return Table(COLUMNS, lines, (1, 4, 5), weights)


def page_parts(verdict: TypeVerdict, folder: Path) -> list[Part]:
    """Return the table, why profiles are not recommended, the nodes, and the record of each node in ``folder``."""
    reference = verdict.result.study.reference.name
    refused = [
        row(arm, across, reference, why)
        for arm, across in verdict.across.items()
        if (why := verdict.not_recommended(arm))
    ]
    place = Row("record", RecordOfNodes(str(folder), report(short(folder) / "NODE")), whole=True)
    return [table(verdict), Rows([*refused, *_about(verdict), place])]


def report(place: Path) -> tuple[str, ...]:
    """Return the command that reports the run in ``place``."""
    return ("envkit", "report", str(place))
