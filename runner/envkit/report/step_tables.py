"""Where a step's time goes, for people: its operators or its phases, of one profile or of two beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envkit.analysis import operator_times, phase_times
from envkit.analysis.operator_times import Figure, Profiled
from envkit.analysis.phase_times import PhaseTimes
from envkit.common.plain_table import plain_table
from envkit.report.messages import headings

WIDEST_NUMBER = 9


def operators(sides: Sequence[Profiled], top: int, out: Console) -> None:
    """Print milliseconds per step in each operator itself, on the thread that trains."""
    reference, other = sides[0], sides[1] if len(sides) > 1 else None
    table = _table(headings.OPERATORS, ("calls", *_of_sides(sides)), ("ratio", "change") if other else ())
    for line in operator_times.lines(reference, other, top):
        cells = [operator_times.short_name(line.name), _calls(line)]
        for side, one in zip(sides, (line.reference, line.other), strict=False):
            cells += _cells(one.ms, side.whole_ms) if one else ["-", "-"]
        if other:
            cells += [f"{line.ratio:.2f}" if line.ratio else "-", f"{line.difference_ms:+.2f}"]
        table.add_row(*map(Text, cells))
    whole = [cell for side in sides for cell in (f"{side.whole_ms.median:.2f}", "100%")]
    if other:
        before, now = reference.whole_ms.median, other.whole_ms.median
        whole += [f"{before / now:.2f}", f"{now - before:+.2f}"]
    table.add_row("forward pass" if reference.forward_ms else "whole step", "", *whole, style="bold")
    out.print(table)


def outside_the_profiler(sides: Sequence[Profiled], out: Console) -> None:
    """Print times and page faults of steps that no profiler slowed down."""
    figures = ("ms/step", "user ms", "system ms", "faults/step")
    table = plain_table((headings.WITHOUT_PROFILER, *figures), right=figures)
    for side in sides:
        table.add_row(side.arm, f"{side.step_ms.median:.2f}", f"{side.user_ms.median:.2f}",
                      f"{side.system_ms.median:.2f}", f"{side.faults.median:,.0f}")  # fmt: skip
    out.print(table)


def phases(sides: Sequence[PhaseTimes], compared: bool, out: Console) -> None:
    """Print milliseconds per step in each phase; if ``compared``, what the second profile saves, with intervals."""
    reference, other = sides[0], sides[1] if len(sides) > 1 else None
    _phases(
        headings.PHASES, sides, phase_times.lines(reference, other), [side.step_ms for side in sides], compared, out
    )
    if reference.batch is None:
        return
    out.print()
    of_all = [side.batch_ms for side in sides]
    _phases(headings.BATCHES, sides, phase_times.batch_lines(reference, other), of_all, compared, out)


def _phases(
    what: str,
    sides: Sequence[PhaseTimes],
    lines: Iterable[phase_times.Line],
    of_all: Sequence[Figure],
    compared: bool,
    out: Console,
) -> None:
    two = len(sides) > 1
    table = _table(what, _of_sides(sides), ("saved", "95% interval") if two else ())
    for line in lines:
        cells = [line.name]
        for one, whole in zip((line.reference, line.other), of_all, strict=False):
            cells += _cells(one, whole) if one else []
        if two:
            saved = line.saved if compared else None
            cells += [f"{saved.estimate:+.2f}", f"{saved.low:+.2f} to {saved.high:+.2f}"] if saved else ["-", "-"]
        table.add_row(*map(Text, cells), style="bold" if line.name.startswith("whole ") else "")
    out.print(table)


def _of_sides(sides: Sequence[Profiled] | Sequence[PhaseTimes]) -> tuple[str, ...]:
    return tuple(name for side in sides for name in (side.arm, "share"))


def _table(first: str, numbers: Sequence[str], differences: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column(first, overflow="fold")
    for head in numbers:
        table.add_column(head, justify="right", overflow="fold", max_width=WIDEST_NUMBER)
    for head in differences:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _cells(figure: Figure, whole: Figure) -> list[str]:
    """Milliseconds, and their share of all."""
    return [f"{figure.median:.2f}", f"{figure.median / whole.median:.1%}"]


def _calls(line: operator_times.Line) -> str:
    counts = {f"{one.calls:g}" for one in (line.reference, line.other) if one and one.calls}
    return " / ".join(sorted(counts)) if counts else ""
