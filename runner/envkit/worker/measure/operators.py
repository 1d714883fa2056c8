"""Where a step's time goes: a workload's operators under PyTorch's profiler, after steps that no profiler slows."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from envkit.worker import accelerator, compiler
from envkit.worker.evidence import collect
from envkit.worker.measure.entry_points import FORWARD, listening
from envkit.worker.measure.train import counters, increase, step_seconds, timed
from envkit.worker.messages.captions import FORWARD_PASS
from envkit.worker.modes import CUDA, Options
from envkit.worker.workloads import get

if TYPE_CHECKING:
    from torch.autograd.profiler_util import FunctionEvent, FunctionEventAvg


def operators(
    workload: str, data: str, warmup_steps: int, steps: int, options: Options, forward: bool = False
) -> dict[str, object]:
    """Train ``steps`` steps without the profiler and as many with it, after ``warmup_steps``.

    ``step_s`` (seconds of each step), ``losses`` and ``usage`` (increases over all of them, see ``train``) are without
    the profiler; what ``under_profiler`` says is with it.
    """
    cpus = os.sched_getaffinity(0)  # before an OpenMP runtime binds this thread to fewer
    training = get(workload).prepare(data, options)
    timed(training.step, warmup_steps, accelerator.clock(options.device))
    before = counters(cpus)
    losses, times = timed(training.step, steps, accelerator.clock(options.device))
    after = counters(cpus)
    return {
        "seconds": times[-1] - times[0],
        "step_s": step_seconds(times),
        "losses": losses,
        "usage": {**increase(before, after), "worker_cpus": len(cpus)},
        **under_profiler(training.step, steps, options.device, forward),
        "modes": training.network.modes(),
        "digests": training.digests,
        "evidence": collect(),
    }


def under_profiler(step: Callable[[], float | None], steps: int, device: str, forward: bool) -> dict[str, object]:
    """``profiled_step_s``: how long each step took (seconds); ``operators``: what each took over all of them; and
    ``gpu_idle_share``: the share of the time in which a GPU had nothing to do (None without one).

    With ``forward`` the operators are those of the forward pass alone, which took ``forward_s`` of all steps.

    An operator's ``self_s`` is the time in it without those that it calls, on the thread that trains: threads that help
    it are not counted again. ``allocated_bytes`` is what it and those that it calls allocate and don't free again.
    """
    compiler.bring_back()
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == CUDA else [])]
    with profile(activities=activities, profile_memory=True):  # its first use takes longer
        step()
    listener = listening(_ForwardPass()) if forward else contextlib.nullcontext()
    with profile(activities=activities, profile_memory=True) as profiler, listener:
        _, times = timed(step, steps, accelerator.clock(device))
    passes = [event for event in profiler.events() if _is_forward_pass(event)]
    averages = _averages(passes) if forward else profiler.key_averages()
    operators = [
        {
            "name": average.key,
            "calls": average.count,
            "self_s": average.self_cpu_time_total / 1e6,
            "allocated_bytes": max(0, average.cpu_memory_usage),
        }
        for average in averages
    ]
    idle = accelerator.idle_share(accelerator.gpu_spans(profiler.events())) if device == CUDA else None
    return {
        "profiled_step_s": step_seconds(times),
        "operators": operators,
        "gpu_idle_share": idle,
        **({"forward_s": sum(event.time_range.elapsed_us() for event in passes) / 1e6} if forward else {}),
    }


class _ForwardPass:
    """Has the profiler note when the network runs forward."""

    def __init__(self) -> None:
        self._is_open = False
        self._recorded = contextlib.ExitStack()

    def begin(self, phase: str) -> bool:
        if phase != FORWARD or self._is_open:
            return False
        from torch.profiler import record_function

        self._recorded.enter_context(record_function(FORWARD_PASS))
        self._is_open = True
        return True

    def end(self) -> None:
        self._recorded.close()
        self._is_open = False


def _is_forward_pass(event: FunctionEvent) -> bool:
    """Along a GPU's time the profiler draws it too, which is no part of the thread that trains."""
    return event.name == FORWARD_PASS and bool(event.device_type.name == "CPU")


def _averages(passes: Iterable[FunctionEvent]) -> Iterable[FunctionEventAvg]:
    """As the profiler's own averages over events, but of those within the forward pass alone."""
    from torch.autograd.profiler_util import FunctionEventAvg

    averages: dict[str, FunctionEventAvg] = defaultdict(FunctionEventAvg)
    for event in passes:
        for inner in _within(event):
            averages[inner.key].add(inner)  # type: ignore[no-untyped-call]  # PyTorch has no types for it
    return averages.values()


def _within(event: FunctionEvent) -> Iterator[FunctionEvent]:
    for child in event.cpu_children:
        yield child
        yield from _within(child)
