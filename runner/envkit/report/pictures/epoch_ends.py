"""Time to begin an epoch: a row for each start method of DataLoader's workers, new ones or such that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envkit.analysis.result import Result
from envkit.bench.arms import View
from envkit.rendering import text
from envkit.report import epoch_ends
from envkit.report.messages import headings
from envkit.report.messages import pictures as messages
from envkit.report.pictures import style

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

COLOURS = {False: style.WORSE, True: style.BETTER}
ROW, FRAME = 0.3, 1.0  # inches


def missing(result: Result) -> str | None:
    if result.study.view is not View.LOADERS:
        return messages.NO_LOADER_SETTINGS
    return None if epoch_ends.cells(result) else messages.NO_EPOCH_ENDED


def height(result: Result, narrow: bool) -> float:
    measured = epoch_ends.cells(result)
    return ROW * len(measured) * (2 if narrow else 1) + FRAME * len(epoch_ends.groups(measured))


def draw(area: FigureBase, result: Result, narrow: bool) -> None:
    groups = epoch_ends.groups(epoch_ends.cells(result))
    ratios = [FRAME + ROW * len(group.cells) for group in groups]
    places = area.subplots(len(groups), 1, squeeze=False, sharex=True, height_ratios=ratios).flat
    for axes, group in zip(places, groups, strict=True):
        names = [f"{cell.settings.start}, {cell.kind}" for cell in group.cells]
        for row, (one, name) in enumerate(zip(group.cells, names, strict=True)):
            colour = COLOURS[one.settings.persistent]
            axes.barh(row, one.begin_s, height=0.6, color=colour)
            axes.plot([one.least_s, one.most_s], [row, row], color=style.INK, linewidth=1.2)
            style.label(axes, row, name, f"{one.begin_s:.2f} s", style.INK, narrow, 0.35)
        style.name_rows(axes, names, narrow)
        axes.set_ylim(len(group.cells) - 0.4, -0.9 if narrow else -0.6)
        axes.set_xlim(left=0)
        axes.set_title(text(group.title), loc="left", size=9)
    style.name_axis(places[-1], (headings.SECONDS_TO_BEGIN,), narrow)
