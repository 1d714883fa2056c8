"""Pictures of a result: speedups, step times, and the course of the run; as SVG for a page, as PNG for a paper.

matplotlib is imported only when a picture is asked for. The same result always gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envkit.analysis.result import Result
from envkit.rendering import text
from envkit.report.messages import headings
from envkit.report.pictures import (
    distributions,
    epoch_ends,
    forest,
    learning_curves,
    loader_heatmap,
    style,
    time_course,
)

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

PNG_DPI = 200
# Inches. The narrow one is for a phone held upright.
WIDE, NARROW = 7.6, 3.7
# Inches that the title of a picture takes where several share a figure, and one that is left out.
TITLE, LEFT_OUT = 0.35, 0.7


@dataclass(frozen=True)
class Picture:
    """``height`` and ``draw`` are told whether the picture is to be narrow."""

    name: str
    missing: Callable[[Result], str | None]  # why a result has no such picture, or None
    height: Callable[[Result, bool], float]  # in inches
    draw: Callable[[FigureBase, Result, bool], None]

    @property
    def title(self) -> str:
        """Its title, which stands above it where several share a figure."""
        return headings.PICTURES[self.name]


FOREST = Picture("forest", forest.missing, forest.height, forest.draw)
DISTRIBUTIONS = Picture("distributions", distributions.missing, distributions.height, distributions.draw)
TIME_COURSE = Picture("time-course", time_course.missing, time_course.height, time_course.draw)
GRID = Picture("grid", loader_heatmap.missing, loader_heatmap.height, loader_heatmap.draw)
EPOCH_ENDS = Picture("epoch-ends", epoch_ends.missing, epoch_ends.height, epoch_ends.draw)
OF_LOADER = (GRID, EPOCH_ENDS)
LEARNING_CURVES = Picture("learning-curves", learning_curves.missing, learning_curves.height, learning_curves.draw)
PICTURES = (FOREST, DISTRIBUTIONS, TIME_COURSE)


def named(name: str) -> Picture:
    return next(one for one in (*OF_LOADER, LEARNING_CURVES, *PICTURES) if one.name == name)


def svg(picture: Picture, result: Result, narrow: bool, alternative: str) -> str:
    """Return an ``<svg>`` element whose colours follow the page's. ``alternative`` is read out instead."""
    size = (NARROW if narrow else WIDE, picture.height(result, narrow))
    with style.matplotlib_figure(size) as figure:
        picture.draw(figure, result, narrow)
        return style.to_svg(figure, f"{picture.name}-{'narrow' if narrow else 'wide'}", alternative)


def png(result: Result) -> bytes:
    """Return all pictures below each other; of a run of the loader's settings the one that shows all of them.

    Learning curves are among them where there are some.
    """
    curves = () if LEARNING_CURVES.missing(result) else (LEARNING_CURVES,)
    chosen = [picture for picture in OF_LOADER if not picture.missing(result)] or (*PICTURES, *curves)
    reasons = [picture.missing(result) for picture in chosen]
    heights = [
        LEFT_OUT if reason else picture.height(result, False) + TITLE
        for picture, reason in zip(chosen, reasons, strict=True)
    ]
    with style.matplotlib_figure((WIDE, sum(heights))) as figure:
        parts = figure.subfigures(len(chosen), 1, height_ratios=heights, squeeze=False).flat
        for part, picture, reason in zip(parts, chosen, reasons, strict=True):
            part.suptitle(picture.title, x=0.01, ha="left", weight="bold")
            if reason:
                part.text(0.01, 0.3, f"left out: {text(reason)}", color=style.SOFT)
            else:
                picture.draw(part, result, False)
        return style.to_png(figure, PNG_DPI)
