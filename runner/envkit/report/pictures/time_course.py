"""The samples in the order in which they were measured: what was disturbed, what drifted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from envkit.analysis.result import Result
from envkit.analysis.sample_times import Sample
from envkit.rendering import text
from envkit.report import scaling
from envkit.report.messages import headings
from envkit.report.messages import pictures as messages
from envkit.report.pictures import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

# More arms than this are put into two columns.
ONE_COLUMN = 6
LEAST_SPAN = math.log(1.02)


def missing(result: Result) -> str | None:
    if not result.samples:
        return messages.NO_SAMPLE
    if max(sum(sample.arm == arm.name for sample in result.samples) for arm in result.study.arms) < 2:
        return messages.NO_COURSE
    return None


def height(result: Result, narrow: bool) -> float:
    arms = len(style.measured(result))
    return math.ceil(arms / _columns(arms, narrow)) * 0.88 + (1.4 if narrow else 0.9)


def _columns(arms: int, narrow: bool) -> int:
    return 2 if arms > ONE_COLUMN and not narrow else 1


def draw(area: FigureBase, result: Result, narrow: bool) -> None:
    arms, colours = style.measured(result), style.colours(result)
    columns = _columns(len(arms), narrow)
    rows = math.ceil(len(arms) / columns)
    samples = [sample for sample in result.samples if sample.step_s]
    at = [sample.began_s / 60 for sample in samples]
    span = 1.25 * max(LEAST_SPAN, *(_span([one for one in samples if one.arm == arm]) for arm in arms))
    grid = area.subplots(rows, columns, sharex=True, squeeze=False)
    steps = scaling.steps(bool(result.study.at_once), result.study.weak_ranks)
    for number, axes in enumerate(grid.T.flat):
        if number >= len(arms):
            axes.set_visible(False)
            continue
        own = [(place, one) for place, one in zip(at, samples, strict=True) if one.arm == arms[number]]
        middle = _middle([one for _, one in own])
        style.log_axis(axes.yaxis, middle * math.exp(-span / 2), middle * math.exp(span / 2), 4)
        _course(axes, own, result, colours[arms[number]])
        axes.set_title(style.short(arms[number]), loc="left", size=9, pad=3)
        axes.grid(axis="y")
        lowest = number % rows == rows - 1 or number == len(arms) - 1
        axes.tick_params(axis="x", labelbottom=lowest)
        style.name_axis(axes, (headings.MINUTES, steps) if lowest else (), narrow or columns > 1)
    unit = messages.StepMs if narrow or columns > 1 else messages.MeanStepMs
    grid.flat[0].set_title(text(unit(result.study.step_name)), loc="right", size=9, pad=3, color=style.SOFT)
    if result.interference:
        style.legend(area, _handles(), narrow)


def _middle(samples: Sequence[Sample]) -> float:
    """Half way from the fastest to the slowest sample, in ms, on a logarithmic scale."""
    times = [1000 * sample.mean_step_s for sample in samples]
    return math.sqrt(min(times) * max(times))


def _span(samples: Sequence[Sample]) -> float:
    """From the fastest to the slowest sample, as a logarithm."""
    times = [sample.mean_step_s for sample in samples]
    return math.log(max(times) / min(times))


def _course(axes: Axes, own: Sequence[tuple[float, Sample]], result: Result, colour: str) -> None:
    at = [place for place, _ in own]
    times = [1000 * sample.mean_step_s for _, sample in own]
    axes.plot(at, times, color=colour, linewidth=0.8, alpha=0.4)
    for place, time, (_, sample) in zip(at, times, own, strict=True):
        hit, beside = bool(sample.interference), sample.block in result.interference
        axes.plot(
            place, time, "X" if hit else "o", markersize=7 if hit else 4.5,
            color=style.INTERFERENCE if hit else style.PAPER if beside else colour,
            markeredgecolor=style.INK if hit else colour, markeredgewidth=0.8 if hit or beside else 0,
        )  # fmt: skip


def _handles() -> list[Artist]:
    edge: dict[str, object] = {"linewidth": 0, "markeredgewidth": 0.8}
    hit = {**edge, "marker": "X", "color": style.INTERFERENCE, "markeredgecolor": style.INK, "markersize": 7}
    beside = {**edge, "marker": "o", "color": style.PAPER, "markeredgecolor": style.SOFT, "markersize": 4.5}
    return [
        style.handle(headings.DISTURBED_SAMPLE, **hit),
        style.handle(headings.BESIDE_DISTURBED, **beside),
    ]
