"""Rows as tables: comma-separated values, JSON and Apache Parquet. All have the columns of all rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from envkit.common.codec import finite
from envkit.common.printable import encoded
from envkit.report.exports.rows import Row, columns

# How a cell begins that spreadsheets compute. Some take the wide forms of Chinese and Japanese keyboards as well.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def to_csv(rows: Sequence[Row]) -> bytes:
    """Return comma-separated values (RFC 4180, but for the end of lines): a line of names, then one for each row.

    An unknown value is empty; yes and no are ``true`` and ``false``. An apostrophe precedes a text that a spreadsheet
    would take for a formula (OWASP, CSV injection).
    """
    names = columns(rows)
    lines = [_line(names), *(_line([row.get(name) for name in names]) for row in rows)] if names else []
    return encoded("".join(lines))


def to_json(rows: Sequence[Row]) -> bytes:
    """Return a JSON array with an object for each row, one in a line.

    Every object has every column; unknown values, and numbers that JSON does not have, are null.
    """
    names = columns(rows)
    lines = (json.dumps({name: finite(row.get(name)) for name in names}, allow_nan=False) for row in rows)
    return ("[" + ",\n ".join(lines) + "]\n").encode()


def to_parquet(rows: Sequence[Row]) -> bytes:
    """Return a Parquet file. pyarrow chooses the columns' types: numbers, texts, yes or no.

    A column whose values are of several kinds, or too large for 64 bits, becomes one of texts. A column without any
    value becomes one of numbers, as it is in runs that have values.
    """
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({encoded(name).decode(): _column([row.get(name) for row in rows]) for name in columns(rows)})
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


def _line(cells: Sequence[object]) -> str:
    """Return one line. A carriage return in a text is quoted: for other readers it would end the line."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([_cell(cell) for cell in cells])
    return f"{out.getvalue()[:-2]}\n"


def _cell(value: object) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return str(value).lower() if isinstance(value, bool) else value


def _column(values: Sequence[object]) -> object:
    import pyarrow

    values = [encoded(value).decode() if isinstance(value, str) else value for value in values]
    try:
        array = pyarrow.array(values)
        return array.cast(pyarrow.float64()) if array.type == pyarrow.null() else array
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        return pyarrow.array([None if value is None else str(value) for value in values])
