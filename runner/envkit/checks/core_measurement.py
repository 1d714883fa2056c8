"""Measure which usable CPUs share a core, by the speeds that ``envkit.worker.measure.core_speeds`` observes."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from msgspec import Struct

import envkit
from envkit.checks.core_messages import (
    CoresDisturbed,
    CoresNotMeasured,
    CoresUnclear,
    LittleCpuTime,
    NothingToShare,
    QuotaHidesCores,
)
from envkit.checks.interference import interference_in
from envkit.common import codec, documents
from envkit.engines.measured_cores import MeasuredCores
from envkit.engines.measurement import Usage
from envkit.messages import Message, Printed
from envkit.profiles.environment import clean
from envkit.worker.host import cpu_list
from envkit.worker.measure import core_speeds
from envkit.worker.measure.core_speeds import Window, slots

# A CPU's speed beside all others, as a share of its speed without the one that may share its core. Two hardware threads
# have about half each. Separate cores keep all of it, but for the lower frequency of many busy cores. Between the two
# limits nothing is concluded.
SHARED, SEPARATE = 0.65, 0.75
# The speed of a CPU beside half of the others, as a share of its speed alone: four threads of a core have half in these
# slots. One busy core may run faster than half of them, but not by so much.
CROWDED = 0.58
# Of their CPUs' time, which the processes must have had: interrupts and the end of a slot take the rest.
LEAST_SHARE = 0.95
# Of a single CPU's time.
LEAST_OF_CPU = 0.8
PATIENCE_S = 30.0
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS")


class Speeds(Struct, frozen=True, kw_only=True):
    """A measurement. ``slots`` has the number of each slot in order of time, ``windows`` those of each CPU."""

    slots: list[int]
    windows: list[list[Window | None]]
    seconds: float
    user_s: float  # CPU time of the measuring processes
    busy_s: float | None  # CPU time of all programs on these CPUs
    steal_s: float | None
    swapped_bytes: int | None


def obstacle_to_measuring(cpus: int, quota: float | None) -> Message | None:
    """Return why nothing can be measured with so many CPUs under a quota (in CPUs), or None."""
    if cpus < 2:
        return NothingToShare()
    return QuotaHidesCores(quota, cpus) if quota is not None and quota < cpus else None


def measure(cpus: Sequence[int]) -> MeasuredCores | Message:
    """Measure for at most two seconds. Return the cores of ``cpus``, or why the measurement says nothing."""
    own_path = str(Path(envkit.__file__).resolve().parents[1])
    inherited = clean(os.environ, keep=())[0]
    path = os.pathsep.join(filter(None, (own_path, inherited.get("PYTHONPATH"))))
    variables = {**inherited, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONPATH": path}
    # the root folder has no modules: Python would look into the current one first
    try:
        ended = subprocess.run(
            [sys.executable, "-m", core_speeds.__name__, ",".join(map(str, cpus))],
            env=variables, cwd="/", capture_output=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        speeds = codec.parse(documents.parse(ended.stdout), Speeds)
    except subprocess.TimeoutExpired:
        return CoresNotMeasured()
    except (ValueError, KeyError, TypeError):
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        return CoresNotMeasured(Printed(lines[-1]) if lines else None)
    return judge(cpus, speeds)


def judge(cpus: Sequence[int], speeds: Speeds) -> MeasuredCores | Message:
    """Return the cores that the speeds of ``cpus`` show, or why they show none."""
    reasons = _disturbances(cpus, speeds)
    if reasons:
        return CoresDisturbed(tuple(reasons))
    relative = [_relative(position, len(cpus), speeds) for position in range(len(cpus))]
    partners = [_partner(position, len(cpus), kept) for position, kept in enumerate(relative)]
    cores = set()
    is_crowded = len(cpus) > 2 and statistics.median(relative[0][len(slots(len(cpus))) - 1]) >= 1 / CROWDED
    for position, partner in enumerate(partners):
        if is_crowded or partner is None or partners[partner] != position:
            together = [statistics.median(kept[0]) for kept in relative]
            return CoresUnclear(cpu_list(cpus), min(together), max(together))
        cores.add(tuple(sorted({position, partner})))
    lists = tuple(cpu_list(cpus[position] for position in core) for core in sorted(cores))
    return MeasuredCores(cpu_list(cpus), lists, datetime.now(timezone.utc).date().isoformat())


def _disturbances(cpus: Sequence[int], speeds: Speeds) -> list[Message]:
    """Return why the measurement counts as disturbed: what other programs used, and what its processes had to wait."""
    usage = Usage(
        user_s=speeds.user_s, system_s=0.0, minor_faults=0, worker_cpus=len({*cpus}), worker_cpus_busy_s=speeds.busy_s,
        worker_cpus_steal_s=speeds.steal_s, machine_swapped_bytes=speeds.swapped_bytes,
    )  # fmt: skip
    reasons = interference_in(usage, speeds.seconds)
    shares: list[float] = []
    shares_by_cpu: dict[int, list[float]] = {}
    for windows in zip(*speeds.windows, strict=True):
        by_cpu: dict[int, float] = {}
        for cpu, window in zip(cpus, windows, strict=True):
            if window is not None:
                by_cpu[cpu] = by_cpu.get(cpu, 0.0) + window.share
        shares += by_cpu.values()
        for cpu, share in by_cpu.items():
            shares_by_cpu.setdefault(cpu, []).append(share)
    # of many CPUs a single one that was taken away hardly shows in the mean
    least = min(statistics.fmean(shares_of_cpu) for shares_of_cpu in shares_by_cpu.values())
    share = least if least < LEAST_OF_CPU else statistics.fmean(shares)
    return [*reasons, LittleCpuTime(share)] if share < LEAST_SHARE else reasons


def _relative(position: int, cpus: int, speeds: Speeds) -> Mapping[int, list[float]]:
    """Return a CPU's speeds in each of its slots of a round, as shares of its speed in the fastest half of the CPUs."""
    by_slot: dict[int, list[float]] = {}
    for slot, window in zip(speeds.slots, speeds.windows[position], strict=True):
        if window is not None:
            by_slot.setdefault(slot, []).append(window.speed)
    halves = 2 * (cpus - 1).bit_length()
    fastest = max(statistics.median(speeds_in_slot) for slot, speeds_in_slot in by_slot.items() if 1 <= slot <= halves)
    return {slot: [speed / fastest for speed in speeds_in_slot] for slot, speeds_in_slot in by_slot.items()}


def _partner(position: int, cpus: int, relative: Mapping[int, list[float]]) -> int | None:
    """Return the position of the CPU on the same core, its own if it has a core alone, None if the speeds are unclear.

    Slots in which the CPU is slow have the partner too, so that both positions have that bit in common.
    """
    slowed = {slot: _is_slowed(shares) for slot, shares in relative.items()}
    if slowed[0] is not True:
        return None if slowed[0] is None else position
    partner = position
    for bit in range((cpus - 1).bit_length()):
        is_slow = slowed[2 * bit + (1 if position >> bit & 1 else 2)]
        if is_slow is None:
            return None
        partner ^= 0 if is_slow else 1 << bit
    return partner if partner != position and partner < cpus else None


def _is_slowed(shares: Sequence[float]) -> bool | None:
    """Return whether a CPU shares its core, by the speeds of all rounds: None if less than two thirds agree."""
    ordered = sorted(shares)
    agreeing = math.ceil(2 / 3 * len(ordered))
    if ordered[agreeing - 1] <= SHARED:
        return True
    return False if ordered[len(ordered) - agreeing] >= SEPARATE else None
