"""The picture of the map: a row for each model, a column for each profile, and how deep a colour is says how much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from envkit.analysis.result import Comparison
from envkit.report.judgement import losses_differ
from envkit.report.pictures import style
from envkit.stats.verdict import Verdict

from benchmarks.gallery_runs import Run, ratio

ALTERNATIVE = "The speedup of each profile over the baseline, for each model of the gallery"
# Inches.
WIDTH, ROW, REST = 9.0, 0.43, 1.3
COLOURS = {Verdict.FASTER: style.BETTER, Verdict.SLOWER: style.WORSE}
# How much of its colour a cell has: what is written in it must stay readable, in a light theme and in a dark one.
FAINTEST, DEEPEST = 0.12, 0.6
# A speedup, or what it is 1 over of, that has the deepest colour even where nothing differs by as much.
LEAST_DEEPEST = 1.1
OTHER_LOSSES = "*"


def drawn(runs: Sequence[Run], profiles: Sequence[str]) -> str:
    """An element as ``style.to_svg`` makes it."""
    with style.matplotlib_figure((WIDTH, ROW * len(runs) + REST)) as figure:
        draw(figure, runs, profiles)
        return style.to_svg(figure, "gallery", ALTERNATIVE)


def draw(area: Any, runs: Sequence[Run], profiles: Sequence[str]) -> None:
    axes = area.subplots()
    axes.set_xlim(-0.5, len(profiles) - 0.5)
    axes.set_ylim(len(runs) - 0.5, -0.5)
    deepest = _deepest(runs)
    for row, run in enumerate(runs):
        _name(axes, row, run)
        for column, profile in enumerate(profiles):
            _cell(axes, row, column, run, run.of(profile), deepest)
    axes.set_yticks([])
    axes.set_xticks(range(len(profiles)), [style.short(name).replace("-", "-\n") for name in profiles])
    axes.xaxis.tick_top()
    axes.tick_params(axis="x", length=0)
    axes.spines[:].set_visible(False)
    style.legend(area, _handles(runs), narrow=False)


def _deepest(runs: Sequence[Run]) -> float:
    """The logarithm of the speedup, or of what it is 1 over of, that has the deepest colour."""
    sure = [comparison for run in runs for comparison in run.result.comparisons if comparison.verdict in COLOURS]
    return max([math.log(LEAST_DEEPEST), *(abs(math.log(ratio(comparison))) for comparison in sure)])


def _name(axes: Any, row: int, run: Run) -> None:
    side = axes.get_yaxis_transform()  # x as a share of the axes' width, y in rows
    axes.text(-0.015, row - 0.04, run.model.title, transform=side, va="bottom", ha="right")
    axes.text(-0.015, row + 0.06, run.model.kind, transform=side, va="top", ha="right", size=7.5, color=style.SOFT)


def _cell(axes: Any, row: int, column: int, run: Run, comparison: Comparison, deepest: float) -> None:
    """A speedup that is surely one has a colour; another one has none, and stands there in grey."""
    from matplotlib.patches import Rectangle

    colour = COLOURS.get(comparison.verdict)
    looks: dict[str, Any] = {"facecolor": "none", "edgecolor": style.FAINT, "linewidth": 0.6}
    if colour is not None:
        depth = FAINTEST + (DEEPEST - FAINTEST) * abs(math.log(ratio(comparison))) / deepest
        looks = {"facecolor": colour, "alpha": depth, "linewidth": 0}
    axes.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, **looks))
    text = f"{comparison.speedup.ratio:.2f}" if comparison.speedup else "-"
    text += OTHER_LOSSES if losses_differ(comparison) else ""
    how = {"color": style.INK, "weight": "bold"} if colour is not None else {"color": style.SOFT}
    axes.text(column, row, text, va="center", ha="center", **how)


def _handles(runs: Sequence[Run]) -> list[Any]:
    from matplotlib.patches import Patch

    handles = [
        Patch(color=colour, alpha=DEEPEST, linewidth=0, label=f"{verdict}: the deeper the more")
        for verdict, colour in COLOURS.items()
    ]
    unsure = "the interval includes 1: it may make no difference"
    handles.append(Patch(facecolor="none", edgecolor=style.FAINT, label=unsure))
    if any(losses_differ(comparison) for run in runs for comparison in run.result.comparisons):
        handles.append(style.handle(f"{OTHER_LOSSES} its losses differ", linestyle="none"))
    return handles
