"""Pictures of a fleet: how far its nodes differ, and the slow ones with their intervals. matplotlib draws them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from envkit.cluster.fleet.findings import Fleet, FleetResult, NodeVerdict
from envkit.cluster.fleet.report_messages import LEGEND, MORE_TIME, BeyondTheEnds
from envkit.rendering import text
from envkit.report.pictures import NARROW, WIDE, style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from numpy import float64
    from numpy.typing import NDArray

BINS_WIDE, BINS_NARROW = 80, 36
# The axis ends with all but this share of the nodes at either end; what is beyond is counted in words.
OUTERMOST = 0.002
MOST_ROWS = 40


def spread(fleet: Fleet, narrow: bool, alternative: str) -> str:
    """An ``<svg>`` with how many nodes take how long, slow ones in a colour of their own."""
    with style.matplotlib_figure((NARROW if narrow else WIDE, 2.6)) as figure:
        _draw_spread(figure, fleet, narrow)
        return style.to_svg(figure, f"spread-{'narrow' if narrow else 'wide'}", alternative)


def intervals(fleet: Fleet, narrow: bool, alternative: str) -> str:
    """An ``<svg>`` with the intervals of the slowest nodes that are called slow."""
    slow = fleet.of(NodeVerdict.SLOW)[:MOST_ROWS]
    height = 0.9 + len(slow) * (0.34 if narrow else 0.24)
    with style.matplotlib_figure((NARROW if narrow else WIDE, height)) as figure:
        _draw_intervals(figure, slow, narrow)
        return style.to_svg(figure, f"intervals-{'narrow' if narrow else 'wide'}", alternative)


def _draw_spread(area: Figure, fleet: Fleet, narrow: bool) -> None:
    import numpy
    from matplotlib.ticker import FuncFormatter

    axes = area.subplots()
    slow = _more([result for result in fleet.results if result.verdict == NodeVerdict.SLOW])
    others = _more([result for result in fleet.results if result.verdict != NodeVerdict.SLOW])
    everything = numpy.concatenate([others, slow])
    allowed = 100 * max(kind.spread.allowance for kind in fleet.kinds)
    low, high = (float(end) for end in numpy.quantile(everything, (OUTERMOST, 1 - OUTERMOST)))
    low, high = min(low, -allowed), max(high, 1.5 * allowed)
    edges = numpy.linspace(low, high, (BINS_NARROW if narrow else BINS_WIDE) + 1)
    axes.hist(
        [others, slow], bins=edges, stacked=True, linewidth=0,
        color=[style.NEITHER, style.WORSE], label=[LEGEND["others"], LEGEND["slow"]],
    )  # fmt: skip
    axes.set_xlim(low, high)
    axes.set_yscale("symlog", linthresh=10)  # three slow nodes are to be seen beside thousands
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.axvline(0, color=style.INK, linewidth=1)
    for kind in fleet.kinds:
        axes.axvline(100 * kind.spread.allowance, color=style.SOFT, linewidth=1, linestyle=":")
    beyond = int(numpy.count_nonzero((everything < low) | (everything > high)))
    axes.set_xlabel(MORE_TIME if narrow else text(BeyondTheEnds(MORE_TIME, beyond or None)))
    axes.set_ylabel("nodes")
    axes.grid(axis="y")
    style.legend(area, _handles(), narrow)


def _handles() -> list[Artist]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Patch(color=style.NEITHER, label=LEGEND["others"]),
        Patch(color=style.WORSE, label=LEGEND["slow"]),
        Line2D([], [], color=style.SOFT, linewidth=1, linestyle=":", label=LEGEND["allowed"]),
    ]


def _more(results: Sequence[FleetResult]) -> NDArray[float64]:
    """How much more time than the middle node, in percent."""
    import numpy

    return 100 * (numpy.array([result.ratio for result in results]) - 1)


def _draw_intervals(area: Figure, slow: Sequence[FleetResult], narrow: bool) -> None:
    axes = area.subplots()
    ends = [value for result in slow for value in (result.low, result.high) if math.isfinite(value)]
    for row, result in enumerate(slow):
        low, high = (100 * (value - 1) for value in (result.low, min(result.high, max(ends))))
        axes.plot([low, high], [row, row], color=style.WORSE, linewidth=2, solid_capstyle="butt")
        axes.plot(100 * (result.ratio - 1), row, "s", color=style.WORSE, markersize=4.5, markeredgewidth=0)
        if narrow:  # the line at 0 may go through it
            side = axes.get_yaxis_transform()  # x as a share of the axes' width, y in rows
            paper = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.0}
            name = style.short(result.node.name)
            axes.text(0, row - 0.3, name, transform=side, va="center", ha="left", size=9, bbox=paper)
    axes.axvline(0, color=style.INK, linewidth=1)
    axes.set_ylim(len(slow) - 0.4, -0.8)
    axes.set_yticks(
        [] if narrow else range(len(slow)), [] if narrow else [style.short(result.node.name) for result in slow]
    )
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.set_xlabel(MORE_TIME)
