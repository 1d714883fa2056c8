"""Draw the map of a machine: a row for each training, a column for each profile; deeper colours for larger speedups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from envkit.report.pictures import style
from envkit.stats.verdict import Verdict

from benchmarks.gallery_atlas import Gain, Measured
from benchmarks.gallery_runs import Model

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALTERNATIVE = "The speedup of each profile over the baseline, for each model of the gallery"
# Inches.
WIDTH, ROW, REST = 9.0, 0.43, 1.3
COLOURS = {Verdict.FASTER: style.BETTER, Verdict.SLOWER: style.WORSE}
# A cell's share of its colour: its text must stay readable, in a light theme and in a dark one.
FAINTEST, DEEPEST = 0.12, 0.6
# A speedup, or its inverse, that has the deepest colour even where nothing differs by as much.
LEAST_DEEPEST = 1.1
OTHER_LOSSES = "*"


def drawn(trainings: Sequence[Measured], models: Mapping[str, Model], profiles: Sequence[str]) -> str:
    """Return an element as ``style.to_svg`` makes it."""
    with style.matplotlib_figure((WIDTH, ROW * len(trainings) + REST)) as figure:
        _draw(figure, trainings, models, profiles)
        return style.to_svg(figure, "gallery", ALTERNATIVE)


def _draw(figure: Figure, trainings: Sequence[Measured], models: Mapping[str, Model], profiles: Sequence[str]) -> None:
    axes = figure.subplots()
    axes.set_xlim(-0.5, len(profiles) - 0.5)
    axes.set_ylim(len(trainings) - 0.5, -0.5)
    deepest = _deepest(trainings)
    for row, measured in enumerate(trainings):
        _name(axes, row, models[measured.training])
        for column, profile in enumerate(profiles):
            _cell(axes, row, column, measured.gains.get(profile), deepest)
    axes.set_yticks([])
    axes.set_xticks(range(len(profiles)), [style.short(name).replace("-", "-\n") for name in profiles])
    axes.xaxis.tick_top()
    axes.tick_params(axis="x", length=0)
    axes.spines[:].set_visible(False)
    style.legend(figure, _handles(trainings), narrow=False)


def _deepest(trainings: Sequence[Measured]) -> float:
    """Return the logarithm of the speedup, or of its inverse, that has the deepest colour."""
    sure = [gain for measured in trainings for gain in measured.gains.values() if gain.verdict in COLOURS]
    return max([math.log(LEAST_DEEPEST), *(abs(math.log(gain.ratio)) for gain in sure)])


def _name(axes: Axes, row: int, model: Model) -> None:
    side = axes.get_yaxis_transform()  # x as a share of the axes' width, y in rows
    axes.text(-0.015, row - 0.04, model.title, transform=side, va="bottom", ha="right")
    axes.text(-0.015, row + 0.06, model.kind, transform=side, va="top", ha="right", size=7.5, color=style.SOFT)


def _cell(axes: Axes, row: int, column: int, gain: Gain | None, deepest: float) -> None:
    """Draw a speedup: in colour if its interval leaves out 1, else in grey."""
    from matplotlib.patches import Rectangle

    colour = COLOURS.get(gain.verdict) if gain else None
    corner, width, height = (column - 0.48, row - 0.46), 0.96, 0.92
    if gain is None or colour is None:
        axes.add_patch(
            Rectangle(corner, width, height, facecolor="none", edgecolor=style.FAINT, linewidth=0.6)
        )  # fmt: skip
    else:
        depth = FAINTEST + (DEEPEST - FAINTEST) * abs(math.log(gain.ratio)) / deepest
        axes.add_patch(Rectangle(corner, width, height, facecolor=colour, alpha=depth, linewidth=0))
    label = "-" if gain is None else f"{gain.ratio:.2f}{OTHER_LOSSES if gain.losses_differ else ''}"
    ink, weight = (style.SOFT, "normal") if colour is None else (style.INK, "bold")
    axes.text(column, row, label, va="center", ha="center", color=ink, weight=weight)


def _handles(trainings: Sequence[Measured]) -> list[Artist]:
    from matplotlib.patches import Patch

    handles: list[Artist] = [
        Patch(color=colour, alpha=DEEPEST, linewidth=0, label=f"{verdict}: the deeper the more")
        for verdict, colour in COLOURS.items()
    ]
    unsure = "the interval includes 1, or there are too few blocks for one"
    handles.append(Patch(facecolor="none", edgecolor=style.FAINT, label=unsure))
    if any(gain.losses_differ for measured in trainings for gain in measured.gains.values()):
        handles.append(style.handle(f"{OTHER_LOSSES} its losses differ", linestyle="none"))
    return handles
