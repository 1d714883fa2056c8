"""Comma-separated values (RFC 4180, but for the end of lines): a line of names, then a line for each row."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from envkit.report.exports.rows import Row, columns


def render(rows: Sequence[Row]) -> bytes:
    """Return what is not known is empty; yes and no are ``true`` and ``false``."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _text(value) for name, value in row.items()} for row in rows)
    return out.getvalue().encode()


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
