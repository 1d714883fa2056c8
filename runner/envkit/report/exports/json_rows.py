"""JSON: an array with an object for each row, one in a line."""

from __future__ import annotations

import json
from collections.abc import Sequence

from envkit.analysis.result import finite
from envkit.report.exports.rows import Row, columns


def render(rows: Sequence[Row]) -> bytes:
    """Every object has every column; what is not known, and numbers that JSON does not have, are null."""
    names = columns(rows)
    lines = (json.dumps({name: finite(row.get(name)) for name in names}, allow_nan=False) for row in rows)
    return ("[" + ",\n ".join(lines) + "]\n").encode()
