"""How long the steps of each arm took: shape, quartiles, tail, and where each sample lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envkit.analysis.result import Result
from envkit.report import scaling
from envkit.report.messages import headings
from envkit.report.messages import pictures as messages
from envkit.report.pictures import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase
    from numpy import float64
    from numpy.typing import NDArray

# The axis ends with all but this share of the steps at either end; the slowest is given in figures.
OUTERMOST = 0.005
# It is logarithmic where what it shows differs by more than this factor.
LONG_TAIL = 3.0
# Of a shape: how many points it is drawn with, and from how many quantiles it is worked out.
POINTS, QUANTILES = 160, 600


def missing(result: Result) -> str | None:
    return None if any(sample.step_s for sample in result.samples) else messages.NO_SAMPLE


def height(result: Result, narrow: bool) -> float:
    return len(style.measured(result)) * (0.85 if narrow else 0.52) + (1.8 if narrow else 1.2)


def draw(area: FigureBase, result: Result, narrow: bool) -> None:
    import numpy

    arms, colours = style.measured(result), style.colours(result)
    samples = [
        [1000 * numpy.asarray(sample.step_s) for sample in result.samples if sample.arm == arm and sample.step_s]
        for arm in arms
    ]
    steps = [numpy.concatenate(of_arm) for of_arm in samples]
    medians = [[float(numpy.median(one)) for one in ones] for ones in samples]
    shown = [middle for ones in medians for middle in ones]
    shown += [float(end) for one in steps for end in numpy.quantile(one, (OUTERMOST, 1 - OUTERMOST))]
    low, high = min(shown), max(shown)
    axes = area.subplots()
    logarithmic = low > 0 and high > LONG_TAIL * low
    if logarithmic:
        style.log_axis(axes.xaxis, low / (high / low) ** 0.04, high * (high / low) ** 0.04, 5 if narrow else 9)
    else:
        room = 0.04 * (high - low) or 0.01 * high
        axes.set_xlim(low - room, high + room)
    for row, (arm, of_samples, together) in enumerate(zip(arms, medians, steps, strict=True)):
        _shape(axes, row, together, colours[arm], logarithmic)
        _quartiles(axes, row, together, colours[arm])
        axes.plot(of_samples, [row + 0.3] * len(of_samples), "o", color=colours[arm], markersize=3.5, alpha=0.6,
                  markeredgewidth=0)  # fmt: skip
        slowest = float(together.max())
        text = f"slowest {slowest:,.0f} ms" if slowest >= 100 else f"slowest {slowest:.3g} ms"
        style.label(axes, row, arm, text, colours[arm], narrow, 0.44)
    axes.set_ylim(len(arms) - 0.5, -0.65 if narrow else -0.5)
    style.name_rows(axes, arms, narrow)
    unit = messages.StepMs(result.study.step_name, "logarithmic" if logarithmic else None)
    style.name_axis(axes, (unit, scaling.steps(bool(result.study.at_once), result.study.weak_ranks)), narrow)
    style.legend(area, _handles(), narrow)


def _shape(axes: Axes, row: int, steps: NDArray[float64], colour: str, logarithmic: bool) -> None:
    """The density of all but the outermost steps, as tall as fits above the row."""
    import numpy

    values = numpy.quantile(steps, numpy.linspace(OUTERMOST, 1 - OUTERMOST, min(QUANTILES, len(steps))))
    values = numpy.log(values) if logarithmic else values
    grid, density = _density(values)
    if density is not None:
        at = numpy.exp(grid) if logarithmic else grid
        top = row - 0.02 - 0.42 * density / density.max()
        visible = density > density.max() / 200  # thinner than that it would be a dotted line
        axes.fill_between(at, row - 0.02, top, where=visible, color=colour, alpha=0.35, linewidth=0)


def _density(values: NDArray[float64]) -> tuple[NDArray[float64], NDArray[float64] | None]:
    """A Gaussian kernel's estimate on a grid; no density where all values are equal.

    Bandwidth by B. W. Silverman: Density Estimation for Statistics and Data Analysis (1986), equation 3.31.
    """
    import numpy

    quarter, half = numpy.quantile(values, (0.25, 0.75))
    spread = min(float(values.std()), float(half - quarter) / 1.34) or float(values.std())
    if len(values) < 3 or spread <= 0:
        return values, None
    width = 0.9 * spread * len(values) ** -0.2
    grid = numpy.linspace(values.min() - width, values.max() + width, POINTS)
    return grid, numpy.exp(-0.5 * ((grid[:, None] - values) / width) ** 2).sum(axis=1)


def _quartiles(axes: Axes, row: int, steps: NDArray[float64], colour: str) -> None:
    import numpy

    first, quarter, middle, half, last = numpy.quantile(steps, (0.01, 0.25, 0.5, 0.75, 0.99))
    at = row + 0.1
    axes.plot([first, last], [at, at], color=colour, linewidth=1, solid_capstyle="butt")
    axes.plot([quarter, half], [at, at], color=colour, linewidth=5, solid_capstyle="butt")
    axes.plot(middle, at, "|", color=style.PAPER, markersize=5, markeredgewidth=1.5)


def _handles() -> list[Artist]:
    return [
        style.handle(headings.MIDDLE_HALF, color=style.SOFT, linewidth=5),
        style.handle(headings.NEARLY_ALL, color=style.SOFT, linewidth=1),
        style.handle(headings.MEDIAN_OF_SAMPLE, color=style.SOFT, linewidth=0, marker="o", markersize=3.5),
    ]
