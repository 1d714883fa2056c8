"""What reports say of full trainings epoch by epoch."""

from __future__ import annotations

from envkit.analysis.summary import summarise
from envkit.report import model
from envkit.report.markdown import document
from envkit.report.parts import Fold

from tests.reports import details, events_of, printed, said


def full(epochs=3, figures=None, **fields):
    behaviour = {"figures": figures} if figures else {}
    return events_of(1, mine=behaviour, baseline=behaviour, plan={"epochs": epochs, **fields})


def test_a_short_report_has_few_epochs_and_the_long_one_all():
    events = full(24)
    text = printed(events)
    assert "Every 3 epochs; --details has all." in text
    rows = [line.split()[0] for line in text.partition("mine, epoch by epoch")[2].splitlines()[2:11]]
    assert rows == ["1", "3", "6", "9", "12", "15", "18", "21", "24"]
    rows = [line.split()[0] for line in details(events).partition("mine, epoch by epoch")[2].splitlines()[2:26]]
    assert rows == [str(number) for number in range(1, 25)]


def test_figures_stand_under_their_names():
    figures = [{"pixel accuracy": 0.5, "mIoU": 0.25}, {"pixel accuracy": 0.75, "mIoU": 0.5}]
    text = printed(full(2, figures, workload="segmentation"))
    assert "epoch  training   loss  pixel accuracy   mIoU  testing" in text
    assert "    2     0.5 s  2.200           75.0%  0.500   0.25 s" in text


def test_a_training_that_learns_nothing_has_losses_alone():
    text = said(full(1, [{}]))
    assert "epoch training loss testing 1 1.0 s 2.300 0.25 s" in text


def test_the_epoch_that_reached_the_target_stands_out():
    report = model.report_of(summarise(full(until="accuracy=0.5")), "run")
    folds = [part for section in report.sections for part in section.parts if isinstance(part, Fold)]
    assert [fold.parts[0].weights for fold in folds] == [["plain", "good"]] * 2


def test_many_profiles_have_their_tables_on_wider_pages(recorded):
    others = {name: {} for name in ("a", "b", "c")}
    events = events_of(1, others=others, plan={"epochs": 3, "until": "accuracy=0.5"})
    text = printed(events)
    assert (text.count("target "), text.count("epoch by epoch")) == (5, 0)
    assert document(*recorded(events)).count("epoch by epoch:") == 5


def test_how_much_was_to_be_trained_is_said():
    text = " ".join(details(full(until="loss=1")).split())
    assert "workload cnn, 3 epochs at most, until loss=1, each sample" in text


def test_the_book_s_whole_training_is_not_beside_one_that_ended_sooner():
    assert "the book's baseline" in printed(full(10))
    assert "the book's baseline" not in printed(full(10, until="accuracy=0.5"))
