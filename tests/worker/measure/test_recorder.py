"""Whose time it is: phases of a made-up step, by a clock that only what is planted moves on."""

from __future__ import annotations

import pytest
from envkit.worker.accelerator import GpuClock
from envkit.worker.measure.entry_points import COPY, FORWARD, INPUT, LOSS, OTHER, Recorder, reported

from tests.worker.test_accelerator import Gpu


class Time:
    """What it is now; a clock for a recorder, and the parts of a training that take time."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        marks = []
        return type("Clock", (), {"mark": lambda _: marks.append(self.now), "times": lambda _: marks})()

    def takes(self, seconds):
        self.now += seconds


@pytest.fixture
def time():
    return Time()


def test_phases_and_what_lies_between_them_add_up_to_the_step(time):
    recorder = Recorder(time)
    read, run = (reported(time.takes, phase, recorder) for phase in (INPUT, FORWARD))

    def step():
        time.takes(0.125)
        read(1.0)
        run(2.0)
        time.takes(0.25)
        run(4.0)
        return 0.5

    assert recorder.step(step) == (0.5, {INPUT: 1.0, FORWARD: 6.0, OTHER: 0.375})


def test_a_phase_within_another_is_a_part_of_it_but_for_inner_ones(time):
    recorder = Recorder(time, inner=(COPY,))
    copy, lose, read = (reported(time.takes, phase, recorder) for phase in (COPY, LOSS, INPUT))

    def network():
        copy(1.0)
        read(2.0)
        time.takes(4.0)

    def step():
        reported(network, FORWARD, recorder)()
        lose(8.0)
        copy(16.0)

    assert recorder.step(step)[1] == {FORWARD: 6.0, COPY: 17.0, LOSS: 8.0, OTHER: 0.0}


def test_what_is_called_between_steps_counts_for_none(time):
    recorder = Recorder(time)
    read = reported(time.takes, INPUT, recorder)
    read(1.0)
    first = recorder.step(lambda: read(2.0))[1]
    read(4.0)
    time.takes(8.0)
    assert (first, recorder.step(lambda: read(16.0))[1]) == ({INPUT: 2.0, OTHER: 0.0}, {INPUT: 16.0, OTHER: 0.0})


def test_a_phase_ends_with_an_error_too(time):
    recorder = Recorder(time)

    def fail():
        time.takes(1.0)
        raise ValueError("planted")

    def step():
        with pytest.raises(ValueError, match="planted"):
            reported(fail, INPUT, recorder)()
        time.takes(2.0)

    assert recorder.step(step)[1] == {INPUT: 1.0, OTHER: 2.0}


def test_of_a_gpu_a_phase_is_what_the_gpu_did_for_it():
    gpu = Gpu()

    def asks_for(seconds):
        gpu.done_s += seconds

    recorder = Recorder(lambda: GpuClock(gpu))
    run = reported(asks_for, FORWARD, recorder)
    assert recorder.step(lambda: run(0.5))[1] == {FORWARD: 0.5, OTHER: 0.0}
