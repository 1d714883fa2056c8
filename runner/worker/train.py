"""Run a workload once: warm up, time each step, then (and only then) look at what it ran with."""

from __future__ import annotations

import resource
import time
from typing import Any

from runner.worker import machine_load
from runner.worker.cgroup import throttled_seconds
from runner.worker.evidence import collect
from runner.worker.workloads import WORKLOADS


def _usage() -> dict[str, float]:
    """Counters of this process since its start, and of the whole machine since its boot (times in seconds)."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    machine = machine_load.read()
    return {
        "machine_busy_s": machine.busy_s,
        "machine_steal_s": machine.steal_s,
        "machine_swapped_bytes": machine.swapped_bytes,
        "user_s": usage.ru_utime,
        "system_s": usage.ru_stime,
        "minor_faults": usage.ru_minflt,
        "major_faults": usage.ru_majflt,
        "voluntary_switches": usage.ru_nvcsw,
        "involuntary_switches": usage.ru_nivcsw,
        "throttled_s": throttled_seconds() or 0.0,
    }


def train(workload: str, data: str, warmup_steps: int, steps: int, epochs: int) -> dict[str, Any]:
    """Train and return one sample: step times in seconds, losses, resource use, digests and evidence.

    With ``epochs`` above 0 it trains that many whole epochs and tests the accuracy; ``steps`` is then not used.
    """
    training = WORKLOADS[workload].prepare(data)
    if epochs:
        steps = epochs * training.steps_per_epoch
    for _ in range(warmup_steps):
        training.step()
    ends = []
    losses = []
    before = _usage()
    start = time.perf_counter()
    for _ in range(steps):
        losses.append(training.step())
        ends.append(time.perf_counter())
    after = _usage()
    step_times = [end - begin for begin, end in zip([start, *ends], ends, strict=False)]
    return {
        "seconds": ends[-1] - start,
        "step_s": [round(seconds, 7) for seconds in step_times],
        "losses": losses,
        "images_per_step": training.images_per_step,
        "accuracy": training.accuracy() if epochs else None,
        "usage": {name: round(after[name] - before[name], 6) for name in before},
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "digests": training.digests,
        "evidence": collect(),
    }
