"""Print what the nodes of a submission found: one table for all, and a line for each kind of trouble."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from envkit.analysis import ranking
from envkit.cluster import type_wording
from envkit.cluster.messages import OnNodes
from envkit.cluster.slurm.collect import WORKER_FAILED, NodeResult
from envkit.cluster.slurm.messages import IN_FULL, OF_EACH, IntervalsOfNodes, ReportCommand
from envkit.cluster.type_verdict import TypeVerdict
from envkit.cluster.type_wording import alike, report
from envkit.common.folders import short
from envkit.common.plain_table import plain_table
from envkit.report import model, tables, terminal

# So many nodes are named; of more there is the number.
NAMED = 4
COLUMNS = ("node", "profile", "samples", "speedup", "95% CI", "difference", "ms/step")


def show(results: Sequence[NodeResult], verdict: TypeVerdict | None, folder: Path, out: Console) -> None:
    """Print the verdicts of each node, and that of their type. ``folder`` is the submission's.

    One node's interval says nothing about another node.
    """
    rows = [row for node in results for row in _rows(node)]
    if rows:
        table = plain_table(COLUMNS, right=("samples", "speedup", "ms/step"), fold=True)
        for cells, weight in rows:
            table.add_row(*cells, style=terminal.STYLES[weight])
        out.print(table)
        out.print()
    failed = [(node.result, node.name) for node in results if node.state == WORKER_FAILED and node.result]
    for result, name in failed[:NAMED]:
        terminal.items(out, model.failures(result.failures, name))
    comparisons = [node.result.comparisons for node in results if node.result]
    if sum(any(comparison.speedup for comparison in of_node) for of_node in comparisons) > 1:
        terminal.item(out, "errors", IntervalsOfNodes())
    if verdict is not None and len(verdict.nodes) > 1:
        terminal.items(out, type_wording.rows(verdict))
    place = short(folder)
    in_full = (
        ReportCommand(IN_FULL, report(place)) if len(results) <= 1 else ReportCommand(OF_EACH, report(place / "NODE"))
    )
    terminal.item(out, "record", str(folder), whole=True)
    terminal.item(out, "", in_full, whole=True)


def _rows(node: NodeResult) -> list[tuple[list[str], str]]:
    """Return a row for each profile, in the order of the node's own report. The reference has none."""
    result = node.result
    if result is None or not result.samples:
        return []
    reference = result.study.reference.name
    rows = []
    for name, cells in zip(
        ranking.order(result.comparisons, result.study.arms, result.study.view), tables.ranked(result), strict=True
    ):
        if name != reference or not result.comparisons:
            profile, speedup, interval, verdict, time = cells
            samples = sum(sample.arm == name for sample in result.samples)
            shown = verdict if node.settled else node.state
            row = [node.name, profile, str(samples), speedup, interval, shown, time]
            rows.append((row, ranking.weight(result.comparisons, name)))
    return rows


def problems(results: Sequence[NodeResult]) -> list[OnNodes]:
    """Return each problem once, with the nodes that have it."""
    return [
        OnNodes(tuple(names[:NAMED]), problem, len(names) - NAMED if len(names) > NAMED else None)
        for problem, names in alike({node.name: node.problem for node in results if node.problem}).items()
    ]


def named(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
