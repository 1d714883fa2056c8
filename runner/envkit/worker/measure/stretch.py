"""Steps that were timed and counted without a break: a sample is one such stretch, a full training one each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from envkit.worker.sample import GpuUse


@dataclass(frozen=True)
class Stretch:
    """Times are in seconds, counters (``usage``) those of ``train.counters``; None is what the kernel does not tell."""

    losses: list[float | None]
    step_s: list[float]
    seconds: float
    usage: dict[str, float | None]
    frequency_mhz: float | None  # of the worker's CPUs at the end
    peak_memory_bytes: int  # of the process so far
    gpu: GpuUse | None = None  # ``accelerator.Watch.between``
    clock_s: float = 0.0  # by the host's clock, between the readings of the GPU


def joined(stretches: Sequence[Stretch]) -> Stretch:
    """All of them as one, without what came between. Of memory the first one's peak: what comes after may need more."""
    first, last = stretches[0], stretches[-1]
    if len(stretches) == 1:
        return first
    return Stretch(
        losses=list(chain.from_iterable(stretch.losses for stretch in stretches)),
        step_s=list(chain.from_iterable(stretch.step_s for stretch in stretches)),
        seconds=sum(stretch.seconds for stretch in stretches),
        usage={name: _sum([stretch.usage[name] for stretch in stretches]) for name in first.usage},
        frequency_mhz=last.frequency_mhz,
        peak_memory_bytes=first.peak_memory_bytes,
        gpu=_joined_gpu(stretches),
        clock_s=sum(stretch.clock_s for stretch in stretches),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return round(sum(measured), 6) if len(measured) == len(values) else None


def _joined_gpu(stretches: Sequence[Stretch]) -> GpuUse | None:
    """From the first reading to the last, with the energy and the mean power of the stretches alone."""
    uses = [stretch.gpu for stretch in stretches if stretch.gpu is not None]
    if not uses:
        return None
    if "energy_j" not in uses[0]:  # nothing could be read but the memory
        return uses[0]
    energy, seconds = _sum([use["energy_j"] for use in uses]), sum(stretch.clock_s for stretch in stretches)
    power = round(energy / seconds, 1) if energy is not None and seconds > 0 else None
    return {**uses[0], "after": uses[-1]["after"], "energy_j": energy, "mean_power_w": power}
