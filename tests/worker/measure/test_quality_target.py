"""What a training is to reach: how it is written, and when it is reached."""

from __future__ import annotations

import pytest
from envkit.worker.measure.quality_target import QualityTarget, TargetError, parse
from envkit.worker.messages import NoTargetNumber, NotATarget, TargetOutOfRange


def readings(target, *epochs):
    """Of a target's metric after these epochs, of a loss and an accuracy each."""
    return [target.reading(loss, {"accuracy": accuracy}) for loss, accuracy in epochs]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("accuracy=0.85", QualityTarget("accuracy", 0.85)),
        ("accuracy=85%", QualityTarget("accuracy", 0.85)),
        ("loss=2", QualityTarget("loss", 2.0)),
        (" pixel accuracy = .9", QualityTarget("pixel accuracy", 0.9)),
    ],
)
def test_how_it_is_written(text, target):
    assert parse(text) == target


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("accuracy", NotATarget()),
        ("=0.85", NotATarget()),
        ("", NotATarget()),
        ("accuracy=", NoTargetNumber()),
        ("accuracy=high", NoTargetNumber()),
        ("accuracy=0", TargetOutOfRange("accuracy")),
        ("loss=-1", TargetOutOfRange("loss")),
        ("loss=nan", TargetOutOfRange("loss")),
        ("loss=inf", TargetOutOfRange("loss")),
    ],
)
def test_what_is_none(text, said):
    with pytest.raises(TargetError) as error:
        parse(text)
    assert error.value.message == said


@pytest.mark.parametrize(
    ("text", "after"),
    [("accuracy=0.6", 2), ("accuracy=0.7", 2), ("accuracy=0.71", None), ("loss=2", 1), ("loss=1.5", 3),
     ("mIoU=0.1", None)],
)  # fmt: skip
def test_a_figure_is_got_up_to_and_a_loss_down_to(text, after):
    target = parse(text)
    assert target.reached_after(readings(target, (2.0, 0.5), (1.6, 0.7), (1.4, 0.6))) == after


def test_the_best_that_there_was():
    targets = [*map(parse, ("accuracy=0.9", "loss=0.1", "mIoU=0.9"))]
    epochs = (2.0, 0.5), (float("nan"), 0.7), (1.4, 0.6)
    assert [target.best(readings(target, *epochs)) for target in targets] == [0.7, 1.4, None]


def test_what_was_not_told_is_not_reached():
    assert parse("loss=2").reached_after([parse("loss=2").reading(None, None)]) is None
    assert parse("accuracy=0.1").reached_after([parse("accuracy=0.1").reading(1.0, None)]) is None
