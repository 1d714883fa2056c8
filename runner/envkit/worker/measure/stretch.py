"""Steps that were timed and counted without a break: a sample is one such stretch, a full training one each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any


@dataclass(frozen=True)
class Stretch:
    """Times are in seconds, counters (``usage``) those of ``train.counters``; None is what the kernel does not tell."""

    losses: list[float | None]
    step_s: list[float]
    seconds: float
    usage: dict[str, float | None]
    frequency_mhz: float | None  # of the worker's CPUs at the end
    peak_memory_bytes: int  # of the process so far
    gpu: dict[str, Any] | None = None  # ``accelerator.Watch.told``
    clock_s: float = 0.0  # by the host's clock, between the readings of the GPU


def joined(stretches: Sequence[Stretch]) -> Stretch:
    """All of them as one, without what came between. Of memory the first one's peak: what comes after may need more."""
    first, last = stretches[0], stretches[-1]
    if len(stretches) == 1:
        return first
    return Stretch(
        losses=list(chain.from_iterable(one.losses for one in stretches)),
        step_s=list(chain.from_iterable(one.step_s for one in stretches)),
        seconds=sum(one.seconds for one in stretches),
        usage={name: _sum([one.usage[name] for one in stretches]) for name in first.usage},
        frequency_mhz=last.frequency_mhz,
        peak_memory_bytes=first.peak_memory_bytes,
        gpu=_joined_gpu(stretches),
        clock_s=sum(one.clock_s for one in stretches),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known), 6) if len(known) == len(values) else None


def _joined_gpu(stretches: Sequence[Stretch]) -> dict[str, Any] | None:
    """From the first reading to the last, with the energy and the mean power of the stretches alone."""
    told = [one.gpu for one in stretches if one.gpu is not None]
    if not told:
        return None
    if "energy_j" not in told[0]:  # nothing could be read but the memory
        return told[0]
    used, seconds = _sum([one["energy_j"] for one in told]), sum(one.clock_s for one in stretches)
    power = round(used / seconds, 1) if used is not None and seconds > 0 else None
    return {**told[0], "after": told[-1]["after"], "energy_j": used, "mean_power_w": power}
