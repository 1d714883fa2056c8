"""Conclusions of reports beyond the interval, above all whether losses may differ."""

from __future__ import annotations

import math
import signal
from collections import Counter
from collections.abc import Iterable
from typing import Any

from envkit.analysis.summary import Comparison, Summary
from envkit.bench.arms import Arm
from envkit.bench.calibration import is_calibration
from envkit.bench.messages import WorkerEnded
from envkit.bench.problem_messages import WarmingUp
from envkit.bench.problems import problem_of
from envkit.engines.messages import Killed
from envkit.messages import Message
from envkit.stats.interval import ERROR_RATE
from envkit.worker.libraries import LIBRARIES
from envkit.worker.messages import MemoryRanOut


def may_change_results(summary: Summary, arm: str) -> bool:
    """Return whether the profile of an arm may change numerics."""
    return summary.environments[arm].numerics != "same"


def is_supported(summary: Summary, arm: str) -> bool:
    """Return whether the profile of an arm leaves numerics alone and overrides no vendor's check."""
    return not may_change_results(summary, arm) and not overrides_vendor(summary.environments[arm].preload)


def overrides_vendor(preload: Iterable[str]) -> bool:
    """Return whether one of the libraries that are preloaded overrides a vendor's check."""
    return any(name in LIBRARIES and LIBRARIES[name].overrides_vendor for name in preload)


def was_killed(summary: Summary) -> bool:
    """Return whether SIGKILL ended the last worker that failed: the kernel does that if memory runs out."""
    problem: Any = problem_of(summary.failures[-1]) if summary.failures else None
    while isinstance(problem, WarmingUp | WorkerEnded):
        problem = problem.problem if isinstance(problem, WarmingUp) else problem.failure
    return isinstance(problem, Killed) and problem.signal == signal.SIGKILL.name


def memory_that_ran_out(summary: Summary) -> MemoryRanOut | None:
    """Return what the kernel's counters said of the last worker that failed: it, or a child, was killed for memory."""
    waiting: list[object] = [problem_of(summary.failures[-1])] if summary.failures else []
    while waiting:
        one = waiting.pop()
        if isinstance(one, MemoryRanOut):
            return one
        waiting += one.values().values() if isinstance(one, Message) else ()
    return None


def learns_otherwise(summary: Summary, comparison: Comparison) -> bool:
    """Return whether losses differ that should not.

    A profile that may change results must still have numbers for losses.
    """
    losses = comparison.losses
    may_differ = may_change_results(summary, comparison.arm)
    return losses is not None and not losses.agree and not (may_differ and math.isfinite(losses.largest_difference))


def losses_differ(comparison: Comparison) -> bool:
    """Return whether losses differ by more than rounding, whether or not they may."""
    return comparison.losses is not None and not comparison.losses.agree


def other_workload(summary: Summary, arm: Arm) -> str | None:
    """Return what ``arm`` trains, if the reference trains something else."""
    name = summary.plan.workload_of(arm)
    return None if name == summary.plan.workload_of(summary.plan.reference_of(arm)) else name


def fewest(summary: Summary) -> int:
    """Return the fewest blocks that can give each comparison an interval."""
    return summary.plan.fewest_blocks


def complete_blocks(summary: Summary) -> int:
    """Return how many blocks have a sample of each arm."""
    arms = Counter(sample.block for sample in summary.samples)
    return sum(number == len(summary.plan.arms) for number in arms.values())


def noise_floor(summary: Summary, blocks: int) -> float | None:
    """Return the share by which the baseline differs from itself in so many ``blocks``; None if not calibrated.

    A calibration itself gives its own.
    """
    if is_calibration(summary.plan):
        deviation, seen = summary.comparisons[0].deviation, blocks
    elif summary.calibration:
        deviation, seen = summary.calibration["sd"], summary.calibration["blocks"]
    else:
        return None
    if deviation is None:
        return None
    from scipy.special import stdtrit

    farthest = float(stdtrit(seen - 1, 1 - ERROR_RATE / 2))  # Student's t
    return math.expm1(farthest * deviation / math.sqrt(blocks))
