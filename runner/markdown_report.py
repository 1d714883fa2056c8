"""A run's report in GitHub's Markdown, for pull requests: what was found, how sure it is, and what each arm took."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from runner import across, advice, gpu_wording, grid, image_wording, reproduce, scaling_wording, tables, wording
from runner.learning import learnt
from runner.record import Event
from runner.summary import Summary
from runner.wording import Row


def document(folder: Path, events: Sequence[Event], summary: Summary) -> str:
    parts = []
    if summary.synthetic:
        parts.append("**Synthetic data**: this is not Fashion-MNIST. Losses and accuracy mean nothing.")
    failures = [
        Row("failed", f"block {one['block'] + 1}, {one['arm']}: the worker {one['problem']}", "bad")
        for one in summary.failures
    ]
    if grid.is_grid(summary.plan):
        parts += [_items(failures), *_grid(summary)]
    else:
        found = [*image_wording.introduction(summary), *wording.verdicts(summary)]
        parts += [_items(across.wins(summary)), _items(found), _items(failures), _table(summary)]
        parts += [*_differences(summary), _items(scaling_wording.rows(summary))]
    findings = [Row(one["severity"], f"{one['seen']}: {one['why']}") for one in summary.findings]
    sure = [*wording.certainty(summary), *wording.evidence(summary), *gpu_wording.rows(summary), *learnt(summary)]
    parts.append(_items([*sure, *findings, *advice.rows(summary)]))
    parts.append(f"{escaped(wording.machine(summary))}  ")
    parts[-1] += f"\n`{reproduce.started_with(events)}`, record SHA-256 `{reproduce.digest(folder)}`"
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """``text`` on one line, with nothing that Markdown, a table or HTML would take for its own."""
    return re.sub(r"[\\|*`\[\]]", r"\\\g<0>", text).replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")


def _items(rows: Sequence[Row]) -> str:
    """A list; rows without a label go on below the one before them."""
    lines = []
    for row in rows:
        text = f"**{escaped(row.text)}**" if row.weight != "plain" else escaped(row.text)
        lines.append(f"- **{escaped(row.label)}**: {text}" if row.label else f"  - {text}")
    return "\n".join(lines)


def _table(summary: Summary) -> str:
    """A row for each arm, with its speedup."""
    header = [*tables.header(summary), "speedup", f"{wording.CONFIDENCE} interval", "verdict"]
    found = {one.arm: one for one in summary.comparisons}
    references = {arm.name for arm in summary.plan.references}
    lines = []
    for row in tables.all_arms(summary):
        one = found.get(row[0])
        cells = ["", "", "reference" if summary.comparisons and row[0] in references else ""]
        if one is not None:
            ratio = one.speedup.ratio if one.speedup else one.single_ratio
            interval = f"{one.speedup.low:.3f} to {one.speedup.high:.3f}" if one.speedup else ""
            cells = [f"{ratio:.3f}" if ratio is not None else "", interval, one.verdict]
        lines.append([*row, *cells])
    lines += [[*row, "", "", ""] for row in tables.book(summary)]
    rule = ["---", *["---:"] * (len(header) - 2), "---"]
    shown = [header, rule, *([escaped(cell) for cell in line] for line in lines)]
    return _piped(shown)


def _grid(summary: Summary) -> list[str]:
    """A table of the loader's settings for each number of batches made ahead, and which of them took least."""
    measured = grid.cells(summary)
    parts = []
    for variant in grid.variants(measured):
        header = grid.header(variant)
        rule = ["---:"] * len(header)
        parts += [f"{grid.UNIT}, {variant.title}:", _piped([header, rule, *grid.rows(variant)])]
    return [*parts, _items([Row("least", grid.best(measured))] if measured else [])]


def _differences(summary: Summary) -> list[str]:
    """In what images differ that are compared: a table for each."""
    parts = []
    for arm in summary.plan.compared:
        if found := summary.image_differences.get(arm.name):
            lines = [image_wording.header(summary, arm), ["---"] * 3, *image_wording.rows(found)]
            parts.append(_piped([[escaped(cell) for cell in line] for line in lines]))
    return parts


def _piped(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
