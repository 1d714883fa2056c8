"""What CUDA_DEVICE_MAX_CONNECTIONS comes to: from a driver that answers as its reference says, and from the times of
kernels on a simulated GPU whose queues work as NVIDIA describes them. No GPU is here.
"""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from envkit.checks.effect import check
from envkit.profiles.environment import Environment
from envkit.worker.evidence import gpu, queues
from envkit.worker.messages.evidence import (
    DriverHidesQueues,
    NoContext,
    NoDriverVersion,
    QueuesNotTold,
    QueuesUnclear,
    StreamsKeptApart,
)
from envkit.worker.readings import Unread

from tests.nvidia import Driver
from tests.worker.evidence.test_cublas import Torch

ONE_QUEUE = Environment(
    "gpu-one-queue", "", {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, {}, (), {"gpu.one_queue": True}, "same"
)
SPREAD = tuple(range(queues.STREAMS))
ONE = (0,) * queues.STREAMS
MOSTLY = (*ONE[:-1], 1)


class Gpu:
    """torch.cuda of a GPU with queues: a kernel holds up all behind it in its queue until the one before it in its
    stream has ended; then those run beside it.

    ``queue_of`` has, for each stream in the order of their making, its queue. ``clock`` has, for each time that all is
    awaited, how long a kernel takes. ``serial``: nothing runs beside another.
    """

    def __init__(self, monkeypatch, queue_of, serial=False, clock=lambda awaited: 0.003):
        self.queue_of, self.serial, self.clock = queue_of, serial, clock
        self.now, self.awaited, self.made, self.launched, self.current = 100.0, 0, 0, [], None
        monkeypatch.setattr(queues.time, "perf_counter", lambda: self.now)

    def Stream(self):
        self.made += 1
        return self.made - 1

    @contextmanager
    def stream(self, stream):
        self.current = stream
        yield
        self.current = None

    def _sleep(self, cycles):
        assert cycles == queues.CYCLES
        self.now += 1e-5  # what a launch takes
        self.launched.append(self.current)

    def synchronize(self):
        seconds = self.clock(self.awaited)
        self.awaited += 1
        free, ended, last = {}, {}, 0.0
        for stream in self.launched:
            queue = 0 if self.serial else self.queue_of[stream]
            start = last if self.serial else max(free.get(queue, 0.0), ended.get(stream, 0.0))
            free[queue], ended[stream] = start, start + seconds
            last = max(ended.values())
        self.now += last
        self.launched = []


def times(*arguments, **options):
    return queues.kernel_times(SimpleNamespace(cuda=Gpu(*arguments, **options)))


@pytest.mark.parametrize(
    ("queue_of", "depth_first"),
    [(ONE, 9), ((0, 1) * 4, 5), ((0, 1, 2, 3) * 2, 3), (SPREAD, 2), (MOSTLY, 8), ((0, 0, 0, 1) * 2, 7)],
)
def test_how_long_kernels_take_tells_how_many_streams_share_a_queue(monkeypatch, queue_of, depth_first):
    found = times(monkeypatch, queue_of)
    assert found["depth_first"] == pytest.approx(depth_first, abs=0.1)
    assert found["breadth_first"] == pytest.approx(2, abs=0.1)


def test_a_slow_first_round_does_not_count(monkeypatch):
    """The first kernel has to be loaded, and a GPU that had nothing to do runs at a low clock."""
    found = times(monkeypatch, ONE, clock=lambda awaited: 0.030 if awaited < 6 else 0.003)
    assert queues.share_one({"kernel_times": found}) is True


@pytest.mark.parametrize("queue_of", [MOSTLY, (0, 0, 0, 1) * 2])
def test_what_lies_between_is_not_verified_and_has_its_figure(monkeypatch, queue_of):
    with pytest.raises(Unread) as caught:
        queues.share_one({"kernel_times": times(monkeypatch, queue_of)})
    said = caught.value.message
    assert said == QueuesUnclear(queues.STREAMS, said.kernels, one=9, several=5)
    assert 7 <= said.kernels < 9


def test_kernels_that_never_overlap_say_nothing_of_queues(monkeypatch):
    """CUDA_LAUNCH_BLOCKING, for example: also what any number of queues lets overlap takes its time."""
    with pytest.raises(Unread) as caught:
        queues.share_one({"kernel_times": times(monkeypatch, SPREAD, serial=True)})
    said = caught.value.message
    assert isinstance(said, StreamsKeptApart)
    assert 16 <= said.kernels < 17


# --- the driver ---


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        (Driver(version=13000), DriverHidesQueues("13.0", "13.1")),
        (Driver(version=12080), DriverHidesQueues("12.8", "13.1")),
        (Driver(version=None), NoDriverVersion()),
        (Driver(context=0), NoContext()),
        (Driver(status=801), QueuesNotTold(801)),
        (Driver(0), QueuesNotTold(0)),
    ],
)
def test_a_driver_that_does_not(driver, why):
    with pytest.raises(Unread) as caught:
        queues.work_queues(driver)
    assert caught.value.message == why


