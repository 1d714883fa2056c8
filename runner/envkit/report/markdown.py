"""Lay out a report in GitHub's Markdown, for pull requests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envkit.rendering import text
from envkit.report.parts import Fold, Listing, Note, Part, Report, Row, Rows, Table

PARAGRAPH, NEXT = "\n\n", "\n"


def document(report: Report) -> str:
    """Return the page of a report that is wide, so that its tables have all columns."""
    written, in_list = f"**{escaped(text(report.headline.text))}**", False
    for part in (part for section in report.sections for part in section.parts):
        is_list = isinstance(part, Rows)
        written += (NEXT if in_list and is_list else PARAGRAPH) + _part(part)
        in_list = is_list
    return f"{written}\n"


def escaped(words: str) -> str:
    """``words`` on one line, with nothing that Markdown, a table or HTML would take for its own."""
    return re.sub(r"[\\|*`\[\]]", r"\\\g<0>", words).replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")


def _part(part: Part) -> str:
    """One that has no pictures."""
    if isinstance(part, Rows):
        return _items(part.rows)
    if isinstance(part, Table):
        return "\n\n".join(filter(None, (_table(part), escaped(text(part.note)) if part.note else "")))
    if isinstance(part, Fold):
        return "\n\n".join([f"{escaped(text(part.title))}:", *map(_part, part.parts)])
    if isinstance(part, Listing):
        return "\n".join(f"    {line}" for line in part.lines)
    return _weighed(text(part.text), part.weight) if isinstance(part, Note) else ""


def _items(rows: Sequence[Row]) -> str:
    """A list; rows without a label go on below the one before them."""
    texts = [(escaped(row.label), _shown(row)) for row in rows]
    return "\n".join(f"- **{label}**: {words}" if label else f"  - {words}" for label, words in texts)


def _shown(row: Row) -> str:
    words = text(row.text)
    return _copied(words) if row.whole and row.label else _weighed(words, row.weight)


def _copied(words: str) -> str:
    """As code, which nothing changes; a backtick would end it."""
    return escaped(words) if "`" in words or "\n" in words else f"`{words}`"


def _weighed(words: str, weight: str) -> str:
    return f"**{escaped(words)}**" if weight in ("good", "bad") else escaped(words)


def _table(table: Table) -> str:
    rule = ["---:" if number in table.numbers else "---" for number in range(len(table.header))]
    rows = [[escaped(cell) for cell in cells] for cells in (table.header, *table.rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [rows[0], rule, *rows[1:]])
