"""Print a report for people, on one screen of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from rich import table as rich_table
from rich.console import Console
from rich.text import Text

from envkit.analysis.summary import Summary
from envkit.common.console import HarmlessConsole
from envkit.report import model
from envkit.report.parts import Fold, Listing, Note, Part, Row, Rows, Table

WIDTH = 80
LABEL_WIDTH = 9
# What may be a command to paste, by its label, and how that begins.
PASTED, COMMAND = ("next", "use it", "record"), "envkit "
STYLES = {"good": "bold green", "bad": "bold red", "plain": "", "soft": "dim"}
STDERR_LINES = 3
BLANKS = re.compile(" +(?=\n)")


class _Console(HarmlessConsole):
    """rich ends the program with status 1 when the reader of its output has gone; that is for the program to decide.

    It fills up the columns of tables with blanks: to the end of a line they are left out of what is no terminal.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as shown:
            super().print(*objects, **options)
        self.file.write(BLANKS.sub("", shown.get()))
        self.file.flush()

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """The terminal, or plain text of a fixed width where the output goes to a file."""
    plain = _Console()
    return plain if plain.is_terminal and plain.width >= WIDTH else _Console(width=WIDTH)


def show(summary: Summary, folder: str, out: Console, full: bool = False) -> None:
    """Print the report; ``folder`` is where the record is. A ``full`` one has evidence, settings and commands, too."""
    report = model.report_of(summary, folder, full=full)
    out.print(Text(report.headline.text, STYLES[report.headline.weight] or "bold"))
    out.print()
    blank = True
    for section in report.sections:
        if section.full and not blank:
            out.print()
        if section.full:
            out.print(Text(f"{section.title}", "bold"))
        blank = show_parts(section.parts, out)


def show_parts(parts: Iterable[Part], out: Console) -> bool:
    """Print one below the other, with a blank line after what stands out; return whether the last line is blank."""
    blank = False
    for part in parts:
        blank = isinstance(part, Table | Fold) or (isinstance(part, Rows) and part.bold)
        if isinstance(part, Rows):
            longest = max(len(row.label) for row in part.rows)
            items(out, part.rows, max(LABEL_WIDTH, longest + (2 if part.bold else 1)))
        elif isinstance(part, Table):
            _table(part, out)
        elif isinstance(part, Listing):
            for line in part.lines:
                out.print(Text(f"  {line}"), soft_wrap=True)
        elif isinstance(part, Note):
            out.print(Text(part.text, STYLES[part.weight]))
        elif isinstance(part, Fold):
            out.print(Text(part.title, STYLES[part.weight] or "bold"))
            if show_parts(part.parts, out):
                continue
        if blank:
            out.print()
    return blank


def items(out: Console, rows: Iterable[Row], width: int = LABEL_WIDTH) -> None:
    for row in rows:
        item(out, row.label, row.text, STYLES[row.weight], width, row.whole)
        for line in row.output.splitlines()[-STDERR_LINES:]:
            out.print(Text(f"{'':{width}}| {line}"), soft_wrap=True)


def item(out: Console, label: str, text: str, style: str = "", width: int = LABEL_WIDTH, whole: bool = False) -> None:
    """A label in a column of its own, so that a long text goes on below itself.

    What is ``whole``, or has a command in it, is one line, however long: broken by line ends it could not be pasted.
    """
    if whole or (label in PASTED and COMMAND in text):
        out.print(Text(f"{label:<{width}}").append(text, style), soft_wrap=True)
        return
    grid = rich_table.Table.grid()
    grid.add_column(width=width)
    grid.add_column(overflow="fold")
    grid.add_row(label, Text(text, style))
    out.print(grid)


def _table(given: Table, out: Console) -> None:
    """One that is too wide has its columns closer to each other."""
    shown = rich_table.Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(given.header):
        aligned: Literal["left", "right"] = "right" if number in given.numbers else "left"
        # A name that was cut in two could not be copied. Where all else is numbers, these need the room more.
        whole = number == 0 and len(given.header) - 1 not in given.numbers
        shown.add_column(Text(column), justify=aligned, overflow="fold", no_wrap=whole)
    for cells, weight in zip(given.rows, given.weights or ["plain"] * len(given.rows), strict=True):
        shown.add_row(*map(Text, cells), style=STYLES[weight])
    shown.collapse_padding = out.measure(shown, options=out.options.update_width(10 * out.width)).maximum > out.width
    out.print(shown)
    if given.note:
        out.print(Text(given.note, STYLES["soft"]))


def table(summary: Summary, out: Console) -> None:
    """What each arm took, as medians over its samples; nothing where none was measured."""
    took = model.took(summary)
    show_parts([took] if took.rows else [], out)


def failures(summary: Summary, out: Console, node: str = "") -> None:
    """Which workers failed, with the last lines that each printed; ``node`` is where, if there are several."""
    items(out, model.failures(summary, node))
