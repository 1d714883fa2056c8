"""What a full training is to reach before it ends: ``accuracy=0.85``, or ``loss=0.4``. The runner reads it too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
        """Whether less is better."""
        return self.metric == LOSS

    def found(self, epoch: Mapping[str, Any]) -> float | None:
        """The metric after an epoch (an item of a sample's ``curve``); None where it was not told."""
        value = epoch["loss"] if self.is_loss else (epoch["quality"] or {}).get(self.metric)
        return None if value is None else float(value)

    def is_reached(self, value: float) -> bool:
        return value <= self.value if self.is_loss else value >= self.value

    def reached_after(self, curve: Sequence[Mapping[str, Any]]) -> int | None:
        """The number of the first epoch, from 1, after which it was reached; None where it never was."""
        values = enumerate(map(self.found, curve), start=1)
        return next((number for number, value in values if value is not None and self.is_reached(value)), None)

    def best(self, curve: Sequence[Mapping[str, Any]]) -> float | None:
        values = [value for value in map(self.found, curve) if value is not None and math.isfinite(value)]
        return (min if self.is_loss else max)(values, default=None)


def parse(text: str) -> QualityTarget:
    """``METRIC=NUMBER``; a number may be a share, as ``85%``. Raises TargetError."""
    metric, equals, given = text.partition("=")
    metric, given = metric.strip(), given.strip()
    if not metric or not equals:
        raise TargetError(NotATarget())
    try:
        value = float(given.removesuffix("%")) / (100 if given.endswith("%") else 1)
    except ValueError:
        raise TargetError(NoTargetNumber()) from None
    if not math.isfinite(value) or value <= 0:
        raise TargetError(TargetOutOfRange(metric))
    return QualityTarget(metric, value)
