"""Print what the nodes of a submission found: one table for all, and a line for each kind of trouble."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from envkit.analysis import ranking
from envkit.cluster import type_wording
from envkit.cluster.slurm.collect import WORKER_FAILED, NodeResult
from envkit.cluster.type_verdict import TypeVerdict
from envkit.common.folders import quoted
from envkit.common.plain_table import plain_table
from envkit.report import tables, terminal

# So many nodes are named; of more there is the number.
NAMED = 4
COLUMNS = ("node", "profile", "samples", "speedup", "95% interval", "verdict", "ms/step")


def show(results: Sequence[NodeResult], verdict: TypeVerdict | None, folder: Path, out: Console) -> None:
    """Each node's own verdicts, as one node's interval says nothing of another's; then that of their type.

    ``folder`` is the submission's.
    """
    rows = [row for one in results for row in _rows(one)]
    if rows:
        table = plain_table(COLUMNS, right=("samples", "speedup", "ms/step"), fold=True)
        for cells, weight in rows:
            table.add_row(*cells, style=terminal.STYLES[weight])
        out.print(table)
        out.print()
    failed = [(one.summary, one.name) for one in results if one.state == WORKER_FAILED and one.summary]
    for summary, name in failed[:NAMED]:
        terminal.failures(summary, out, name)
    found = [one.summary.comparisons for one in results if one.summary]
    if sum(any(one.speedup for one in of_node) for of_node in found) > 1:
        each = "each interval is for its own node and has its own error rate"
        terminal.item(out, "sure", f"{each}: of 20 nodes without any difference one is expected to show one")
    if verdict is not None and len(verdict.nodes) > 1:
        terminal.items(out, type_wording.rows(verdict))
    out.print(Text(f"record   {folder}"), soft_wrap=True)
    in_full = f"envkit report {quoted(folder)}"
    in_full = f"of each node: {in_full}/NODE" if len(results) > 1 else f"in full: {in_full}"
    out.print(Text(f"         {in_full}"), soft_wrap=True)


def _rows(one: NodeResult) -> list[tuple[list[str], str]]:
    """A row for each profile, in the order of the node's own report; what they are compared with has none."""
    summary = one.summary
    if summary is None or not summary.samples:
        return []
    reference = summary.plan.reference.name
    rows = []
    for name, cells in zip(ranking.order(summary), tables.ranked(summary), strict=True):
        if name != reference or not summary.comparisons:
            profile, speedup, interval, verdict, time = cells
            samples = sum(sample.arm == name for sample in summary.samples)
            said = verdict if one.settled else one.state
            row = [one.name, profile, str(samples), speedup, interval, said, time]
            rows.append((row, ranking.weight(summary, name)))
    return rows


def problems(results: Sequence[NodeResult]) -> list[str]:
    """One line for each kind of trouble, with the nodes that have it."""
    alike: dict[str, list[str]] = {}
    for one in results:
        if one.problem:
            alike.setdefault(one.problem, []).append(one.name)
    return [f"{named(names)}: {problem}" for problem, names in alike.items()]


def named(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
