"""The device that a workload trains on: how steps are timed there, and what is read of a GPU around them."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from envkit.worker import compiler, nvml
from envkit.worker.distributed import PROFILED_STEPS
from envkit.worker.modes import CUDA
from envkit.worker.sample import GpuReading, GpuUse

if TYPE_CHECKING:
    from torch.autograd.profiler_util import FunctionEvent
    from torch.cuda import Event


class Clock(Protocol):
    """Marks the start and the end of each step."""

    def mark(self) -> None:
        """Now."""

    def times(self) -> list[float]:
        """When the marks were set, in seconds; only differences mean anything."""


class HostClock:
    """The time of the processor that trains."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def mark(self) -> None:
        self._times.append(time.perf_counter())

    def times(self) -> list[float]:
        return self._times


class GpuClock:
    """Events in the GPU's own stream of work, which come when all that was asked of it before has been done.

    The host's clock would stop when work has been asked for. Work that was asked for before the first mark is awaited.
    """

    def __init__(self, torch: ModuleType) -> None:
        self._cuda = torch.cuda
        self._events: list[Event] = []

    def mark(self) -> None:
        if not self._events:
            self._cuda.synchronize()
        event = self._cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)

    def times(self) -> list[float]:
        self._events[-1].synchronize()
        steps = (earlier.elapsed_time(later) / 1e3 for earlier, later in zip(self._events, self._events[1:]))
        return list(itertools.accumulate(steps, initial=0.0))


def clock(device: str) -> Clock:
    return GpuClock(sys.modules["torch"]) if device == CUDA else HostClock()


class Watch:
    """Reads the GPU that torch trains on, before and after the timed steps."""

    def __init__(self, torch: ModuleType, library: nvml.Nvml | None) -> None:
        """``library`` is None where NVML can't be asked."""
        self._torch, self._nvml = torch, library
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self._uuid = f"GPU-{getattr(properties, 'uuid', '')}"

    def read(self) -> GpuReading | None:
        """A reading now (``nvml.reading``); None where NVML does not know this GPU."""
        numbers = self._nvml.numbers(self._uuid) if self._nvml else None
        return nvml.reading(numbers) if numbers else None

    def between(self, before: GpuReading | None, after: GpuReading | None, seconds: float) -> GpuUse:
        """Return clocks, heat and power (``nvml.around``), and the most memory that was in use, in bytes.

        ``seconds`` are those from the first reading to the second, by the host's clock.
        ``allocated_bytes`` is what tensors had, ``reserved_bytes`` what the allocator held for them.
        """
        use: GpuUse = nvml.around(before, after, seconds) if before and after else {}
        use["allocated_bytes"] = self._torch.cuda.max_memory_allocated()
        use["reserved_bytes"] = self._torch.cuda.max_memory_reserved()
        return use


def watch(device: str) -> Watch | None:
    """None where nothing is trained on a GPU."""
    if device != CUDA:
        return None
    try:
        library = nvml.start()
    except nvml.Unavailable:  # torch has a GPU all the same: some machines hide NVML
        return Watch(sys.modules["torch"], None)
    return Watch(sys.modules["torch"], library)


def profiled(step: Callable[[], float | None]) -> GpuUse:
    """``idle_share`` of a GPU and ``kernels_per_step``, over PROFILED_STEPS steps under PyTorch's profiler.

    Kernels and copies are counted alike. The profiler makes the host slower, and the share larger than it is without.
    """
    compiler.bring_back()
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CUDA]
    with profile(activities=activities):  # its first use takes longer
        step()
    with profile(activities=activities) as profiler:
        for _ in range(PROFILED_STEPS):
            step()
    spans = gpu_spans(profiler.events())
    return {"idle_share": idle_share(spans), "kernels_per_step": len(spans) / PROFILED_STEPS}


def gpu_spans(events: Iterable[FunctionEvent]) -> list[tuple[float, float]]:
    """Begin and end (microseconds) of what a GPU did, of a profiler's events.

    The profiler draws a program's own names for parts of it along a GPU's time too: they are no work.
    """
    return [
        (event.time_range.start, event.time_range.end)
        for event in events
        if event.device_type.name == "CUDA" and not getattr(event, "is_user_annotation", False)
    ]


def idle_share(spans: Iterable[tuple[float, float]]) -> float | None:
    """The share of the time from the first span's begin to the last one's end in which none was under way.

    A span is one kernel's or copy's begin and end, in any unit; they may overlap. None without any, or in no time.
    """
    ordered = sorted(spans)
    if not ordered:
        return None
    busy, covered_to = 0.0, ordered[0][0]
    for begin, end in ordered:
        busy += max(0.0, end - max(begin, covered_to))
        covered_to = max(covered_to, end)
    total = covered_to - ordered[0][0]
    return 1 - busy / total if total > 0 else None
