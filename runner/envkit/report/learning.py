"""Full trainings epoch by epoch: tables of their learning curves, and the time to a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from envkit.analysis.learning_curves import Epoch, LearningCurve
from envkit.analysis.summary import Summary
from envkit.bench import quality
from envkit.report.messages import trainings as messages
from envkit.report.parts import Fold, Note, Part, Row, Table

READING = (
    "training: the time of all steps so far, without tests; loss: the mean over the epoch's batches; testing: how long "
    "the test after it took."
)
# So many epochs of an arm have a row in a short report.
FEW_EPOCHS = 10


def rows(summary: Summary) -> list[Row]:
    """Return when each arm reached the target; nothing without a target."""
    found = [_reached(summary, one) for one in summary.learning if one.to_target and one.to_target.seconds is not None]
    return [replace(row, label="") if number else row for number, row in enumerate(found)]


def _reached(summary: Summary, one: LearningCurve) -> Row:
    reached = one.to_target
    assert reached is not None
    assert reached.seconds is not None, "it was reached"
    tests_s = sum(epoch.test_s for epoch in one.epochs)
    target = str(summary.plan.until)
    return Row("Target", messages.TargetReached(one.arm, target, reached.seconds, reached.epochs or 0, tests_s))


def never(summary: Summary, one: LearningCurve) -> str:
    """That a training has not reached the target, and how near it came."""
    best = one.to_target.best if one.to_target else None
    near = "" if best is None else f" (best: {best:.4g})"
    who = f"{one.arm} never" if one.samples == 1 else f"not each of {one.samples} trainings of {one.arm}"
    return f"{who} reached {summary.plan.until} in {_epochs(summary.plan.epochs)}{near}"


def _epochs(number: int) -> str:
    return f"{number} epoch{'' if number == 1 else 's'}"


def tables(summary: Summary, all_epochs: bool) -> list[Part]:
    """One for each arm; with ``all_epochs`` of them in it, or else a few."""
    if not summary.learning:
        return []
    folds = [Fold(_title(one), [table(one, None if all_epochs else FEW_EPOCHS)]) for one in summary.learning]
    return [Note(READING), *folds]


def _title(one: LearningCurve) -> str:
    return f"{one.arm}, epoch by epoch{f', medians of {one.samples} trainings' if one.samples > 1 else ''}"


def table(one: LearningCurve, most: int | None = None) -> Table:
    """A row for each epoch, or for ``most`` of them and the last; that in which the target was reached stands out."""
    names = list(one.epochs[0].quality)
    header = ("epoch", "training", "loss", *names, "testing")
    every = 1 if most is None else math.ceil(len(one.epochs) / most)
    shown = [epoch for epoch in one.epochs if epoch.number % every == 0 or epoch.number in (1, len(one.epochs))]
    at = one.to_target.epochs if one.to_target else None
    weights = ["good" if epoch.number == at else "plain" for epoch in shown]
    note = "" if every == 1 else f"Every {every} epochs; --details has all."
    return Table(header, [_cells(epoch, names) for epoch in shown], range(len(header)), weights, note)


def _cells(epoch: Epoch, names: Sequence[str]) -> list[str]:
    loss = "-" if epoch.loss is None else f"{epoch.loss:.3f}"
    figures = [quality.figure(name, epoch.quality[name]) if name in epoch.quality else "-" for name in names]
    return [str(epoch.number), f"{epoch.training_s:.1f} s", loss, *figures, f"{epoch.test_s:.2f} s"]
