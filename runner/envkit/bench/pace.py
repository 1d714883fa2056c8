"""How long samples are: what follows from the pace of each arm's first worker, before anything is compared.

Most of what two processes of one profile differ by lasts longer than a sample: more steps average out a part of it
alone (docs/statistics.md). So many short processes tell more than few long ones, and a sample is as short as the start
of its worker makes worthwhile.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.bench.arms import Arm
from envkit.bench.events import Lengths, WarmUp
from envkit.bench.study import Study, WorkloadSpec
from envkit.stats.steady import MIN_STEPS, steady
from envkit.worker.cgroup import memory_limit
from envkit.worker.request import UserCommand
from envkit.worker.workloads import get

# An arm's first worker takes that many steps, and goes on until so many seconds have passed.
FIRST_STEPS, FIRST_S = 12, 2.0
# The first worker of a user's command times so many steps of its optimizer at least, and goes on for so many seconds.
PACE_STEPS, PACE_S = 12, 5.0
# Timed steps take that share of what else a worker takes; and there are at least so many.
SHARE = 1 / 4
LEAST_STEPS = 10
# Timed steps of a user's command take about so many seconds; fewer where the budget has no room for that, but never
# less than FEWEST_STEPS.
SAMPLE_S, FEWEST_STEPS = 3.0, 5
# A leading step counts as warming up while it takes so many times as long as what is typical later.
SLOW = 1.5
# Workers that wait for their turn may have that share of the memory that is free, and wait for about so long.
MEMORY_SHARE, WAIT_S = 0.5, 60.0


@dataclass(frozen=True)
class Pace:
    """The pace of an arm's first worker."""

    step_s: float  # of a step once it is steady
    all_s: float  # of the whole worker
    other_s: float  # what of that was no step
    steps: int
    warm_up: int  # how many of the steps were slower first
    reached: bool  # False where it may not have been steady at all
    memory_bytes: float


def pace_of(warm_up: WarmUp) -> Pace:
    """By the event of an arm's first worker, with the time of each of its steps from the very first."""
    curve = warm_up.step_s or []
    found = steady([curve]) if len(curve) >= MIN_STEPS else None
    slow, reached = (found.steps, found.reached) if found else _leading(curve)
    other = max(0.0, warm_up.worker_seconds - sum(curve))
    memory = warm_up.peak_memory_bytes
    return Pace(statistics.median(curve[slow:]), warm_up.worker_seconds, other, len(curve), slow, reached, memory)


def first_length(command: UserCommand | None, length: WorkloadSpec, ranks: int) -> tuple[int, float]:
    """Return how many steps, and for how many seconds, an arm's first worker trains at least.

    The arm is trained on so many ``ranks``, and ``length`` is that of its samples as the user gave it.

    It takes no more steps than a sample has. The seconds are 0 where the user gave the length of samples, and on
    several ranks, which count.
    """
    if command is not None:
        return PACE_STEPS, PACE_S if command.is_paced else 0.0
    if length.steps and length.warmup_steps:
        return min(FIRST_STEPS, length.warmup_steps + length.steps), 0.0
    return FIRST_STEPS, 0.0 if ranks > 1 else FIRST_S


def _leading(curve: Sequence[float]) -> tuple[int, bool]:
    """How many leading steps are slow, in a curve that is too short for ``steady``; and whether that ends."""
    half = len(curve) // 2
    typical = statistics.median(curve[half:])
    steps = next((step for step, second in enumerate(curve[:half]) if second <= SLOW * typical), half)
    return steps, steps < half or half == 0


def lengths(study: Study, first: Mapping[str, Pace], cpus: int, free_bytes: float) -> Lengths:
    """Return the lengths of samples: steps by workload, and how many workers are started at once.

    Its ``commands`` are empty: they depend on the lengths.

    ``first`` has what was seen, by the arm's name. Lengths that the user gave stay as they are. For a user's command
    that is not paced, only the readings to leave out can be chosen: ``skipped_steps``.
    """
    first = {name: _known(study, name, one) for name, one in first.items()}
    if study.user_command is not None and study.user_command.is_paced:
        return _of_command(study, first)
    looked_at = {} if study.user_command is not None and not _alike(first) else first
    warm_up = {name: one.warm_up for name, one in looked_at.items()}
    unsteady = [name for name, one in looked_at.items() if not one.reached]
    if study.user_command is not None:
        skipped = max(warm_up.values(), default=0)
        return Lengths(warm_up=warm_up, unsteady=unsteady, together=1, skipped_steps=skipped, commands={})
    steps, warmup_steps = dict[str, int](), dict[str, int]()
    longest_s = 0.0
    for workload, length in study.workloads.items():
        alike = [first[arm.name] for arm in study.arms if study.workload_of(arm) == workload]
        known = get(workload)
        before = length.warmup_steps or max(known.warmup_steps, *(one.warm_up for one in alike))
        step_s = statistics.fmean(one.step_s for one in alike)
        other_s = min(one.other_s for one in alike) + before * step_s  # files are read but once
        warmup_steps[workload] = before
        paced = max(LEAST_STEPS, round(SHARE * other_s / step_s)) if known.paced else known.steps
        steps[workload] = length.steps or paced
        longest_s = max(longest_s, other_s + steps[workload] * max(one.step_s for one in alike))
    return Lengths(
        warm_up=warm_up,
        unsteady=unsteady,
        together=_together(study, first, cpus, free_bytes, longest_s),
        skipped_steps=0,
        commands={},
        steps=steps,
        warmup_steps=warmup_steps,
    )


