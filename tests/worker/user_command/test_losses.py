"""Losses from lines, and beside the steps that they are of."""

from __future__ import annotations

import math

import pytest
from envkit.worker.messages.metrics import (
    DecimalComma,
    EmptyLossMetric,
    LossesUnlikeSteps,
    ManyGroups,
    MatchesEverything,
    NoLossGroup,
    NoMatch,
    NotANumber,
    NotARegex,
    NothingPrinted,
    NumberCut,
    PathWithoutKey,
)
from envkit.worker.user_command.losses import Losses, parse_losses
from envkit.worker.user_command.metric import MetricError, NotMeasured, parse
from envkit.worker.user_command.readings import Readings

LOSS = r"loss (\S+)"


def losses(metric, *lines):
    found = Losses(parse_losses(metric))
    for line in lines:
        found.take(line)
    return found


def times(metric, *lines, left_out=0):
    """What a metric of step times finds in the same lines, half a second apart."""
    found = Readings(parse(metric), left_out)
    for number, line in enumerate(lines):
        found.take(line, 0.5 * number)
    return found


@pytest.mark.parametrize(
    ("metric", "line", "value"),
    [
        (LOSS, "step 12 loss 0.31 time 8.3 ms", 0.31),
        (LOSS, "loss -1.5e-05", -1.5e-5),
        (LOSS, "loss 0", 0.0),
        (LOSS, "loss 1,234.5", 1234.5),
        (r"loss=([\d.]+)", "Epoch 0: 50%|##  | 20/40 [00:01<00:01, 12.50it/s, loss=2.102]", 2.102),
        (r"([\d.]+)s/it", "1.25s/it", 1.25),  # a number like others, which nobody turns round
        (LOSS, "\x1b[32mloss\x1b[0m \x1b[1m7\x1b[0m", 7.0),
        ("$.train.loss", '{"train": {"loss": 2.5, "step_time": 0.5}}', 2.5),
        ("$.losses[1]", '{"losses": [1, 2]}', 2.0),
    ],
)
def test_a_loss_in_a_line(metric, line, value):
    assert losses(metric, "loading", line, "").values == [value]


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "Infinity"])
def test_what_training_that_has_diverged_prints_is_a_loss_too(text):
    (value,) = losses(LOSS, f"loss {text}").values
    assert not math.isfinite(value)


def test_as_json_has_them():
    found = losses("$.loss", '{"loss": NaN}', '{"loss": -Infinity}', '{"loss": null}', '{"other": 1}').values
    assert math.isnan(found[0])
    assert found[1:] == [-math.inf]


@pytest.mark.parametrize(
    ("metric", "line", "value"),
    [
        (LOSS, "loss 0.31,", "'0.31,'"),
        (LOSS, "loss tensor(0.31)", "'tensor(0.31)'"),
        ("$.loss", '{"loss": true}', "true"),
        ("$.loss", '{"loss": [1]}', "[1]"),
    ],
)
def test_what_is_no_number(metric, line, value):
    with pytest.raises(NotMeasured) as error:
        losses(metric, line)
    assert error.value.message == NotANumber("a loss", value, line, "loss metric")


@pytest.mark.parametrize("metric", [LOSS, r"loss ([\d.]+)"])
def test_a_decimal_comma_is_no_loss(metric):
    with pytest.raises(NotMeasured) as error:
        losses(metric, "loss 0,31")
    column = None if metric == LOSS else "loss metric"
    assert error.value.message == DecimalComma("a loss", "0,31", "loss 0,31", column)


def test_a_part_of_a_number_is_no_loss():
    with pytest.raises(NotMeasured) as error:
        losses(r"loss ([\d.]+)", "loss 3.1e-05")
    assert error.value.message == NumberCut("a loss", r"loss ([\d.]+)", "loss 3.1e-05", "3.1")


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        ("", EmptyLossMetric()),
        ("loss", NoLossGroup()),
        (r"loss (\S+) (\S+)", ManyGroups(2, "a loss")),
        ("(.*)", MatchesEverything()),
        ("loss (", NotARegex("missing ), unterminated subpattern", 6)),
        ("$", PathWithoutKey()),
    ],
)
def test_what_is_no_metric_of_losses(metric, problem):
    with pytest.raises(MetricError) as error:
        parse_losses(metric)
    assert error.value.message == problem


LINES = tuple(f"step {step} loss {3 - step / 10:g} t={step + 1}" for step in range(5))


def test_those_of_the_steps_that_count():
    found = losses(LOSS, *LINES)
    assert found.beside(times(r"t=(\d)", *LINES, left_out=2), 2, 3) == [2.8, 2.7, 2.6]


def test_the_line_that_starts_the_clock_has_a_loss_and_no_time():
    found = losses(LOSS, *LINES)
    assert found.beside(times("^step", *LINES), 1, 3) == [2.8, 2.7, 2.6]


def test_of_a_whole_training_as_one_step_all_count():
    found = losses(LOSS, *LINES)
    assert found.beside(None, 0, 1) == [3.0, 2.9, 2.8, 2.7, 2.6]
    assert found.beside(times(r"took (\d)", *LINES, "took 9"), 0, 1) == [3.0, 2.9, 2.8, 2.7, 2.6]


def test_of_an_optimizers_steps_all_count_unless_each_has_one():
    found = losses(LOSS, *LINES)
    assert found.of_optimizer(2, 3) == [2.8, 2.7, 2.6]
    assert found.of_optimizer(3, 12) == [3.0, 2.9, 2.8, 2.7, 2.6]
    with pytest.raises(NotMeasured) as error:
        losses(LOSS).of_optimizer(2, 3)
    assert error.value.message == NothingPrinted("loss", "loss metric", LOSS)


@pytest.mark.parametrize(
    ("lines", "steps", "said"),
    [
        (LINES, 3, LossesUnlikeSteps(5, 3)),
        (LINES[:1], 3, LossesUnlikeSteps(1, 3, r"(\S+)")),
        ((), 3, NothingPrinted("loss", "loss metric", LOSS)),
        (("epoch 1", " epoch 2"), 3, NoMatch("loss", "loss metric", LOSS, 2, "epoch 2")),
    ],
)
def test_another_number_of_losses_than_of_steps(lines, steps, said):
    timed = times(r"t=(\d)", *(f"t={step + 1}" for step in range(steps)))
    with pytest.raises(NotMeasured) as error:
        losses(LOSS, *lines).beside(timed, 0, steps)
    assert error.value.message == said
