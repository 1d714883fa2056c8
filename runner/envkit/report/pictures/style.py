"""Shared by all pictures: colours, sizes, ticks, and the way from a figure to bytes.

Colours that say something are those of M. Okabe and K. Ito (Color Universal Design, 2008): they can be told apart with
any kind of colour vision.
"""

from __future__ import annotations

import importlib
import io
import logging
import os
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from envkit.analysis.result import Result
from envkit.messages import Message
from envkit.rendering import text
from envkit.stats.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure, FigureBase
    from matplotlib.lines import Line2D

# Not quite black: matplotlib would leave black out of an SVG, and a page could not turn it into white.
INK, SOFT, FAINT, BAND = "#1f1f1f", "#6b6b6b", "#c9c9c9", "#e3e3e3"
REFERENCE, BETTER, WORSE, NEITHER, INTERFERENCE = "#595959", "#009e73", "#d55e00", "#0072b2", "#e69f00"
# Letters in the colours of bars and lines would be too pale on paper.
BETTER_TEXT, WORSE_TEXT = "#00694c", "#a84300"
OF_TEXT = {BETTER: BETTER_TEXT, WORSE: WORSE_TEXT}
PAPER = "#fffffe"
# In an SVG, the page's own names for these colours take their place.
VARIABLES = {
    INK: "ink", SOFT: "soft", FAINT: "faint", BAND: "band", REFERENCE: "reference", BETTER: "better", WORSE: "worse",
    NEITHER: "neither", INTERFERENCE: "interference", PAPER: "paper",
    BETTER_TEXT: "good-text", WORSE_TEXT: "bad-text",
}  # fmt: skip
LONGEST_NAME = 26
# Characters of a line below the axes.
LONGEST_LINE, LONGEST_NARROW_LINE = 96, 50
# Round numbers in a power of ten, from many to few.
ROUND = (
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5), (1, 3), (1,),
)  # fmt: skip
SETTINGS: dict[str, object] = {
    "font.family": "DejaVu Sans", "font.size": 9.5,
    "xtick.labelsize": 9, "ytick.labelsize": 9, "legend.fontsize": 9, "figure.titlesize": 10.5,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": SOFT,
    "text.parse_math": False,  # a name may have a $ in it
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "axes.linewidth": 0.8,
    "grid.color": FAINT, "grid.linewidth": 0.6, "legend.frameon": False, "legend.handlelength": 1.6,
    "figure.facecolor": "white", "savefig.facecolor": "auto",
    "svg.fonttype": "none", "svg.hashsalt": "envkit",
}  # fmt: skip


@contextmanager
def matplotlib_figure(size: tuple[float, float]) -> Iterator[Figure]:
    """An empty figure, ``size`` in inches, drawn with our settings whatever the user's own matplotlibrc says."""
    matplotlib = _imported()
    from matplotlib.figure import Figure

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield Figure(figsize=size, layout="constrained")


def _imported() -> ModuleType:
    """matplotlib, without a word of its font cache, and whatever backend is asked for: a Figure needs no display."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    asked_for = os.environ.pop("MPLBACKEND", None)  # an unknown one would be refused
    try:
        return importlib.import_module("matplotlib")
    finally:
        if asked_for is not None:
            os.environ["MPLBACKEND"] = asked_for


def to_png(figure: Figure, dpi: int) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def to_svg(figure: Figure, name: str, alternative: str) -> str:
    """An element without ids that another one in the page could have, without a date, and without a size of its own."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    dpi = figure.dpi
    FigureCanvasSVG(figure)  # which measures text as it is going to draw it
    # or all would be drawn once more, for nothing but the layout
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)
    figure.savefig(buffer, format="svg", transparent=True, dpi=dpi)
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    box = re.search(r'viewBox="[^"]*"', svg)
    start = f'<svg {box[0] if box else ""} role="img" aria-label={quoteattr(alternative)}'
    svg = re.sub(r"<svg [^>]*", lambda _: start, svg, count=1)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return re.sub("|".join(VARIABLES), lambda found: f"var(--{VARIABLES[found[0]]})", svg)


def colours(result: Result) -> dict[str, str]:
    """Each arm's colour, by what was found of it."""
    meaning = {Verdict.FASTER: BETTER, Verdict.SLOWER: WORSE}
    values = {comparison.arm: meaning.get(comparison.verdict, NEITHER) for comparison in result.comparisons}
    return {arm.name: values.get(arm.name, REFERENCE) for arm in result.study.arms}


def measured(result: Result) -> list[str]:
    """The names of the arms that have samples, in the study's order."""
    there = {sample.arm for sample in result.samples if sample.step_s}
    return [arm.name for arm in result.study.arms if arm.name in there]


def short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def log_axis(axis: XAxis | YAxis, low: float, high: float, most: int) -> None:
    """Make ``axis`` (an x or y axis) logarithmic from ``low`` to ``high``, with ``most`` ticks at round numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    name = axis.axis_name
    getattr(axis.axes, f"set_{name}scale")("log")
    getattr(axis.axes, f"set_{name}lim")(low, high)
    axis.set_major_locator(FixedLocator(log_ticks(low, high, most)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two positive ones, ``most`` at most and two at least where there are as many."""
    from matplotlib.ticker import MaxNLocator

    for steps in ROUND if high / low > 2 else ():
        ticks = [step * 10.0**power for power in range(-9, 10) for step in steps]
        inside = [float(f"{tick:.3g}") for tick in ticks if low <= tick <= high]
        if 3 <= len(inside) <= most:
            return inside
    even = MaxNLocator(nbins=most - 1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(f"{tick:.6g}") for tick in even if low <= tick <= high and tick > 0]


def name_rows(axes: Axes, names: Sequence[str], narrow: bool) -> None:
    """A row for each of ``names``, which stand beside them; not on a narrow picture, where ``label`` has them."""
    shown = [] if narrow else [short(name) for name in names]
    axes.set_yticks(range(len(shown)), shown)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def label(
    axes: Axes,
    row: int,
    name: str,
    figures: str,
    colour: str,
    narrow: bool,
    up: float,
    box: dict[str, object] | None = None,
) -> None:
    """Figures beside a row or, on a narrow picture, ``up`` rows above it and beside its name."""
    side = axes.get_yaxis_transform()  # x as a share of the axes' width, y in rows
    colour = OF_TEXT.get(colour, colour)
    if narrow:
        axes.text(0, row - up, short(name), transform=side, va="bottom", ha="left", size=9, bbox=box)
        axes.text(1, row - up, figures, transform=side, va="bottom", ha="right", size=9, color=colour, bbox=box)
    else:
        axes.text(1.02, row, figures, transform=side, va="center", ha="left", color=colour)


def name_axis(axes: Axes, lines: Iterable[Message | str | None], narrow: bool) -> None:
    """Write ``lines`` below ``axes``, each broken where it is too long; those that are None are left out."""
    longest = LONGEST_NARROW_LINE if narrow else LONGEST_LINE
    axes.set_xlabel("\n".join(textwrap.fill(text(line), longest) for line in lines if line))


def handle(label: str, **looks: object) -> Line2D:
    """A line or a marker of the legend."""
    from matplotlib.lines import Line2D

    line = Line2D([], [], label=label)
    line.set(**looks)
    return line


def legend(area: FigureBase, handles: Sequence[Artist], narrow: bool) -> None:
    area.legend(handles=list(handles), loc="outside lower left", ncols=1 if narrow else 2)
