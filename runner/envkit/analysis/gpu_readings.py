"""Readings of a run's GPUs from its samples, and NCCL's choices there."""

from __future__ import annotations

import statistics as basic
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from envkit.bench.events import Gpu, GpuReading, Sample
from envkit.engines.measurement import Evidence, Number, probe
from envkit.profiles.inspection import Inspection
from envkit.worker.evidence.nccl import Choice

# A GPU's clocks are not held back where it has nothing to do.
NOT_HELD_BACK = ("idle",)


class NcclLog(TypedDict):
    """The choices in NCCL's log (``envkit.worker.evidence.nccl``); None for one that it has no line on."""

    version: str | None
    ranks: int | None
    network: str | None
    transports: str | None
    channels: int | None
    rings: int
    trees: int
    algorithms: str | None
    protocols: str | None
    choices: list[Choice]
    warnings: list[str]


@dataclass(frozen=True)
class GpuReadings:
    """One arm's GPUs; of several ranks all of them together (``envkit.worker.nvml.together``). None is not known.

    Pairs are the lowest and the highest reading around any sample's timed steps; other figures are medians.
    """

    arm: str
    samples: int
    sm_mhz: tuple[Number, Number] | None
    temperature_c: tuple[Number, Number] | None
    power_w: float | None
    held_back: dict[str, int]  # by reason: the samples around which it held the clocks back
    idle_share: float | None
    kernels_per_step: float | None
    allocated_bytes: float | None  # the most that tensors had
    nccl: NcclLog | None  # what the first log says that there is (envkit.worker.evidence.nccl)


def readings(arm: str, samples: Sequence[Sample]) -> GpuReadings | None:
    """Return what the arm's samples say; None where none of them saw a GPU."""
    gpus = [sample.gpu for sample in samples if sample.gpu]
    nccl = next(filter(None, map(nccl_of, samples)), None)
    if not gpus and nccl is None:
        return None
    around = [[one for one in (gpu.before, gpu.after) if one] for gpu in gpus]
    reasons = [{reason for one in both for reason in one.held_back or ()} for both in around]
    held_back = Counter(reason for of_sample in reasons for reason in of_sample if reason not in NOT_HELD_BACK)
    return GpuReadings(
        arm=arm,
        samples=len(gpus),
        sm_mhz=_range("sm_mhz", around),
        temperature_c=_range("temperature_c", around),
        power_w=_median("mean_power_w", gpus),
        held_back=dict(sorted(held_back.items())),
        idle_share=_median("idle_share", gpus),
        kernels_per_step=_median("kernels_per_step", gpus),
        allocated_bytes=_median("allocated_bytes", gpus),
        nccl=nccl,
    )


def nccl_of(sample: Sample) -> NcclLog | None:
    """Return what NCCL's log says in the first process of a sample that has one."""
    evidence: list[Evidence] = [sample.evidence, *(process.evidence for process in sample.other_processes or ())]
    logs = (probe(one, "nccl") for one in evidence)
    return next((cast(NcclLog, log) for log in logs if log.get("log") == "written"), None)


def _range(name: str, around: Sequence[Sequence[GpuReading]]) -> tuple[Number, Number] | None:
    values = [value for both in around for one in both if (value := getattr(one, name)) is not None]
    return (min(values), max(values)) if values else None


def _median(name: str, gpus: Sequence[Gpu]) -> float | None:
    values: list[float] = [value for gpu in gpus if (value := getattr(gpu, name)) is not None]
    return basic.median(values) if values else None


def trained_on(inspection: Inspection) -> str:
    """``, NVIDIA H100 80GB HBM3 (driver 580.95.05)`` for a sentence on the machine; empty where no GPU was looked for.

    Different GPUs are all named.
    """
    accelerator = inspection.get("accelerator") or {}
    names = dict.fromkeys(str(device["name"]) for device in accelerator.get("devices", ()))
    return f", {' and '.join(names)} (driver {accelerator['driver']})" if names else ""
