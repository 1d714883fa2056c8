"""Timing on a GPU and what is read of it, with a torch that only has clocks: no GPU is here."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from envkit.worker import accelerator, nvml
from envkit.worker.accelerator import GpuClock, HostClock, Watch, idle_share
from envkit.worker.messages.gpus import NoDriverSeen
from envkit.worker.nvml import Nvml

from tests.nvidia import UUIDS, Library

UUID = UUIDS[0].removeprefix("GPU-")


class Gpu:
    """A GPU's stream: what is asked of it is done ``later`` seconds after the host goes on."""

    def __init__(self, uuid=UUID):
        self.done_s = 0.0
        self.awaited = 0
        self.version = SimpleNamespace(cuda="13.0")
        properties = SimpleNamespace(uuid=uuid) if uuid else SimpleNamespace()
        self.cuda = SimpleNamespace(
            synchronize=self._synchronize, Event=self._event, current_device=lambda: 0,
            get_device_properties=lambda device: properties, max_memory_allocated=lambda: 3 * 2**20,
            max_memory_reserved=lambda: 4 * 2**20,
        )  # fmt: skip

    def _synchronize(self):
        self.awaited += 1

    def _event(self, enable_timing):
        assert enable_timing
        event = SimpleNamespace(at_s=None)
        event.record = lambda: setattr(event, "at_s", self.done_s)
        event.synchronize = self._synchronize
        event.elapsed_time = lambda later: 1e3 * (later.at_s - event.at_s)
        return event


def test_steps_on_a_gpu_end_when_the_gpu_has_done_them():
    gpu = Gpu()
    clock = GpuClock(gpu)
    clock.mark()
    assert gpu.awaited == 1  # for what was asked of it before
    for seconds in (0.25, 0.5):
        gpu.done_s += seconds
        clock.mark()
    assert gpu.awaited == 1  # steps are not held up by being timed
    assert clock.times() == [0.0, 0.25, 0.75]
    assert gpu.awaited == 2


def test_the_hosts_clock(monkeypatch):
    now = iter([5.0, 5.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    clock = HostClock()
    clock.mark()
    clock.mark()
    assert clock.times() == [5.0, 5.5]


def test_each_device_has_its_clock(monkeypatch):
    monkeypatch.setitem(accelerator.sys.modules, "torch", Gpu())
    assert isinstance(accelerator.clock("cpu"), HostClock)
    assert isinstance(accelerator.clock("cuda"), GpuClock)
    assert accelerator.watch("cpu") is None


def test_what_a_sample_keeps_of_its_gpu():
    libraries = (Library(nvmlDeviceGetTotalEnergyConsumption=millijoules) for millijoules in (1_000, 701_000))
    earlier, later = (Watch(Gpu(), Nvml(library)) for library in libraries)
    told = later.between(earlier.read(), later.read(), 2.0)
    assert (told["energy_j"], told["mean_power_w"]) == (700.0, 350.0)
    assert told["after"]["held_back"] == ["power cap"]
    assert (told["allocated_bytes"], told["reserved_bytes"]) == (3 * 2**20, 4 * 2**20)


@pytest.mark.parametrize("gpu", [Gpu(uuid="none"), Gpu(uuid=None)])
def test_a_gpu_that_nvml_does_not_know_is_not_read(gpu):
    watch = Watch(gpu, Nvml(Library()))
    assert watch.read() is None
    assert watch.between(None, None, 2.0) == {"allocated_bytes": 3 * 2**20, "reserved_bytes": 4 * 2**20}


def test_training_goes_on_where_nvml_is_hidden(monkeypatch):
    def hidden():
        raise nvml.Unavailable(NoDriverSeen("no"))

    monkeypatch.setattr(nvml, "start", hidden)
    monkeypatch.setitem(accelerator.sys.modules, "torch", Gpu())
    assert accelerator.watch("cuda").read() is None


@pytest.mark.parametrize(
    ("spans", "share"),
    [
        ([(0, 10)], 0.0),
        ([(0, 4), (6, 10)], 0.2),
        ([(6, 10), (0, 4)], 0.2),
        ([(0, 8), (2, 3), (4, 10)], 0.0),  # two streams at a time
        ([(5, 6), (9, 10)], 0.6),
        ([], None),
        ([(3, 3)], None),
    ],
)
def test_the_share_of_time_in_which_nothing_ran(spans, share):
    assert idle_share(spans) == (None if share is None else pytest.approx(share))


def event(begin, end, device="CUDA", annotation=False):
    """As torch.profiler has them: times in microseconds."""
    return SimpleNamespace(
        time_range=SimpleNamespace(start=begin, end=end), device_type=SimpleNamespace(name=device),
        is_user_annotation=annotation,
    )  # fmt: skip


def test_idle_time_and_kernels_of_a_step(monkeypatch):
    """20 kernels of 2 us with gaps of 2 us; what the host does and what a program calls its parts are none."""
    kernels = [event(4 * number, 4 * number + 2) for number in range(20)]
    events = [*kernels, event(0, 80, "CPU"), event(0, 80, annotation=True)]
    watched = []

    @contextmanager
    def profile(activities):
        watched.append([one.name for one in activities])
        yield SimpleNamespace(events=lambda: events)

    monkeypatch.setattr("torch.profiler.profile", profile)
    steps = []
    found = accelerator.profiled(lambda: steps.append(1) or 1.0)
    assert found == {"idle_share": pytest.approx(38 / 78), "kernels_per_step": 2.0}
    assert (len(steps), watched) == (1 + accelerator.PROFILED_STEPS, [["CUDA"]] * 2)
