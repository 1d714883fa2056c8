"""The time that input takes against the size of a batch: a line for each number of DataLoader workers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from envkit.analysis.result import Result
from envkit.bench.arms import View
from envkit.rendering import text
from envkit.report import grid
from envkit.report.messages import pictures as messages
from envkit.report.pictures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

# By M. Okabe and K. Ito, as all colours here, but for those that are pale on paper; with more workers than these they
# begin again, with other markers.
COLOURS = (style.NEITHER, style.WORSE, style.BETTER, "#cc79a7", style.INK)
MARKERS = ("o", "s", "^", "D")
COLUMNS = 2


def missing(result: Result) -> str | None:
    if result.study.view is not View.LOADERS:
        return messages.NO_LOADER_SETTINGS
    return None if grid.cells(result) else messages.NO_SAMPLE


def height(result: Result, narrow: bool) -> float:
    shown = len(grid.variants(grid.cells(result)))
    return math.ceil(shown / (1 if narrow else COLUMNS)) * 3.0 + 0.8


def draw(area: FigureBase, result: Result, narrow: bool) -> None:
    variants = grid.variants(grid.cells(result))
    columns = 1 if narrow else min(COLUMNS, len(variants))
    rows = math.ceil(len(variants) / columns)
    workers = sorted({number for variant in variants for number in variant.workers})
    places = area.subplots(rows, columns, squeeze=False, sharey=True)
    for number, axes in enumerate(places.flat):
        if number >= len(variants):
            axes.set_visible(False)
            continue
        _lines(axes, variants[number], workers)
        axes.set_title(text(variants[number].title), loc="left", size=9)
        if number % columns == 0:
            axes.set_ylabel(text(grid.UNIT))
    style.legend(area, places.flat[0].get_legend_handles_labels()[0], narrow)


def _lines(axes: Axes, variant: grid.Variant, workers: list[int]) -> None:
    batches = variant.batches
    for number in variant.workers:
        which = workers.index(number)
        own = [(batches.index(batch), cell) for batch in batches if (cell := variant.cells.get((number, batch)))]
        errors = [[cell.seconds - cell.least for _, cell in own], [cell.most - cell.seconds for _, cell in own]]
        axes.errorbar(
            [place for place, _ in own], [cell.seconds for _, cell in own], yerr=errors, capsize=2, linewidth=1.4,
            color=COLOURS[which % len(COLOURS)], marker=MARKERS[which // len(COLOURS) % len(MARKERS)], markersize=4,
            label=grid.of_workers(number),
        )  # fmt: skip
    axes.set_xticks(range(len(batches)), [str(batch) for batch in batches])
    axes.set_xlabel("batch")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
