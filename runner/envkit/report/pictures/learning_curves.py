"""Loss and figures of full trainings against the time that training took, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envkit.analysis.learning_curves import LearningCurve, target_of
from envkit.analysis.result import Result
from envkit.bench import quality
from envkit.rendering import text
from envkit.report.messages import headings
from envkit.report.messages import pictures as messages
from envkit.report.pictures import style
from envkit.worker.measure.quality_target import LOSS

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

# Longer trainings are shown in minutes.
LONG_S = 300.0
# By which arms can be told apart that have one colour, as theirs says what was found of them.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def missing(result: Result) -> str | None:
    return None if result.learning else messages.NO_TESTS


def height(result: Result, narrow: bool) -> float:
    legend = 0.22 * len(_names(result)) / (1 if narrow else 2)
    return 1.7 * len(_metrics(result)) + 0.9 + legend


def draw(area: FigureBase, result: Result, narrow: bool) -> None:
    colours, metrics = style.colours(result), _metrics(result)
    longest_s = max(curve.epochs[-1].training_s for curve in result.learning)
    unit, seconds = ("minutes", 60.0) if longest_s > LONG_S else ("seconds", 1.0)
    grid = area.subplots(len(metrics), 1, sharex=True, squeeze=False).flat
    for metric, axes in zip(metrics, grid, strict=True):
        for number, one in enumerate(result.learning):
            looks = {"color": colours[one.arm], "marker": MARKERS[number % len(MARKERS)], "markersize": 4}
            axes.plot(*_points(one, metric, seconds), linewidth=1.4, **looks)
        axes.set_title(_title(metric), loc="left", size=9, pad=3)
        axes.grid(axis="y")
        axes.margins(y=0.12)
        axes.set_xlim(left=0)
        _percentages(axes, metric)
        _draw_target(axes, result, metric)
    axes.set_xlabel(text(messages.TrainingTime(unit)))
    style.legend(area, _handles(result, colours), narrow)


def _metrics(result: Result) -> list[str]:
    """The loss, where one is known, and all figures."""
    epochs = [epoch for curve in result.learning for epoch in curve.epochs]
    losses = [LOSS] if any(epoch.loss is not None for epoch in epochs) else []
    return [*losses, *dict.fromkeys(name for epoch in epochs for name in epoch.quality)]


def _names(result: Result) -> list[str]:
    return [curve.arm for curve in result.learning] + ([result.study.until] if result.study.until else [])


def _points(curve: LearningCurve, metric: str, seconds: float) -> tuple[list[float], list[float]]:
    """Times, in units of so many ``seconds``, and values."""
    values = [(epoch.training_s / seconds, epoch.loss if metric == LOSS else epoch.quality.get(metric))
              for epoch in curve.epochs]  # fmt: skip
    known = [(at, value) for at, value in values if value is not None]
    return [at for at, _ in known], [value for _, value in known]


def _title(metric: str) -> str:
    return headings.MEAN_LOSS if metric == LOSS else text(messages.FigureOfTest(metric))


def _percentages(axes: Axes, metric: str) -> None:
    from matplotlib.ticker import FuncFormatter

    if metric in quality.SHARES:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))


def _draw_target(axes: Axes, result: Result, metric: str) -> None:
    target = target_of(result.study.until)
    if target is not None and target.metric == metric:
        axes.axhline(target.value, color=style.SOFT, linewidth=1, linestyle=":")


def _handles(result: Result, colours: dict[str, str]) -> Sequence[Artist]:
    handles = [
        style.handle(style.short(one.arm), color=colours[one.arm], marker=MARKERS[number % len(MARKERS)], markersize=4)
        for number, one in enumerate(result.learning)
    ]
    until = result.study.until
    return [*handles, style.handle(f"until {until}", color=style.SOFT, linestyle=":")] if until else handles
