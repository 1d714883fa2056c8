"""Print a summary for people, on one screen of 80 columns; ``runner.details`` prints the rest."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from runner import across, advice, gpu_wording, grid, image_wording, ranking, scaling_wording, tables, wording
from runner.learning import learnt
from runner.summary import Summary
from runner.wording import Row

WIDTH = 80
LABEL_WIDTH = 9
# What may be a command to paste, by its label, and how that begins.
PASTED, COMMAND = ("next", "use it", "record"), "runner "
STYLES = {"good": "bold green", "bad": "bold red", "plain": ""}
STDERR_LINES = 3
BLANKS = re.compile(" +(?=\n)")


class _Console(Console):
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


def show(summary: Summary, folder: str, out: Console) -> None:
    """What was found, how sure it is, and what to do next; ``folder`` is where the record is."""
    if summary.synthetic:
        out.print(Text("SYNTHETIC DATA: this is not Fashion-MNIST. Losses and accuracy mean nothing.", "bold red"))
    items(out, image_wording.introduction(summary))
    if summary.plan.across:
        _several_workloads(summary, out)
        items(out, [*across.wins(summary), *wording.of_many(summary)])
    elif grid.is_grid(summary.plan):
        grid.show(summary, out)
        if measured := grid.cells(summary):
            item(out, "least", grid.best(measured))
    elif ranking.many(summary):
        ranked(summary, out)
    else:
        compared = wording.verdicts(summary)
        items(out, compared, width=max([LABEL_WIDTH, *(len(row.label) + 2 for row in compared)]))
        if compared:
            out.print()
        table(summary, out)
        differences(summary, out, image_wording.SHOWN)
    items(out, scaling_wording.rows(summary))
    items(out, [*wording.certainty(summary), *wording.evidence(summary), *gpu_wording.rows(summary), *learnt(summary)])
    failures(summary, out)
    for finding in ranking.findings(summary):
        item(out, finding["severity"], f"{finding['seen']}: {finding['why']}")
    items(out, advice.rows(summary))
    item(out, "machine", wording.machine(summary))
    out.print(Text(f"record   {folder}"), soft_wrap=True)
    details = f"runner report {shlex.quote(folder)} --details"
    out.print(Text(f"         all settings, evidence and commands: {details}"), soft_wrap=True)


def items(out: Console, rows: Iterable[Row], width: int = LABEL_WIDTH) -> None:
    for row in rows:
        item(out, row.label, row.text, STYLES[row.weight], width)


def item(out: Console, label: str, text: str, style: str = "", width: int = LABEL_WIDTH) -> None:
    """A label in a column of its own, so that a long text goes on below itself.

    What has a command in it is one line, however long: broken by line ends that could not be pasted.
    """
    if label in PASTED and COMMAND in text:
        out.print(Text(f"{label:<{width}}").append(text, style), soft_wrap=True)
        return
    grid = Table.grid()
    grid.add_column(width=width)
    grid.add_column(overflow="fold")
    grid.add_row(label, Text(text, style))
    out.print(grid)


def table(summary: Summary, out: Console) -> None:
    """What each arm took, as medians over its samples."""
    if not summary.measured:
        return
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(tables.header(summary)):
        shown.add_column(column, justify="right" if number else "left")
    for one in summary.measured:
        shown.add_row(*tables.cells(summary, one))
    for row in tables.book(summary):
        shown.add_row(*row, style="dim")
    out.print(shown)
    out.print()


def differences(summary: Summary, out: Console, most: int | None = None) -> None:
    """In what images differ that are compared: all of it, or ``most`` lines."""
    for arm in summary.plan.compared:
        found = summary.image_differences.get(arm.name, [])
        if not found:
            continue
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for number, column in enumerate(image_wording.header(summary, arm)):
            shown.add_column(Text(column), overflow="fold", no_wrap=number == 0)
        for cells in image_wording.rows(found, most):
            shown.add_row(*map(Text, cells))
        out.print(shown)
        if most is not None and (rest := image_wording.rest(found)):
            out.print(Text(rest, "dim"))
        out.print()


def _several_workloads(summary: Summary, out: Console) -> None:
    """Which profile wins where, and what was trained there."""
    styles = [STYLES[ranking.weight(summary, arm.name)] for arm, _ in across.compared(summary)]
    _print(across.HEADER, across.rows(summary), {2}, styles, out, narrow=True)
    trained = across.trained(summary)
    _print(across.TRAINED, trained, {2, 3, 4}, [""] * len(trained), out)


def ranked(summary: Summary, out: Console) -> None:
    """Many profiles, the fastest first, and what became of their losses."""
    styles = [STYLES[ranking.weight(summary, name)] for name in ranking.order(summary)]
    _print(ranking.header(summary), ranking.cells(summary), {1, 4}, styles, out)
    items(out, wording.of_many(summary))


def _print(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: set[int],
    styles: Sequence[str],
    out: Console,
    narrow: bool = False,
) -> None:
    """A table, if there are rows; ``numbers`` are the columns that stand on the right."""
    if not rows:
        return
    shown = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=narrow)
    for number, column in enumerate(header):
        shown.add_column(column, justify="right" if number in numbers else "left", overflow="fold")
    for cells, style in zip(rows, styles, strict=True):
        shown.add_row(*cells, style=style)
    out.print(shown)
    out.print()


def failures(summary: Summary, out: Console, node: str = "") -> None:
    """Which workers failed, with the last lines that each printed; ``node`` is where, if there are several."""
    for failure in summary.failures:
        where = f"{f'{node}: ' if node else ''}block {failure['block'] + 1}, {failure['arm']}"
        out.print(Text(f"FAILED   {where}: the worker {failure['problem']}", "bold red"))
        for line in failure["stderr"].strip().splitlines()[-STDERR_LINES:]:
            out.print(Text(f"         | {line}"), soft_wrap=True)
