"""The figures of what was learnt: BLEU, and how all are written."""

from __future__ import annotations

import importlib.util
import re

import pytest
from envkit.bench import quality
from envkit.bench.requirement_messages import LearnsNothing, NoSuchFigure, TargetAboveOne
from envkit.common.errors import InputError
from envkit.common.messages import MissingExtra

from tests.reports import events_of, printed


def test_figures_in_words():
    figures = {"pixel accuracy": 0.9312, "mIoU": 0.81249, "BLEU": 34.25, "accuracy": 1.0}
    assert quality.shown(figures) == "pixel accuracy 93.1%, mIoU 0.812, BLEU 34.2, accuracy 100.0%"
    assert quality.shown({}) == ""


def test_a_sample_without_translations_is_left_as_it_is():
    for document in ({"seconds": 1}, {"quality": None}, {"quality": {"accuracy": 0.5}}):
        assert quality.with_bleu(document) is document


def test_bleu_takes_the_place_of_the_translations(monkeypatch):
    monkeypatch.setattr(quality, "bleu", lambda pairs: 10.0 * len(pairs))
    document = {"seconds": 1, "quality": {"token accuracy": 0.5, "translations": [[[3], [4]], [[5], [5]]]}}
    assert quality.with_bleu(document) == {"seconds": 1, "quality": {"token accuracy": 0.5, "BLEU": 20.0}}


def test_bleu_is_in_the_curve_too(monkeypatch):
    monkeypatch.setattr(quality, "bleu", lambda pairs: 10.0 * len(pairs))
    first = {"token accuracy": 0.1, "translations": [[[3], [4]]]}
    last = {"token accuracy": 0.5, "translations": [[[3], [4]], [[5], [5]]]}
    document = {"quality": last, "curve": [{"loss": 2.0, "quality": first}, {"loss": 1.0, "quality": last}]}
    found = quality.with_bleu(document)["curve"]
    assert [(one["loss"], one["quality"]) for one in found] == [
        (2.0, {"token accuracy": 0.1, "BLEU": 10.0}), (1.0, {"token accuracy": 0.5, "BLEU": 20.0})
    ]  # fmt: skip


def test_a_missing_library_is_said_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    quality.require(["cnn", "segmentation"])
    with pytest.raises(InputError, match=re.escape(MissingExtra.code)):
        quality.require(["cnn", "translation"])


def lacks(workload, figure, *known, suggestion=None):
    return lambda until: NoSuchFigure(until, workload, figure, ("loss", *known), suggestion)


@pytest.mark.parametrize(
    ("until", "workload", "said"),
    [
        ("acuracy=0.9", "cnn", lacks("cnn", "acuracy", "accuracy", suggestion="accuracy")),
        ("mIoU=0.9", "cnn", lacks("cnn", "mIoU", "accuracy")),
        ("BLEU=20", "translation", lacks("translation", "BLEU", "token accuracy")),
        ("accuracy=0.9", "segmentation", lacks("segmentation", "accuracy", "pixel accuracy", "mIoU",
                                               suggestion="pixel accuracy")),
        ("accuracy=85", "cnn", lambda until: TargetAboveOne(until, "accuracy")),
        ("mIoU=1.1", "segmentation", lambda until: TargetAboveOne(until, "mIoU")),
        ("loss=1", "all-reduce", lambda until: LearnsNothing(until, "all-reduce")),
    ],
)  # fmt: skip
def test_targets_that_no_epoch_of_a_workload_can_reach(until, workload, said):
    with pytest.raises(InputError) as error:
        quality.require_target(until, [workload])
    assert error.value.message == said(until)


@pytest.mark.parametrize(
    ("until", "workload"),
    [("accuracy=1", "cnn"), ("loss=3", "cnn-nobias"), ("mIoU=0.5", "segmentation"), ("accuracy=50%", "loader-w0-b48")],
)
def test_targets_that_can_be_reached(until, workload):
    quality.require_target(until, [workload])


def test_bleu_of_a_corpus():
    words = list(range(3, 15))
    assert quality.bleu([[words, words], [words[2:], words[2:]]]) == pytest.approx(100)
    assert quality.bleu([[words, [number + 100 for number in words]]]) < 5
    half = quality.bleu([[words, words], [words[::-1], words]])
    assert 20 < half < 80
    assert quality.bleu([[[], words]]) == 0


# --- what a report says ---


def test_what_the_reference_has_learnt_is_said_once():
    text = " ".join(printed(events_of(baseline={"quality": {"pixel accuracy": 0.5, "mIoU": 0.25}}), full=True).split())
    assert "accuracy baseline after 4 steps: loss 2.298, pixel accuracy 50.0%, mIoU 0.250" in text


def test_nothing_is_said_of_what_was_not_tested():
    assert "accuracy baseline" not in printed(events_of(), full=True)


def test_a_full_training_has_it_in_its_table():
    figures = {"token accuracy": 0.5, "BLEU": 33.33}
    events = events_of(1, study={"epochs": 10, "workload": "translation"})
    for event in events:
        if event["event"] == "sample":
            event["quality"], event["unit"] = figures, "sentences"
    text = printed(events)
    assert "what was learnt" in text
    assert "33.3" in text
    assert "the book's" not in text
