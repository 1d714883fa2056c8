"""A table as terminals show it: without lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.table import Table


def plain_table(columns: Sequence[str], right: Collection[str] = (), fold: bool = False) -> Table:
    """``right`` are the columns that stand there. ``fold``: what is too wide for a column goes on below itself."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold" if fold else "ellipsis")
    return table
