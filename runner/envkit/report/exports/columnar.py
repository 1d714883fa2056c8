"""Apache Parquet, through pyarrow, which chooses the columns' types: numbers, texts, yes or no."""

from __future__ import annotations

import io
from collections.abc import Sequence

from envkit.common.printable import encoded
from envkit.report.exports.rows import Row, columns


def render(rows: Sequence[Row]) -> bytes:
    """A column whose values are of several kinds, or too large for 64 bits, becomes one of texts; one without any value
    one of numbers, which it is where there are some.
    """
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({encoded(name).decode(): _column([row.get(name) for row in rows]) for name in columns(rows)})
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


def _column(values: Sequence[object]) -> object:
    import pyarrow

    values = [encoded(value).decode() if isinstance(value, str) else value for value in values]
    try:
        array = pyarrow.array(values)
        return array.cast(pyarrow.float64()) if array.type == pyarrow.null() else array
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        return pyarrow.array([None if value is None else str(value) for value in values])
