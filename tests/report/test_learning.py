"""What reports say of full trainings epoch by epoch."""

from __future__ import annotations

from envkit.report import learning, model
from envkit.report.messages.trainings import TargetReached
from envkit.report.parts import Fold

from tests.records import conclude
from tests.reports import details, events_of, printed


def full(epochs=3, figures=None, **fields):
    behaviour = {"figures": figures} if figures else {}
    return events_of(1, mine=behaviour, baseline=behaviour, study={"epochs": epochs, **fields})


def test_details_have_all_epochs():
    events = full(24)
    assert "epoch by epoch" not in printed(events)
    rows = [line.split()[0] for line in details(events).partition("mine, epoch by epoch")[2].splitlines()[2:26]]
    assert rows == [str(number) for number in range(1, 25)]


def test_figures_stand_under_their_names():
    figures = [{"pixel accuracy": 0.5, "mIoU": 0.25}, {"pixel accuracy": 0.75, "mIoU": 0.5}]
    text = details(full(2, figures, workload="segmentation"))
    assert "epoch  training   loss  pixel accuracy   mIoU  testing" in text
    assert "    2     0.5 s  2.200           75.0%  0.500   0.25 s" in text


def test_a_training_that_learns_nothing_has_losses_alone():
    text = " ".join(details(full(1, [{}])).split())
    assert "epoch training loss testing 1 1.0 s 2.300 0.25 s" in text


def test_the_epoch_that_reached_the_target_stands_out():
    report = model.report_of(conclude(full(until="accuracy=0.5")), "run", full=True)
    folds = [
        part
        for section in report.sections
        for part in section.parts
        if isinstance(part, Fold) and section.name == "learning"
    ]
    assert [fold.parts[0].weights for fold in folds] == [["plain", "good"]] * 2


def test_when_each_arm_reached_the_target_is_a_line():
    events = events_of(1, others={"other": {}}, study={"epochs": 3, "until": "accuracy=0.5"})
    found = [row.text for row in learning.rows(conclude(events).learning, "accuracy=0.5")]
    assert [(type(one), one.arm, one.target, one.epochs) for one in found] == [
        (TargetReached, name, "accuracy=0.5", 2) for name in ("baseline", "mine", "other")
    ]


def test_how_much_was_to_be_trained_is_said():
    text = " ".join(details(full(until="loss=1")).split())
    assert "workload cnn, 3 epochs at most, until loss=1, each sample" in text


def test_the_book_s_whole_training_is_not_beside_one_that_ended_sooner():
    assert "the book's baseline" in printed(full(10))
    assert "the book's baseline" not in printed(full(10, until="accuracy=0.5"))
