"""Seconds that blocks and reference kernel readings of a run took so far, and will take."""

from __future__ import annotations

from statistics import median

from envkit.bench.events import ReferenceKernel, ReferenceKernelFailure, Resume
from envkit.bench.run import Run

# After so many blocks it is known how many fit into the budget; and what the latest took tells what the next will take.
DESIGN_BLOCKS, LATEST = 4, 2
# The reference kernel is read no more often than so many times in a budget: to read it takes seconds.
READINGS = 8


def block_s(run: Run, blocks: int, latest: int = LATEST) -> float:
    """What a block took lately, without the reference kernel (the median): also where one of them was disturbed."""
    took = dict.fromkeys(range(max(0, blocks - latest), blocks), 0.0)
    for sample in run.samples():
        if sample.block in took:  # a worker that failed was tried again
            took[sample.block] += sample.worker_seconds
    return median(took.values())


def wants_reading(run: Run, block: int) -> bool:
    """Return whether it is time to read the reference kernel again, before ``block``."""
    study, read = run.study, run.all(ReferenceKernel)
    if study.epochs or run.first(ReferenceKernelFailure) or any(one.block == block for one in read):
        return False
    if not read or study.stopping.blocks:
        return True
    since = run.events[run.events.index(read[-1]) :]
    resumed = any(isinstance(event, Resume) for event in since)  # which may be hours later
    return resumed or sum(event.worker_seconds for event in since) > study.stopping.budget_s / READINGS


def reading_s(run: Run) -> float:
    """The longest that a reading of the reference kernel took so far."""
    return max((one.worker_seconds for one in run.all(ReferenceKernel)), default=0.0)


def readings_s(run: Run, blocks: int) -> float:
    """Return what the readings of the reference kernel will take that are still to come after ``blocks`` blocks."""
    study, fixed = run.study, run.design
    if study.epochs or run.first(ReferenceKernelFailure):
        return 0.0
    read = len(run.all(ReferenceKernel))
    planned = fixed.planned if fixed else study.stopping.blocks
    to_come = study.stopping.blocks - read if study.stopping.blocks else READINGS - read
    return float(max(0, min(to_come, planned - blocks) if planned else to_come)) * reading_s(run)
