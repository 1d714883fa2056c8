"""Lay out a report in GitHub's Markdown, for pull requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from envkit.analysis.summary import Summary
from envkit.bench.record import Event
from envkit.report.model import report_of
from envkit.report.parts import Fold, Listing, Note, Part, Row, Rows, Table

PARAGRAPH, NEXT = "\n\n", "\n"


def document(folder: Path, events: Sequence[Event], summary: Summary) -> str:
    report = report_of(summary, str(folder), events, wide=True)
    text, in_list = f"**{escaped(report.headline.text)}**", False
    for part in (part for section in report.sections for part in section.parts):
        is_list = isinstance(part, Rows)
        text += (NEXT if in_list and is_list else PARAGRAPH) + _part(part)
        in_list = is_list
    return f"{text}\n"


def escaped(text: str) -> str:
    """``text`` on one line, with nothing that Markdown, a table or HTML would take for its own."""
    return re.sub(r"[\\|*`\[\]]", r"\\\g<0>", text).replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")


def _part(part: Part) -> str:
    """One that has no pictures."""
    if isinstance(part, Rows):
        return _items(part.rows)
    if isinstance(part, Table):
        return "\n\n".join(filter(None, (_table(part), escaped(part.note))))
    if isinstance(part, Fold):
        return "\n\n".join([f"{escaped(part.title)}:", *map(_part, part.parts)])
    if isinstance(part, Listing):
        return "\n".join(f"    {line}" for line in part.lines)
    return _weighed(part.text, part.weight) if isinstance(part, Note) else ""


def _items(rows: Sequence[Row]) -> str:
    """A list; rows without a label go on below the one before them."""
    texts = [
        (escaped(row.label), _copied(row.text) if row.whole and row.label else _weighed(row.text, row.weight))
        for row in rows
    ]
    return "\n".join(f"- **{label}**: {text}" if label else f"  - {text}" for label, text in texts)


def _copied(text: str) -> str:
    """As code, which nothing changes; a backtick would end it."""
    return escaped(text) if "`" in text or "\n" in text else f"`{text}`"


def _weighed(text: str, weight: str) -> str:
    return f"**{escaped(text)}**" if weight in ("good", "bad") else escaped(text)


def _table(given: Table) -> str:
    rule = ["---:" if number in given.numbers else "---" for number in range(len(given.header))]
    rows = [[escaped(cell) for cell in cells] for cells in (given.header, *given.rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [rows[0], rule, *rows[1:]])
