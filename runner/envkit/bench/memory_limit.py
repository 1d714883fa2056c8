"""The limit on peak memory (``--max-memory``): which arms need more than their reference by more than that share.

Peak memory is the largest resident memory of the training's process, and of a user's command that of its largest
process (ru_maxrss, getrusage(2)). On a GPU the most that tensors had there counts by itself, against the same limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from envkit.bench.arms import Arm, View
from envkit.bench.events import Sample
from envkit.bench.run import Run

PROCESS, GPU = "process", "GPU"


@dataclass(frozen=True)
class OverMemory:
    """Peak memory of an arm above the limit. Bytes are medians over processes, in the blocks of both arms."""

    arm: str
    reference: str
    peak_bytes: float
    reference_bytes: float
    memory: str  # PROCESS or GPU

    @property
    def share(self) -> float:
        """Return the excess over the reference's peak, as a share of that peak."""
        return self.peak_bytes / self.reference_bytes - 1


def is_over(peak_bytes: float, reference_bytes: float, limit: float) -> bool:
    """Return whether a peak is above the reference's by more than the share ``limit``; at the limit it is not.

    Peaks are whole bytes, so that the limit is rounded to one.
    """
    most_more = limit * reference_bytes
    return peak_bytes - reference_bytes > (round(most_more) if math.isfinite(most_more) else most_more)


def over_memory(run: Run, arm: Arm) -> OverMemory | None:
    """Return the peak memory of ``arm`` if that is above the limit; None within it, without a limit, or if unknown."""
    limit = run.study.stopping.max_memory
    if limit is None:
        return None
    for memory, (peaks, of_reference) in _peaks(run, arm).items():
        peak, reference = median(peaks), median(of_reference)
        if is_over(peak, reference, limit):
            return OverMemory(arm.name, run.study.reference_of(arm).name, peak, reference, memory)
    return None


def is_clearly_over(run: Run, arm: Arm) -> bool:
    """Return whether every process of ``arm`` was above the limit beside every one of its reference.

    The medians are above it then, too.
    """
    limit = run.study.stopping.max_memory
    if limit is None:
        return False
    return any(is_over(min(of_arm), max(of_reference), limit) for of_arm, of_reference in _peaks(run, arm).values())


def over_in_race(run: Run) -> set[str]:
    """Return the arms of a race whose median peak memory is above the most that the study allows, in bytes."""
    most = run.study.stopping.most_memory_bytes
    peaks = {arm.name: [sample.peak_memory_bytes for sample in run.samples(arm)] for arm in run.study.arms}
    return {name for name, of_arm in peaks.items() if of_arm and median(of_arm) > most} if most is not None else set()


def is_unknown(run: Run, arm: Arm) -> bool:
    """Return whether ``arm`` has no peak memory to compare with its reference's, although the study has a limit."""
    return run.study.stopping.max_memory is not None and not _peaks(run, arm)


def _peaks(run: Run, arm: Arm) -> dict[str, tuple[list[float], list[float]]]:
    """Return the peaks of ``arm`` and of its reference in bytes, by the memory; without those that do not compare.

    Two images, arms with other numbers of processes, and several ranks or trainings at once do not compare.
    """
    study = run.study
    reference = study.reference_of(arm)
    if study.view is View.IMAGES or any(
        study.ranks_of(side) > 1 or (side.instances or 1) > 1 for side in (arm, reference)
    ):
        return {}
    blocks = set(run.complete_blocks(arm))
    kinds: dict[str, Callable[[Sample], float | None]] = {
        PROCESS: lambda sample: sample.peak_memory_bytes,
        GPU: lambda sample: sample.gpu.allocated_bytes if sample.gpu else None,
    }
    peaks = {}
    for memory, of in kinds.items():
        sides = [
            [peak for sample in run.samples(side) if sample.block in blocks and (peak := of(sample))]
            for side in (arm, reference)
        ]
        if all(sides):
            peaks[memory] = (sides[0], sides[1])
    return peaks
