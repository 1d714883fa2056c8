"""Losses from the lines that somebody's training prints, by a metric of their own (``metric``)."""

from __future__ import annotations

from envkit.messages import Message
from envkit.worker.messages.captions import LOSS
from envkit.worker.messages.metrics import EmptyLossMetric, LossesUnlikeSteps, NoLossGroup, NoMatch, NothingPrinted
from envkit.worker.user_command.metric import (
    Metric,
    MetricError,
    NotMeasured,
    cleaned,
    number,
    parse,
    pattern,
    shown,
    unreadable,
)
from envkit.worker.user_command.readings import Readings


def parse_losses(text: str) -> Metric:
    """Raises MetricError for what is neither a regular expression with one group nor a path."""
    if not text:
        raise MetricError(EmptyLossMetric())
    metric = parse(text, quantity=LOSS)
    if metric.is_clock:
        raise MetricError(NoLossGroup())
    return metric


class Losses:
    """The losses in the lines of one run, in their order (``values``); each may be nan or infinite."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.values: list[float] = []
        self._lines = 0
        self._last_line = ""

    def take(self, line: str) -> None:
        """Look at one line. Raises NotMeasured for what is no number."""
        line = cleaned(line)
        if not line:
            return
        self._lines += 1
        self._last_line = line.lstrip()
        text = self.metric.find(line)
        if text is None:
            return
        value = number(text)
        if value is None:
            raise unreadable(LOSS, text, self._last_line)
        self.values.append(value)

    def beside(self, times: Readings | None, warmup: int, steps: int) -> list[float]:
        """Return those of the ``steps`` that count, after ``warmup`` of them; ``times`` are where these were read from.

        Where the whole training is one step all count. Raises NotMeasured where there are none, or more or fewer than
        there are steps: which loss is of which step is not known then.
        """
        if not self.values:
            raise NotMeasured(self._none())
        # the line that starts the clock ends a step too, whose time nobody knows
        before = warmup + (1 if times is not None and times.metric.is_clock else 0)
        count, wanted = len(self.values), before + steps
        if times is None or wanted == 1:
            return self.values
        if count != wanted:
            raise NotMeasured(LossesUnlikeSteps(count, wanted, r"(\S+)" if count < wanted else None))
        return self.values[before:]

    def of_optimizer(self, warmup: int, steps: int) -> list[float]:
        """Return the losses of an optimizer's ``steps`` after ``warmup`` if each step has one; else all.

        A log need not have a line for each step, as where only every tenth is printed. Raises NotMeasured where there
        are none.
        """
        if not self.values:
            raise NotMeasured(self._none())
        return self.values[warmup:] if len(self.values) == warmup + steps else self.values

    def _none(self) -> Message:
        about = ("loss", pattern(LOSS), self.metric.text)
        return NoMatch(*about, self._lines, shown(self._last_line)) if self._lines else NothingPrinted(*about)
