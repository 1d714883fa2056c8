"""Print a report for people, on one screen of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from rich import table as rich_table
from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from envkit.common.console import HarmlessConsole
from envkit.common.printable import harmless
from envkit.messages import Message
from envkit.rendering import text
from envkit.report.parts import CAUTIONS, Fold, Listing, Note, Part, Report, Row, Rows, Table

WIDTH = 80
LABEL_WIDTH = 10
# Labels of commands to paste, by commands that have no model of their report.
PASTED = ("use it", "record")
STYLES = {"good": "bold green", "bad": "bold red", "plain": "", "soft": "dim"}
STDERR_LINES = 3
BLANKS = re.compile(" +(?=\n)")


class _Console(HarmlessConsole):
    """rich ends the program with status 1 when the reader of its output has gone; that is for the program to decide.

    It fills up the columns of tables with blanks: to the end of a line they are left out of what is no terminal.
    """

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        printed = super()._render_buffer(buffer)
        return printed if self.is_terminal else BLANKS.sub("", printed)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Return the terminal, or plain text of a fixed width if the output goes to a file."""
    plain = _Console()
    return plain if plain.is_terminal else _Console(width=WIDTH)


def show(report: Report, out: Console) -> None:
    """Print a report."""
    headline(report.headline, out)
    beside, *sections = report.sections
    if beside.name == CAUTIONS:
        show_parts(beside.parts, out)
    else:
        sections = [beside, *sections]
    out.print()
    blank = True
    for section in sections:
        if section.full and not blank:
            out.print()
        if section.full:
            out.print(Text(f"{section.title}", "bold"))
        blank = show_parts(section.parts, out)


def headline(verdict: Row, out: Console) -> None:
    """Print the verdict."""
    out.print(Text(text(verdict.text), STYLES[verdict.weight] or "bold"))


def show_parts(parts: Iterable[Part], out: Console) -> bool:
    """Print one below the other, with a blank line after what stands out; return whether the last line is blank."""
    blank = False
    for part in parts:
        blank = isinstance(part, Table | Fold) or (isinstance(part, Rows) and part.bold)
        if isinstance(part, Rows):
            items(out, part.rows, max(LABEL_WIDTH, *(len(row.label) + 2 for row in part.rows)))
        elif isinstance(part, Table):
            _table(part, out)
        elif isinstance(part, Listing):
            for line in part.lines:
                out.print(Text(f"  {line}"), soft_wrap=True)
        elif isinstance(part, Note):
            out.print(Text(text(part.text), STYLES[part.weight]))
        elif isinstance(part, Fold):
            out.print(Text(text(part.title), STYLES[part.weight] or "bold"))
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


def item(
    out: Console, label: str, message: Message | str, style: str = "", width: int = LABEL_WIDTH, whole: bool = False
) -> None:
    """Print a label in a column of its own, so that a long text goes on below itself.

    What is ``whole``, or has the label of a command, is one line, however long: a broken line could not be pasted.
    """
    words = Text(harmless(text(message) if isinstance(message, Message) else message), style)
    if whole or label in PASTED:
        out.print(Text(f"{label:<{width}}").append_text(words), soft_wrap=True)
        return
    # rich's own grid of two columns takes several times as long, and reports have dozens of these
    beside = out.render_str(label)
    for line in words.wrap(out, max(out.width - width, 1), overflow="fold"):
        beside.truncate(width, overflow="ellipsis", pad=True)
        out.print(beside.append_text(line), soft_wrap=True)
        beside = Text()


def _table(table: Table, out: Console) -> None:
    """Print a table. Its columns move closer if it is too wide, and each row becomes a list if that is not enough."""
    shown = rich_table.Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(table.header):
        aligned: Literal["left", "right"] = "right" if number in table.numbers else "left"
        # A name that was cut in two could not be copied. Where all else is numbers, these need the room more.
        whole = number == 0 and len(table.header) - 1 not in table.numbers
        shown.add_column(Text(column), justify=aligned, overflow="fold", no_wrap=whole)
    weights = table.weights or ["plain"] * len(table.rows)
    for cells, weight in zip(table.rows, weights, strict=True):
        shown.add_row(*(Text(harmless(cell)) for cell in cells), style=STYLES[weight])
    needed = out.measure(shown, options=out.options.update_width(10 * out.width)).maximum
    shown.collapse_padding = needed > out.width
    if needed > out.width and out.width < WIDTH:
        _listed(table, weights, out)
    else:
        out.print(shown)
    if table.note:
        out.print(Text(text(table.note), STYLES["soft"]))


def _listed(table: Table, weights: Sequence[str], out: Console) -> None:
    """Print each row as its name, and its cells below that with the headers of their columns."""
    width = max(map(len, table.header)) + 4
    for (name, *cells), weight in zip(table.rows, weights, strict=True):
        out.print(Text(name, STYLES[weight] or "bold"))
        for header, cell in zip(table.header[1:], cells, strict=True):
            if cell:
                item(out, f"  {header}", cell, STYLES[weight], width)