def _of_command(study: Study, first: Mapping[str, Pace]) -> Lengths:
    """Return ``lengths`` of a user's command whose optimizer's steps are timed, by the pace of each arm's first worker.

    No sample takes more steps than every first worker took, so that a short training is not asked for more than it
    has. ``first`` lacks the first step of each training, which has no beginning that is known: it never counts.
    """
    ((workload, length),) = study.workloads.items()
    seen_steps = min(one.steps for one in first.values())
    warm_up = min(max(one.warm_up for one in first.values()), seen_steps // 2)
    before = length.warmup_steps or 1 + warm_up
    step_s = statistics.fmean(one.step_s for one in first.values())
    other_s = min(one.other_s for one in first.values()) + before * step_s
    wanted = max(LEAST_STEPS, math.ceil(SAMPLE_S / step_s), round(SHARE * other_s / step_s))
    if not study.stopping.blocks and study.contrasts:
        left_s = study.stopping.budget_s - sum(one.all_s for one in first.values())
        each_s = left_s / (study.fewest_blocks * len(study.arms))
        wanted = min(wanted, max(FEWEST_STEPS, int((each_s - other_s) / step_s)))
    return Lengths(
        warm_up={name: 1 + one.warm_up for name, one in first.items()},
        unsteady=[name for name, one in first.items() if not one.reached],
        together=1,
        skipped_steps=0,
        commands={},
        steps={workload: max(1, min(wanted, seen_steps + 1 - before))},
        warmup_steps={workload: before},
    )


def _known(study: Study, arm: str, pace: Pace) -> Pace:
    """The readings, or what is known already: where epochs end, some steps are slow in each, and the first warms up."""
    epoch = 0 if study.user_command is not None else get(study.workload_of(study.arm(arm))).epoch_steps
    return replace(pace, warm_up=epoch, reached=True) if epoch else pace


def _alike(first: Mapping[str, Pace]) -> bool:
    """Whether a user's command printed equally many readings under each profile, and enough to tell warm-up by."""
    counts = {one.steps for one in first.values()}
    return len(counts) == 1 and min(counts) >= MIN_STEPS


def _together(study: Study, first: Mapping[str, Pace], cpus: int, free_bytes: float, longest_s: float) -> int:
    """How many workers are started at once: one for each CPU, if they have the memory and none waits for long."""
    if not all(starts_ahead(study, arm) for arm in study.arms):
        return 1
    largest = max(one.memory_bytes for one in first.values())
    wait = 1 + int(WAIT_S / longest_s)
    return max(1, min(len(study.arms), cpus, int(MEMORY_SHARE * free_bytes / largest), wait))


def free_bytes() -> float:
    """The memory that workers can still have: of this machine (proc_meminfo(5)), and of what this process is in."""
    available_kb = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    available = float(available_kb[1]) * 1024 if available_kb else 0.0
    return min(available, memory_limit() or available)


def starts_ahead(study: Study, arm: Arm) -> bool:
    """Whether a worker of ``arm`` can wait for its turn: one process of a workload of the kit's, on CPUs."""
    alone = study.ranks_of(arm) == 1 and (arm.cpu_shares or arm.instances or 1) == 1
    return alone and study.user_command is None and not study.epochs and study.nodes == 1 and not study.options.on_gpus


def block_s(study: Study, first: Mapping[str, Pace]) -> float:
    """About what a block of the sized ``study`` takes (seconds), where workers start one after the other."""
    total = 0.0
    for arm in study.arms:
        trained, one = study.workload_spec(arm), first[arm.name]
        whole = study.user_command is not None and not study.user_command.is_paced
        total += one.all_s if whole else one.other_s + (trained.warmup_steps + trained.steps) * one.step_s
    return total