def test_what_the_driver_writes_to_is_as_large_as_it_thinks():
    """CUdevResource of CUDA 13.1: 4 bytes of a type, 92 of padding, 40 of a union and a pointer."""
    assert queues.ctypes.sizeof(queues.Resource) == 144
    assert queues.Resource.concurrency_limit.offset == 100


# --- both together, as evidence ---


@pytest.fixture
def measured(monkeypatch):
    """What the worker finds on a machine with this driver and these queues."""

    def find(driver, queue_of=SPREAD, without="", **options):
        torch = Torch(":4096:8")
        simulated = Gpu(monkeypatch, queue_of, **options)
        for name in {"Stream", "stream", "_sleep"} - {without}:
            setattr(torch.cuda, name, getattr(simulated, name))
        torch.cuda.synchronize = simulated.synchronize
        monkeypatch.setattr(queues.ctypes, "CDLL", lambda name: driver)
        return gpu.measured(torch)

    return find


def verdict(found):
    """Of the profile's one check: whether it holds, whether it is verified, and what was seen."""
    (only,) = check(ONE_QUEUE, {"gpu": found, "variables": {"sensitive": ONE_QUEUE.variables}}, {})
    return only.holds, only.verified, only.seen


@pytest.mark.parametrize("limit", [1, 8, 32])
def test_what_a_driver_of_today_tells_is_not_measured(measured, limit):
    """Of more than one queue where one was asked for, too: the variable came too late, or was not read."""
    assert measured(Driver(limit)) == {
        "cublas_workspace_bytes": 2**25, "work_queues": limit, "one_queue": limit == 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("queue_of", "depth_first", "one"), [(ONE, 9, True), ((0, 1) * 4, 5, False), (SPREAD, 2, False)]
)
def test_on_an_older_driver_it_is_measured_whether_there_is_one(measured, queue_of, depth_first, one):
    found = measured(Driver(version=13000), queue_of)
    assert found["kernel_times"]["depth_first"] == pytest.approx(depth_first, abs=0.1)
    assert found["not_verified"] == {"work_queues": DriverHidesQueues("13.0", "13.1").to_json()}
    assert verdict(found) == (one, True, one)


def test_what_is_not_clear_is_neither_in_effect_nor_not(measured):
    holds, verified, seen = verdict(measured(Driver(version=13000), ONE, serial=True))
    assert (holds, verified) == (True, False)
    assert seen["code"] == StreamsKeptApart.code


def test_a_torch_without_such_kernels(measured):
    found = measured(Driver(version=13000), without="_sleep")
    assert "kernel_times" not in found
    assert found["not_verified"]["kernel_times"]["error"] == "AttributeError"
    assert verdict(found)[:2] == (True, False)
