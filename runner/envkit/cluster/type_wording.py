"""What profiles are worth on a type of nodes, in words."""

from __future__ import annotations

from collections.abc import Sized
from pathlib import Path

from envkit.cluster.type_verdict import TypeVerdict
from envkit.common.folders import quoted
from envkit.report.parts import Part, Row, Rows, Table
from envkit.report.wording import CONFIDENCE, together
from envkit.stats.across_nodes import AcrossNodes
from envkit.stats.verdict import Verdict

COLUMNS = ("profile", "speedup", f"{CONFIDENCE} interval", "verdict", "nodes", "they differ by", "another node")
WEIGHTS = {Verdict.FASTER: "good", Verdict.SLOWER: "bad"}


def interval(found: AcrossNodes) -> str:
    """``1.424 (95% interval 1.301 to 1.559)``."""
    one = found.speedup
    return f"{one.ratio:.3f} ({CONFIDENCE} interval {one.low:.3f} to {one.high:.3f})"


def row(arm: str, found: AcrossNodes, reference: str, wrong: str | None = None) -> Row:
    """One arm's verdict, with how far nodes differ in it."""
    if wrong:
        return Row(arm, f"{interval(found)} against {reference}: {wrong}, so it is not recommended", "bad")
    verdict = found.speedup.words.upper() if found.speedup.verdict in WEIGHTS else found.speedup.words
    said = f"{interval(found)} against {reference}, on {counted(found.ratios)}: {verdict}"
    return Row(arm, f"{said}; {differ(found)}", WEIGHTS.get(found.speedup.verdict, "plain"))


def counted(nodes: Sized) -> str:
    return "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"


def differ(found: AcrossNodes) -> str:
    """How far nodes differ, and what that means for one that was not measured."""
    another = f"another node of the type lies within {found.another_low:.3f} to {found.another_high:.3f}"
    if found.nodes == 1:
        return f"how far nodes differ is not known from one; {another}, if they differ as nodes do elsewhere"
    return f"nodes differ by {found.between:.1%} (at most {found.between_high:.1%}), and {another}"


def rows(verdict: TypeVerdict) -> list[Row]:
    """Every arm's, then what the nodes are and which were left out."""
    reference = verdict.summary.plan.reference.name
    found = [row(arm, one, reference, verdict.not_recommended(arm)) for arm, one in verdict.found.items()]
    if verdict.versus is not None and verdict.pair is not None:
        own, other = verdict.pair
        found.append(row(own, verdict.versus, other))
    return found + _about(verdict)


def _about(verdict: TypeVerdict) -> list[Row]:
    """What the nodes are, and which were left out."""
    left_out = [Row("left out", f"{nodes}: {why}") for nodes, why in together(verdict.left_out).items()]
    return [Row("nodes", f"{counted(verdict.nodes)} of {verdict.kind}"), *left_out]


def table(verdict: TypeVerdict) -> Table:
    """Every arm, the fastest first, with where another node of the type lies."""
    ordered = sorted(verdict.found.items(), key=lambda one: -one[1].speedup.ratio)
    lines, weights = [], []
    for arm, one in ordered:
        wrong = verdict.not_recommended(arm)
        said = wrong or (one.speedup.words.upper() if one.speedup.verdict in WEIGHTS else one.speedup.words)
        interval = f"{one.speedup.low:.3f} to {one.speedup.high:.3f}"
        another = f"{one.another_low:.3f} to {one.another_high:.3f}"
        lines.append([arm, f"{one.speedup.ratio:.3f}", interval, said, str(one.nodes), f"{one.between:.1%}", another])
        weights.append("bad" if wrong else WEIGHTS.get(one.speedup.verdict, "plain"))
    return Table(COLUMNS, lines, (1, 4, 5), weights)


def parts(verdict: TypeVerdict, folder: Path) -> list[Part]:
    """What several profiles are worth on the type of nodes; ``folder`` has a record of each node."""
    each = f"{folder}, and of each node: envkit report {quoted(folder)}/NODE"
    return [table(verdict), Rows([*_about(verdict), Row("record", each, whole=True)])]
