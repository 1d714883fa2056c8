"""A worker's sample, with a workload that takes no time, no torch, and two CPUs of a made-up machine."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from envkit.worker import accelerator, distributed, nvml, workloads
from envkit.worker.measure import helpers, machine_load, train
from envkit.worker.measure.machine_load import Counters, CpuTime
from envkit.worker.measure.quality_target import parse

STEP_S = 0.25


class InProcess:
    """What tests in the place of a process of its own."""

    def __init__(self, prepare):
        pass

    def wait(self):
        pass

    def quality(self, training):
        return training.quality()

    def end(self):
        pass


@pytest.fixture
def clock(monkeypatch):
    """A clock that only steps move on."""
    now = SimpleNamespace(s=100.0)
    monkeypatch.setattr(time, "perf_counter", lambda: now.s)
    return now


@pytest.fixture
def run(monkeypatch, clock):
    """Train with given readings of the machine before and after the timed steps, on given CPUs."""

    def sample(readings=None, throttled=(None, None), frequency=None, cpus=(0, 1), warmup_steps=2, steps=3, epochs=0,
               test=False, profiled=True, counting_s=0.0, testing_s=0.0, until=None):  # fmt: skip
        losses = itertools.count()
        network = SimpleNamespace(modes=lambda: {"precision": "fp32"}, weights=lambda: "w" * 64)
        training = SimpleNamespace(images_per_step=64, steps_per_epoch=4, unit="images", digests={}, network=network)

        def quality():
            clock.s += testing_s
            return {"accuracy": 0.5}

        training.quality = quality

        def step():
            clock.s += STEP_S
            return float(next(losses))

        def prepare(data, options):
            monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})  # OpenMP binds the thread that starts it
            training.step = step
            return training

        def frequency_mhz(cpus):
            clock.s += counting_s
            return frequency

        def throttle_events(cpus):
            clock.s += counting_s
            return next(hot)

        # a training by steps is read before it is prepared, and after its timed steps, too
        around = readings and not epochs and [readings[0], *readings, readings[-1]]
        read = iter(around or readings or itertools.repeat(counters()))
        hot = itertools.cycle(throttled)
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(cpus))
        monkeypatch.setattr(machine_load, "read", lambda: next(read))
        monkeypatch.setattr(machine_load, "throttle_events", throttle_events)
        monkeypatch.setattr(machine_load, "frequency_mhz", frequency_mhz)
        monkeypatch.setattr(train, "collect", dict)
        monkeypatch.setattr(train, "Tester", InProcess)
        monkeypatch.setitem(workloads.WORKLOADS, "none", workloads.Workload(prepare))
        target = parse(until) if until else None
        return train.train("none", "synthetic", warmup_steps, steps, epochs, test=test, profiled=profiled, until=target)

    return sample


def counters(busy=0.0, steal=0.0, swapped=0, pressure=0.0, programs=(0.0, 0.0), cpu_steal=(0.0, 0.0)):
    cpus = {cpu: CpuTime(*both) for cpu, both in enumerate(zip(programs, cpu_steal, strict=True))}
    return Counters(0.0, busy, steal, swapped, pressure, cpus)


def test_warm_up_steps_are_timed_and_kept_apart(run):
    found = run(warmup_steps=2, steps=3)
    assert found["warmup_step_s"] == [STEP_S] * 2
    assert found["step_s"] == [STEP_S] * 3
    assert found["seconds"] == 3 * STEP_S
    assert found["losses"] == [2.0, 3.0, 4.0]
    assert run(warmup_steps=0)["warmup_step_s"] == []


def test_whole_epochs_are_tested_outside_of_the_time(run):
    found = run(epochs=2, testing_s=10.0)
    assert (len(found["step_s"]), found["seconds"], found["quality"]) == (8, 8 * STEP_S, {"accuracy": 0.5})
    epoch = {"seconds": 4 * STEP_S, "quality": {"accuracy": 0.5}, "test_s": 10.0}
    assert found["curve"] == [{**epoch, "loss": 3.5}, {**epoch, "loss": 7.5}]  # two steps warmed up


def test_what_a_test_between_epochs_uses_is_not_the_training_s(run):
    read = [counters(busy=busy) for busy in (10.0, 14.0, 90.0, 95.0)]
    assert run(read, epochs=2)["usage"]["machine_busy_s"] == 9.0


def test_a_target_that_is_reached_ends_the_training(run):
    assert len(run(epochs=5, until="loss=3.5")["curve"]) == 1
    assert len(run(epochs=2, until="accuracy=0.9")["curve"]) == 2
    assert "curve" not in run(steps=3)


def test_the_quality_is_tested_after_steps_only_where_that_is_asked_for(run):
    assert run()["quality"] is None
    assert run(test=True)["quality"] == {"accuracy": 0.5}


def test_the_modes_that_were_seen_are_told(run):
    assert run()["modes"] == {"precision": "fp32"}


def test_what_is_used_by_what_was_started_beside_the_training_counts_as_its_own(run, monkeypatch):
    nothing = dict.fromkeys(helpers.COUNTED, 0)
    read = iter([nothing, nothing, *[{**nothing, "user_s": 100.0, "minor_faults": 10**9}] * 2])
    monkeypatch.setattr(helpers, "used", lambda: next(read))
    usage = run()["usage"]
    assert 100 <= usage["user_s"] < 101
    assert usage["minor_faults"] >= 10**9
    assert 100 <= usage["training_used_s"] < 101


def test_what_a_child_took_that_has_ended_counts_as_its_own():
    """As of a compiler, which torch.compile starts in the midst of training."""
    before = train.counters([])
    subprocess.run([sys.executable, "-S", "-c", "sum(range(10**7))"], check=True)
    added = train.increase(before, train.counters([]))
    assert added["user_s"] > 0.05
    assert added["minor_faults"] > 100


def test_usage_is_what_was_added_while_the_steps_were_timed(run):
    before = counters(50.0, 1.0, 4096, 7.0, (20.0, 30.0), (0.5, 0.5))
    after = counters(54.0, 1.25, 8192, 7.5, (21.0, 32.0), (0.5, 0.75))
    usage = run([before, after], throttled=(10, 12), frequency=2500.0)["usage"]
    expected = {
        "machine_busy_s": 4.0, "machine_steal_s": 0.25, "machine_swapped_bytes": 4096, "cpu_pressure_s": 0.5,
        "worker_cpus_busy_s": 3.0, "worker_cpus_steal_s": 0.25, "throttle_events": 2,
    }  # fmt: skip
    assert {name: usage[name] for name in expected} == expected


def test_cpu_time_is_counted_over_all_of_the_training_too(run, monkeypatch):
    """From before it is prepared: five steps, of which the timed ones are three."""
    before, after = counters(programs=(20.0, 30.0)), counters(programs=(21.0, 32.0), cpu_steal=(0.5, 0.25))
    usage = run([before, after])["usage"]
    assert (usage["training_s"], usage["training_busy_s"], usage["training_steal_s"]) == (5 * STEP_S, 3.0, 0.75)
    assert "training_s" not in run(epochs=1)["usage"]
    monkeypatch.setattr(distributed, "size", lambda: 2)
    monkeypatch.setattr(distributed, "backend_of", lambda device: "gloo")
    assert "training_s" not in run(profiled=False)["usage"]


def test_the_frequency_and_the_number_of_cpus_are_no_differences(run):
    usage = run(frequency=2500.0)["usage"]
    assert (usage["frequency_mhz"], usage["worker_cpus"]) == (2500.0, 2)


def test_only_the_cpus_that_the_worker_was_given_count(run):
    usage = run([counters(), counters(programs=(1.0, 5.0))], cpus={1})["usage"]
    assert (usage["worker_cpus_busy_s"], usage["worker_cpus"]) == (5.0, 1)


def test_a_kernel_that_tells_nothing_leaves_the_keys_there(run):
    nothing = Counters(0.0, None, None, None)
    told, untold = run()["usage"], run([nothing, nothing])["usage"]
    assert told.keys() == untold.keys()
    unknown = {
        "machine_busy_s", "machine_steal_s", "machine_swapped_bytes", "worker_cpus_busy_s", "worker_cpus_steal_s",
        "throttle_events", "cpu_pressure_s", "frequency_mhz", "training_busy_s", "training_steal_s",
    }  # fmt: skip
    assert {name for name, value in untold.items() if value is None} == unknown


def test_a_cpu_that_the_kernel_does_not_show_leaves_its_time_unknown(run):
    assert run(cpus={0, 5})["usage"]["worker_cpus_busy_s"] is None


def test_what_is_told_only_once_is_unknown(run):
    assert run(throttled=(3, None))["usage"]["throttle_events"] is None
    assert run(throttled=(None, 3))["usage"]["throttle_events"] is None


def test_one_of_several_ranks_tells_of_its_communication_unless_nobody_asks(run, monkeypatch):
    assert run().keys().isdisjoint({"communication", "final_weights"})
    monkeypatch.setattr(distributed, "size", lambda: 2)
    monkeypatch.setattr(distributed, "backend_of", lambda device: "gloo")
    monkeypatch.setattr(distributed, "communication", lambda step, backend: {"seconds": 0.0, "share": 0.0})
    assert run().keys() >= {"communication", "final_weights"}
    asked = run(profiled=False)
    assert (asked["final_weights"], "communication" in asked) == ("w" * 64, False)


def test_a_gpu_is_read_right_around_the_steps_however_long_counting_takes(run, clock, monkeypatch):
    """The readings of one that uses 300 W at any time; what the driver needs for an answer is a quarter of a second."""

    class Watch:
        def read(self):
            now = clock.s
            clock.s += 0.25
            return {"at_s": now, "energy_j": 300.0 * now}

        def between(self, before, after, seconds):
            return nvml.around(before, after, seconds)

    monkeypatch.setattr(accelerator, "watch", lambda device: Watch())
    monkeypatch.setattr(accelerator, "profiled", lambda step: {})
    found = run(steps=3, counting_s=10.0)
    gpu = found["gpu"]
    assert gpu["mean_power_w"] == 300.0
    assert gpu["after"]["at_s"] - gpu["before"]["at_s"] == 0.25 + found["seconds"]
