"""A full training epoch by epoch, with epochs and tests that take no time."""

from __future__ import annotations

import itertools

import pytest
from envkit.worker.measure.epochs import Stretch, joined, train_epochs
from envkit.worker.measure.quality_target import parse

LOSSES = ([4.0, 2.0], [2.0, 1.0], [1.0, 0.5])
ACCURACIES = (0.5, 0.7, 0.6)


def stretch(losses=(1.0,), seconds=3.0, peak=100, energy_j=None, watts=None, clock_s=4.0, **usage):
    """Steps of one epoch; with ``energy_j`` those of a GPU."""
    gpu = None
    if watts is not None:
        reading = {"power_w": watts}
        gpu = {"before": reading, "after": reading, "energy_j": energy_j, "mean_power_w": None, "reserved_bytes": peak}
    steps = [seconds / len(losses)] * len(losses)
    return Stretch([*losses], steps, seconds, {"user_s": 2.0, "throttle_events": None, **usage}, 2000.0, peak, gpu,
                   clock_s)  # fmt: skip


@pytest.fixture
def trained():
    """Train so many epochs, or until a target is reached; what it took, its curve, and what was done."""

    def run(epochs, until=None):
        done, ready, tests = [], iter(LOSSES), iter(ACCURACIES)

        def epoch():
            done.append("epoch")
            return stretch(next(ready))

        def test():
            done.append("test")
            return {"accuracy": next(tests)}

        return *train_epochs(epochs, epoch, test, parse(until) if until else None), done

    return run


def test_each_epoch_is_tested_when_it_has_ended(trained):
    whole, curve, done = trained(3)
    assert done == ["epoch", "test"] * 3
    assert [(one["loss"], one["quality"]["accuracy"], one["seconds"]) for one in curve] == [
        (3.0, 0.5, 3.0), (1.5, 0.7, 3.0), (0.75, 0.6, 3.0)
    ]  # fmt: skip
    assert all(one["test_s"] >= 0 for one in curve)
    assert (whole.seconds, len(whole.step_s), whole.losses) == (9.0, 6, [*itertools.chain.from_iterable(LOSSES)])


@pytest.mark.parametrize(
    ("until", "epochs"), [("accuracy=0.5", 1), ("accuracy=0.7", 2), ("accuracy=0.8", 3), ("loss=1.5", 2)]
)
def test_it_ends_after_the_epoch_that_reached_the_target_or_after_the_last(trained, until, epochs):
    whole, curve, done = trained(3, until)
    assert (len(curve), len(done), whole.seconds) == (epochs, 2 * epochs, 3.0 * epochs)


def test_steps_that_tell_no_loss_give_an_epoch_none():
    _, curve = train_epochs(1, lambda: stretch((None, None)), lambda: None)
    assert (curve[0]["loss"], curve[0]["quality"]) == (None, None)


def test_what_is_used_adds_up_and_a_peak_is_that_before_the_first_test():
    both = joined([stretch(peak=100, faults=3), stretch(peak=900, faults=4)])
    assert both.usage == {"user_s": 4.0, "throttle_events": None, "faults": 7}
    assert both.peak_memory_bytes == 100


def test_a_gpu_s_power_is_that_of_the_steps_alone():
    told = joined([stretch(energy_j=600.0, watts=10), stretch(energy_j=1000.0, watts=20, peak=900)]).gpu
    assert (told["before"]["power_w"], told["after"]["power_w"]) == (10, 20)
    assert (told["energy_j"], told["mean_power_w"], told["reserved_bytes"]) == (1600.0, 200.0, 100)
    assert joined([stretch(watts=10), stretch(energy_j=1.0, watts=20)]).gpu["mean_power_w"] is None
