"""Full trainings epoch by epoch: loss and figures against the time that training took, and the time to a target."""

from __future__ import annotations

import statistics as basic
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from envkit.bench.events import Epoch as Recorded
from envkit.bench.events import Sample
from envkit.worker.measure.quality_target import QualityTarget, parse


@dataclass(frozen=True)
class Epoch:
    """After an epoch, as medians over the samples that got as far. Times are in seconds."""

    number: int  # from 1
    training_s: float  # of all steps so far, without tests
    loss: float | None  # the mean of the epoch's steps
    quality: dict[str, float]  # of the test after it
    test_s: float  # how long that test took


@dataclass(frozen=True)
class TimeToTarget:
    """How an arm got to the target; ``seconds`` of training and ``epochs`` are None where a sample never did."""

    seconds: float | None  # the median over samples
    epochs: int | None  # the most that a sample took
    best: float | None  # of the target's metric, after any epoch of any sample


@dataclass(frozen=True)
class LearningCurve:
    """How one arm learnt; ``to_target`` is None where there was no target."""

    arm: str
    samples: int
    epochs: list[Epoch]
    to_target: TimeToTarget | None


def target_of(until: str | None) -> QualityTarget | None:
    """Return the target that a training ends after, if it has one."""
    return parse(until) if until is not None else None


def learning_curve(arm: str, samples: Sequence[Sample], target: QualityTarget | None) -> LearningCurve | None:
    """Return the curve of an arm; None if none of its samples has one."""
    recorded = [sample.curve for sample in samples if sample.curve]
    if not recorded:
        return None
    longest = max(map(len, recorded))
    epochs = [_epoch(number, [curve[:number] for curve in recorded if len(curve) >= number])
              for number in range(1, longest + 1)]  # fmt: skip
    return LearningCurve(arm, len(recorded), epochs, _to_target(target, recorded) if target else None)


def _epoch(number: int, curves: Sequence[Sequence[Recorded]]) -> Epoch:
    """The last epoch of ``curves``, which are as long as its number."""
    last = [curve[-1] for curve in curves]
    losses = [one.loss for one in last if one.loss is not None]
    figures = [one.quality or {} for one in last]
    return Epoch(
        number=number,
        training_s=basic.median(training_s(curve)[-1] for curve in curves),
        loss=basic.median(losses) if losses else None,
        quality={name: basic.median(one[name] for one in figures) for name in figures[0]},
        test_s=basic.median(one.test_s for one in last),
    )


def reached(samples: Sequence[Sample], target: QualityTarget | None) -> bool:
    """Return whether none of the trainings ended before it reached the target. Without a target they have."""
    curves = (sample.curve for sample in samples if sample.curve)
    return target is None or all(target.reached_after(readings(target, curve)) for curve in curves)


def readings(target: QualityTarget, curve: Sequence[Recorded]) -> list[float | None]:
    """After each epoch the metric of the target; None where it was not measured."""
    return [target.reading(epoch.loss, epoch.quality) for epoch in curve]


def training_s(curve: Sequence[Recorded]) -> list[float]:
    """After each epoch the seconds of all steps so far."""
    return list(accumulate(epoch.seconds for epoch in curve))


def time_to(target: QualityTarget, curve: Sequence[Recorded]) -> float | None:
    """The training time in seconds after which a sample had reached it; None where it never did."""
    epoch = target.reached_after(readings(target, curve))
    return None if epoch is None else training_s(curve)[epoch - 1]


def _to_target(target: QualityTarget, curves: Sequence[Sequence[Recorded]]) -> TimeToTarget:
    best = target.best([value for curve in curves for value in readings(target, curve)])
    times = [time_to(target, curve) for curve in curves]
    known = [seconds for seconds in times if seconds is not None]
    if len(known) < len(times):
        return TimeToTarget(None, None, best)
    return TimeToTarget(
        basic.median(known), max(target.reached_after(readings(target, curve)) or 0 for curve in curves), best
    )
