"""Conclusions of reports beyond the interval, above all whether losses may differ."""

from __future__ import annotations

import math
import signal

from envkit.analysis import ranking
from envkit.analysis.result import Comparison, Result
from envkit.bench.arms import Arm, View
from envkit.bench.events import Failure
from envkit.bench.messages import WorkerEnded
from envkit.bench.problem_messages import WarmingUp
from envkit.bench.problems import problem_of
from envkit.engines.messages import Killed
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.stats import power
from envkit.stats.verdict import Verdict
from envkit.worker.messages import MemoryRanOut


def was_killed(failure: Failure) -> bool:
    """Return whether SIGKILL ended a worker that failed: the kernel does that if memory runs out."""
    problem: object = problem_of(failure)
    while isinstance(problem, WarmingUp | WorkerEnded):
        problem = problem.problem if isinstance(problem, WarmingUp) else problem.failure
    return isinstance(problem, Killed) and problem.signal == signal.SIGKILL.name


def memory_that_ran_out(failure: Failure) -> MemoryRanOut | None:
    """Return what the kernel's counters said of a worker that failed: it, or a child, was killed for memory."""
    waiting: list[object] = [problem_of(failure)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, MemoryRanOut):
            return one
        waiting += one.values().values() if isinstance(one, Message) else ()
    return None


def losses_wrongly_differ(comparison: Comparison, environment: Environment) -> bool:
    """Return whether losses differ that should not.

    An environment that may change results must still have numbers for losses.
    """
    losses = comparison.losses
    may_differ = environment.may_change_results
    return losses is not None and not losses.agree and not (may_differ and math.isfinite(losses.largest_difference))


def losses_differ(comparison: Comparison) -> bool:
    """Return whether losses differ by more than rounding, whether or not they may."""
    return comparison.losses is not None and not comparison.losses.agree


def faster_over_memory(result: Result) -> list[Comparison]:
    """Return the comparisons that are faster with matching losses, and above the limit on memory: the fastest first."""
    return sorted(
        (
            comparison
            for comparison in result.comparisons
            if comparison.verdict == Verdict.FASTER and comparison.over_memory and not losses_differ(comparison)
        ),
        key=ranking.place,
        reverse=True,
    )


def left_for_memory(comparison: Comparison) -> bool:
    """Return whether an arm left the run for its memory before it had an interval."""
    return comparison.speedup is None and comparison.dropped is not None and comparison.dropped.slower_than is None


def noise_floor(result: Result, blocks: int) -> float | None:
    """Return the share by which the baseline differs from itself in so many ``blocks``; None if not calibrated.

    A calibration itself gives its own.
    """
    if result.study.view is View.CALIBRATION:
        scale, seen = result.comparisons[0].scale, blocks
    elif result.calibration:
        scale, seen = result.calibration["scale"], result.calibration["blocks"]
    else:
        return None
    return None if scale is None else power.noise_floor(scale, seen, blocks)


# --- several workloads in one run ---


def winners(result: Result) -> dict[str, list[str]]:
    """Return for each workload the profiles that are known to be faster than its reference, the fastest first.

    One that was measured beside a load is not known to be, and one above the limit on memory is out. They are compared
    with the reference only, so it is unknown whether the first is faster than the second.
    """
    by_name: dict[str, list[str]] = {result.study.workload_of(arm): [] for arm in result.study.references}
    for arm, comparison in by_workload(result):
        if comparison.verdict == Verdict.FASTER and not (comparison.load or comparison.over_memory):
            by_name[result.study.workload_of(arm)].append(arm.profile)
    return by_name


def everywhere(result: Result) -> list[str]:
    """Return the profiles that are faster on every workload."""
    fast = list(winners(result).values())
    return [name for name in fast[0] if all(name in names for names in fast[1:])] if fast else []


def by_workload(result: Result) -> list[tuple[Arm, Comparison]]:
    """Return the arms that are compared: workload by workload, and on each the fastest first."""
    study, order = result.study, list(result.study.workloads)
    pairs = [(study.arm(comparison.arm), comparison) for comparison in result.comparisons]
    return sorted(pairs, key=lambda pair: (order.index(study.workload_of(pair[0])), -(ranking.ratio_of(pair[1]) or 0)))
