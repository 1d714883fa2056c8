"""The target that ends a full training: ``accuracy=0.85``, or ``loss=0.4``. The runner reads it too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from envkit.worker.errors import WorkerError
from envkit.worker.messages import NoTargetNumber, NotATarget, TargetOutOfRange

# The mean training loss of an epoch, the one metric of which less is better.
LOSS = "loss"


class TargetError(WorkerError):
    """A text is no target. The message is a clause whose subject is the text."""


@dataclass(frozen=True)
class QualityTarget:
    """The training loss to get down to, or a figure of the test by its name, to get up to."""

    metric: str
    value: float

    @property
    def is_loss(self) -> bool:
        """Tell whether less is better."""
        return self.metric == LOSS

    def reading(self, loss: float | None, quality: Mapping[str, object] | None) -> float | None:
        """The metric after an epoch, by its training loss and the figures of its test; None if it is not there."""
        value = loss if self.is_loss else (quality or {}).get(self.metric)
        return value if isinstance(value, (int, float)) else None

    def is_reached(self, value: float) -> bool:
        return value <= self.value if self.is_loss else value >= self.value

    def reached_after(self, readings: Iterable[float | None]) -> int | None:
        """The number of the first epoch, from 1, after which it was reached; None where it never was."""
        numbered = enumerate(readings, start=1)
        return next((number for number, value in numbered if value is not None and self.is_reached(value)), None)

    def best(self, readings: Iterable[float | None]) -> float | None:
        values = [value for value in readings if value is not None and math.isfinite(value)]
        return (min if self.is_loss else max)(values, default=None)


def parse(text: str) -> QualityTarget:
    """``METRIC=NUMBER``; a number may be a share, as ``85%``. Raises TargetError."""
    metric, equals, number = text.partition("=")
    metric, number = metric.strip(), number.strip()
    if not metric or not equals:
        raise TargetError(NotATarget())
    try:
        value = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        raise TargetError(NoTargetNumber()) from None
    if not math.isfinite(value) or value <= 0:
        raise TargetError(TargetOutOfRange(metric))
    return QualityTarget(metric, value)
