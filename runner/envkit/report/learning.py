"""Full trainings epoch by epoch: tables of their learning curves, and the time to a target."""

from __future__ import annotations

import math
from collections.abc import Sequence

from envkit.analysis.learning_curves import Epoch, LearningCurve
from envkit.bench import quality
from envkit.messages import Message
from envkit.report.messages import headings
from envkit.report.messages import trainings as messages
from envkit.report.parts import Fold, Note, Part, Row, Table, labelled_once

# So many epochs of an arm have a row in a short report.
FEW_EPOCHS = 10


def rows(curves: Sequence[LearningCurve], target: str) -> list[Row]:
    """Return when each arm reached the target; nothing without a target."""
    reached = (curve for curve in curves if curve.to_target and curve.to_target.seconds is not None)
    return labelled_once(_reached(curve, target) for curve in reached)


def _reached(curve: LearningCurve, target: str) -> Row:
    reached = curve.to_target
    assert reached is not None
    assert reached.seconds is not None, "it was reached"
    tests_s = sum(epoch.test_s for epoch in curve.epochs)
    return Row("Target", messages.TargetReached(curve.arm, target, reached.seconds, reached.epochs or 0, tests_s))


def never(curve: LearningCurve, target: str, epochs: int) -> Message:
    """Return that a training of so many ``epochs`` has not reached the target, and how near it came."""
    best = curve.to_target.best if curve.to_target else None
    samples = curve.samples if curve.samples > 1 else None
    return messages.NeverReached(curve.arm, target, epochs, samples, best)


def tables(curves: Sequence[LearningCurve], all_epochs: bool) -> list[Part]:
    """Return a table for each arm, with ``all_epochs`` of them in it, or else a few."""
    if not curves:
        return []
    folds: list[Part] = []
    for curve in curves:
        title = messages.EpochByEpoch(curve.arm, curve.samples if curve.samples > 1 else None)
        folds.append(Fold(title, [table(curve, None if all_epochs else FEW_EPOCHS)]))
    return [Note(headings.READING_EPOCHS), *folds]


def table(curve: LearningCurve, most: int | None = None) -> Table:
    """Return a row for each epoch, or for ``most`` of them and the last. The one that reached the target stands out."""
    names = list(curve.epochs[0].quality)
    header = ("epoch", "training", "loss", *names, "testing")
    every = 1 if most is None else math.ceil(len(curve.epochs) / most)
    shown = [epoch for epoch in curve.epochs if epoch.number % every == 0 or epoch.number in (1, len(curve.epochs))]
    at = curve.to_target.epochs if curve.to_target else None
    weights = ["good" if epoch.number == at else "plain" for epoch in shown]
    note = None if every == 1 else messages.SomeEpochs(every)
    return Table(header, [_cells(epoch, names) for epoch in shown], range(len(header)), weights, note)


def _cells(epoch: Epoch, names: Sequence[str]) -> list[str]:
    loss = "-" if epoch.loss is None else f"{epoch.loss:.3f}"
    figures = [quality.figure(name, epoch.quality[name]) if name in epoch.quality else "-" for name in names]
    return [str(epoch.number), f"{epoch.training_s:.1f} s", loss, *figures, f"{epoch.test_s:.2f} s"]
