"""Where a step's time goes: a workload's operators under PyTorch's profiler, after steps that no profiler slows."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from runner.worker import accelerator, compiler
from runner.worker.evidence import collect
from runner.worker.measure.train import counters, increase, step_seconds, timed
from runner.worker.modes import CUDA, Options
from runner.worker.workloads import get


def operators(workload: str, data: str, warmup_steps: int, steps: int, options: Options) -> dict[str, Any]:
    """Train ``steps`` steps without the profiler and as many with it, after ``warmup_steps``.

    ``step_s`` (seconds of each step), ``losses`` and ``usage`` (increases over all of them, see ``train``) are without
    the profiler; ``profiled_step_s`` and ``operators`` with it, as is ``gpu_idle_share``: the share of the time in
    which a GPU that is trained on had nothing to do (None without one).
    """
    cpus = os.sched_getaffinity(0)  # before an OpenMP runtime binds this thread to fewer
    training = get(workload).prepare(data, options)
    timed(training.step, warmup_steps, accelerator.clock(options.device))
    before = counters(cpus)
    losses, times = timed(training.step, steps, accelerator.clock(options.device))
    after = counters(cpus)
    found, profiled, idle = under_profiler(training.step, steps, options.device)
    return {
        "seconds": times[-1] - times[0],
        "step_s": step_seconds(times),
        "losses": losses,
        "usage": {**increase(before, after), "worker_cpus": len(cpus)},
        "profiled_step_s": step_seconds(profiled),
        "operators": found,
        "gpu_idle_share": idle,
        "modes": training.network.seen(),
        "digests": training.digests,
        "evidence": collect(),
    }


def under_profiler(
    step: Callable[[], float], steps: int, device: str
) -> tuple[list[dict[str, Any]], list[float], float | None]:
    """What each operator took over all ``steps``, the time at the start and after each step (seconds), and the share
    of the time in which a GPU had nothing to do.

    ``self_s`` is the time in the operator without those that it calls, on the thread that trains: threads that help it
    are not counted again. ``allocated_bytes`` is what it and those that it calls allocate and don't free again.
    """
    compiler.bring_back()
    from torch.profiler import ProfilerActivity, profile

    watched = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == CUDA else [])]
    settings: dict[str, Any] = {"activities": watched, "profile_memory": True}
    with profile(**settings):  # its first use takes longer
        step()
    with profile(**settings) as profiler:
        _, times = timed(step, steps, accelerator.clock(device))
    found = [
        {
            "name": one.key,
            "calls": one.count,
            "self_s": one.self_cpu_time_total / 1e6,
            "allocated_bytes": max(0, one.cpu_memory_usage),
        }
        for one in profiler.key_averages()
    ]
    return found, times, accelerator.idle_share(accelerator.gpu_spans(profiler.events())) if device == CUDA else None
