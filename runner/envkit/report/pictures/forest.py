"""Speedups with their intervals on a logarithmic axis, where twice as fast and half as fast are equally far from 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envkit.analysis import ranking
from envkit.analysis.result import Comparison, Result
from envkit.bench.arms import View
from envkit.bench.study import Study
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import judgement, scaling, tables
from envkit.report.messages import headings
from envkit.report.messages import pictures as messages
from envkit.report.pictures import style
from envkit.stats.interval import ERROR_RATE, Speedup

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase
    from matplotlib.lines import Line2D


def missing(result: Result) -> str | None:
    if not result.comparisons:
        return messages.NO_COMPARISON
    if result.study.one_run_each:
        return messages.ONE_RUN_EACH
    if not any(comparison.speedup for comparison in result.comparisons):
        return messages.NO_INTERVAL
    return None


def height(result: Result, narrow: bool) -> float:
    return len(result.comparisons) * (0.58 if narrow else 0.42) + (2.0 if narrow else 1.4)


def draw(area: FigureBase, result: Result, narrow: bool) -> None:
    axes = area.subplots()
    colours = style.colours(result)
    low, high = _limits(result)
    room = math.log(high / low) * 0.04
    style.log_axis(axes.xaxis, low * math.exp(-room), high * math.exp(room), 5 if narrow else 8)
    compared = ranking.ranked(result.comparisons, result.study.view)
    rows = len(compared)
    axes.set_ylim(rows - 0.5, -0.75 if narrow else -0.5)
    for row, one in enumerate(compared):
        _row(axes, row, one, colours[one.arm])
        _label(axes, row, one, colours[one.arm], narrow)
    style.name_rows(axes, [comparison.arm for comparison in compared], narrow)
    study = result.study
    reference = style.short(study.reference.profile if study.view is View.WORKLOADS else study.reference.name)
    unit = messages.TimeOver(reference, tables.first_column(study.view, result.engines))
    style.name_axis(
        axes, (unit, *_other_references(study), scaling.steps(bool(study.at_once), study.weak_ranks)), narrow
    )
    for side_name, side, away in (
        ("← slower", "right", -6),
        ("faster →", "left", 6),
    ):  # on either side of 1, above the rows
        axes.annotate(side_name, (1, 1), (away, 2), xycoords=axes.get_xaxis_transform(), textcoords="offset points",
                      ha=side, va="bottom", size=9, color=style.SOFT)  # fmt: skip
    style.legend(area, [*_background(axes, result), *_handles(result)], narrow)


def _other_references(study: Study) -> list[Message]:
    """Return whose time the axis is of in those rows of an ablation that are not beside the baseline."""
    if study.view is not View.SETTINGS:
        return []
    names = {study.reference_of(arm).name for arm in study.compared} - {study.reference.name}
    whole = [messages.WithoutOver(style.short(study.whole.name))] if study.whole.name in names else []
    libraries = {setting.needs for setting in study.ablated if setting.beside in names and setting.needs is not None}
    return [*whole, *map(messages.LibraryOver, sorted(libraries))]


def _intervals(result: Result) -> Iterator[Speedup]:
    for comparison in result.comparisons:
        yield from (speedup for speedup in (comparison.speedup, comparison.without_interference) if speedup is not None)


def _floor(result: Result) -> float | None:
    return judgement.noise_floor(
        result, max(comparison.speedup.blocks for comparison in result.comparisons if comparison.speedup)
    )


def _limits(result: Result) -> tuple[float, float]:
    shares = [result.study.stopping.margin, _floor(result) or 0.0]
    ends = [(speedup.low, speedup.high) for speedup in _intervals(result)]
    ends += [(1 / (1 + share), 1 + share) for share in shares]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _row(axes: Axes, row: int, comparison: Comparison, colour: str) -> None:
    quiet = comparison.without_interference
    for speedup, down, width, size, faint in ((comparison.speedup, 0.0, 2.0, 5.5, 1.0), (quiet, 0.26, 1.4, 4.0, 0.45)):
        if speedup is not None:
            axes.plot([speedup.low, speedup.high], [row + down] * 2, color=colour, alpha=faint, linewidth=width,
                      solid_capstyle="butt")  # fmt: skip
            axes.plot(speedup.ratio, row + down, "s", color=colour, alpha=faint, markersize=size, markeredgewidth=0)


def _label(axes: Axes, row: int, comparison: Comparison, colour: str, narrow: bool) -> None:
    """The result in figures: beside its row or, on a narrow picture, with the profile's name above it."""
    speedup = comparison.speedup
    figures = f"{speedup.ratio:.3f} ({speedup.low:.3f} to {speedup.high:.3f})" if speedup else comparison.words.lower()
    box: dict[str, object] = {
        "facecolor": style.PAPER,
        "edgecolor": "none",
        "pad": 1.0,
    }  # the line at 1 may go through it
    style.label(axes, row, comparison.arm, figures, colour if speedup else style.SOFT, narrow, 0.24, box)


def _background(axes: Axes, result: Result) -> list[Artist]:
    margin, floor = result.study.stopping.margin, _floor(result)
    axes.axvline(1, color=style.INK, linewidth=1, zorder=1.2)
    band = axes.axvspan(1 / (1 + margin), 1 + margin, color=style.BAND, linewidth=0, zorder=0)
    band.set_label(text(messages.WithinMargin(margin)))
    if floor is None:
        return [band]
    lines = [axes.axvline(edge, color=style.SOFT, linewidth=1, linestyle=":") for edge in (1 / (1 + floor), 1 + floor)]
    lines[0].set_label(text(messages.WithinNoise(floor)))
    return [band, lines[0]]


def _handles(result: Result) -> list[Line2D]:
    looks: dict[str, object] = {"color": style.INK, "marker": "s"}
    handles = [style.handle(text(messages.IntervalOfSpeedup(1 - ERROR_RATE)), **looks, linewidth=2, markersize=5.5)]
    if any(comparison.without_interference for comparison in result.comparisons):
        looks |= {"linewidth": 1.4, "markersize": 4, "alpha": 0.45}
        handles.append(style.handle(headings.SAME_WITHOUT_DISTURBED, **looks))
    return handles
