"""A process that trains in chunks when it is told to: ``python -m benchmarks.chunk_worker DATA``.

It imports PyTorch, prints ``ready``, and then answers each line of its stdin with a line of JSON. ``prepare N`` builds
the CNN and takes N steps; ``N`` takes N steps; both answer with the time of each step (seconds) and the page faults
meanwhile. The end of its stdin ends it, after a line with its evidence.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time

from envkit.worker import accelerator
from envkit.worker.evidence import collect
from envkit.worker.measure.train import step_seconds, timed
from envkit.worker.modes import CPU
from envkit.worker.workloads import get


def main() -> None:
    """Import, then do as stdin says."""
    import torch  # noqa: F401 - which takes most of a start, and may overlap

    print("ready", flush=True)
    training = None
    for line in sys.stdin:
        began = time.perf_counter()
        *prepare, steps = line.split()
        if prepare:
            training = get("cnn").prepare(sys.argv[1])
        assert training is not None
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        _, times = timed(training.step, int(steps), accelerator.clock(CPU))
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        answer = {"step_s": step_seconds(times), "faults": faults, "seconds": time.perf_counter() - began}
        print(json.dumps(answer), flush=True)
    print(json.dumps(collect()), flush=True)
    os._exit(0)  # Python's own end takes half a second after torch was imported


if __name__ == "__main__":
    main()
