"""Comma-separated values (RFC 4180, but for the end of lines): a line of names, then a line for each row."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from envkit.common.printable import encoded
from envkit.report.exports.rows import Row, columns

# How a cell begins that spreadsheets compute. Some take the wide forms of Chinese and Japanese keyboards as well.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def render(rows: Sequence[Row]) -> bytes:
    """Return the file. An unknown value is empty; yes and no are ``true`` and ``false``.

    An apostrophe precedes a text that a spreadsheet would take for a formula (OWASP, CSV injection).
    """
    names = columns(rows)
    lines = [_line(names), *(_line([row.get(name) for name in names]) for row in rows)] if names else []
    return encoded("".join(lines))


def _line(cells: Sequence[object]) -> str:
    """Return one line. A carriage return in a text is quoted: for other readers it would end the line."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([_text(cell) for cell in cells])
    return f"{out.getvalue()[:-2]}\n"


def _text(value: object) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return str(value).lower() if isinstance(value, bool) else value
