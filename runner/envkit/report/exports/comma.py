"""Comma-separated values (RFC 4180, but for the end of lines): a line of names, then a line for each row."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from envkit.common.printable import encoded
from envkit.report.exports.rows import Row, columns

# How a cell begins that spreadsheets compute. Some take the wide forms of Chinese and Japanese keyboards as well.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def render(rows: Sequence[Row]) -> bytes:
    """Return the file. What is not known is empty; yes and no are ``true`` and ``false``.

    An apostrophe precedes a text that a spreadsheet would take for a formula (OWASP, CSV injection).
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, columns(rows), lineterminator="\n")
    writer.writerow({name: _text(name) for name in writer.fieldnames})
    writer.writerows({name: _text(value) for name, value in row.items()} for row in rows)
    return encoded(out.getvalue())


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return str(value).lower() if isinstance(value, bool) else value
