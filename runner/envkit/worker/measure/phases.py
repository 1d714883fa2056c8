"""How long each phase of a training step takes: by the clock, and without a profiler, which makes some slower."""

from __future__ import annotations

import os
from functools import partial

from envkit.worker import accelerator
from envkit.worker.evidence import collect
from envkit.worker.measure import batch_parts
from envkit.worker.measure.entry_points import COPY, OTHER, PHASES, Recorder, listening
from envkit.worker.measure.train import counters, increase
from envkit.worker.modes import Options
from envkit.worker.workloads import get


def phases(workload: str, data: str, warmup_steps: int, steps: int, options: Options) -> dict[str, object]:
    """Train ``steps`` steps after ``warmup_steps``, and take the time of each step's phases.

    ``phases`` has seconds for each step, by phase: with OTHER, what lies between them, they are all of ``step_s``.
    ``batch`` has the seconds of the parts in which DataLoader makes each step's batch, and how many ``workers`` make
    them (0: the process that trains does); None where there is no DataLoader.
    """
    cpus = os.sched_getaffinity(0)  # before an OpenMP runtime binds this thread to fewer
    training = get(workload).prepare(data, options)
    # of the network's call it is the beginning that copies the batch
    recorder = Recorder(partial(accelerator.clock, options.device), inner=(COPY,))
    with batch_parts.timed_parts(recorder) as batches:  # before the first step, which starts DataLoader's workers
        for _ in range(warmup_steps):
            training.step()
        before = counters(cpus)
        with listening(recorder):
            recorded = [recorder.step(training.step) for _ in range(steps)]
        after = counters(cpus)
    step_s = [sum(seconds.values()) for _, seconds in recorded]
    return {
        "seconds": sum(step_s),
        "step_s": [round(seconds, 7) for seconds in step_s],
        "losses": [loss for loss, _ in recorded],
        "usage": {**increase(before, after), "worker_cpus": len(cpus)},
        "phases": {phase: [round(seconds.get(phase, 0.0), 7) for _, seconds in recorded] for phase in (*PHASES, OTHER)},
        "batch": batches.last(steps),
        "modes": training.network.modes(),
        "digests": training.digests,
        "evidence": collect(),
    }
