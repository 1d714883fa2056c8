"""What the samples of a run say of the GPUs that they were trained on, and of what NCCL chose there."""

from __future__ import annotations

import statistics as basic
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.bench.events import SampleEvent

# A GPU's clocks are not held back where it has nothing to do.
NOT_HELD_BACK = ("idle",)


@dataclass(frozen=True)
class GpuReadings:
    """One arm's GPUs; of several ranks all of them together (``runner.worker.nvml.together``). None is not known.

    ``sm_mhz`` and ``temperature_c`` are the lowest and the highest reading around any sample's timed steps; power
    (watts), ``idle_share``, ``kernels_per_step`` and memory (bytes, the most that tensors had) are medians.
    ``held_back`` counts, by reason, the samples around which it held the clocks back. ``nccl`` is what NCCL's log says
    (``runner.worker.evidence.nccl``), of the first process that has one.
    """

    arm: str
    samples: int
    sm_mhz: tuple[int, int] | None
    temperature_c: tuple[int, int] | None
    power_w: float | None
    held_back: dict[str, int]
    idle_share: float | None
    kernels_per_step: float | None
    allocated_bytes: float | None
    nccl: dict[str, Any] | None


def readings(arm: str, own: Sequence[SampleEvent]) -> GpuReadings | None:
    """What the arm's samples say; None where none of them saw a GPU."""
    told = [event["gpu"] for event in own if event.get("gpu")]
    nccl = next((found for event in own for found in _logs(event)), None)
    if not told and nccl is None:
        return None
    around = [[one[when] for when in ("before", "after") if one.get(when)] for one in told]
    held_back = Counter(reason for both in around for reason in {*_held_back(both)})
    return GpuReadings(
        arm=arm,
        samples=len(told),
        sm_mhz=_range("sm_mhz", around),
        temperature_c=_range("temperature_c", around),
        power_w=_median("mean_power_w", told),
        held_back=dict(sorted(held_back.items())),
        idle_share=_median("idle_share", told),
        kernels_per_step=_median("kernels_per_step", told),
        allocated_bytes=_median("allocated_bytes", told),
        nccl=nccl,
    )


def nccl_of(event: SampleEvent) -> dict[str, Any] | None:
    """What NCCL's log says in the first process of a sample that has one."""
    return next(_logs(event), None)


def _logs(event: SampleEvent) -> Iterator[dict[str, Any]]:
    processes = (event, *event.get("other_processes", ()))
    found = (one["evidence"].get("nccl") or {} for one in processes)
    return (one for one in found if one.get("log") == "written")


def _held_back(readings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    return (reason for one in readings for reason in one["held_back"] or () if reason not in NOT_HELD_BACK)


def _range(name: str, around: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[int, int] | None:
    values: list[int] = [one[name] for both in around for one in both if one[name] is not None]
    return (min(values), max(values)) if values else None


def _median(name: str, told: Sequence[Mapping[str, Any]]) -> float | None:
    values: list[float] = [one[name] for one in told if one.get(name) is not None]
    return basic.median(values) if values else None


def trained_on(inspection: Mapping[str, Any]) -> str:
    """``, NVIDIA H100 80GB HBM3 (driver 580.95.05)`` for a sentence on the machine; empty where no GPU was looked for.

    Of GPUs that differ all are named.
    """
    found = inspection.get("accelerator") or {}
    names = dict.fromkeys(str(device["name"]) for device in found.get("devices", ()))
    return f", {' and '.join(names)} (driver {found['driver']})" if names else ""
