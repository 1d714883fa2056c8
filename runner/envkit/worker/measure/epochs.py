"""Stretches of steps that were timed and counted without a break, and a full training, which has one each epoch.

Each epoch is tested afterwards, outside of the time. A sample of some steps is one stretch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, TypedDict

from envkit.worker import distributed
from envkit.worker.measure.quality_target import QualityTarget
from envkit.worker.sample import Epoch, GpuUse

if TYPE_CHECKING:
    Figures = dict[str, object]  # which Python 3.8 could not evaluate


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


class _Learnt(TypedDict):
    loss: float | None
    quality: Figures | None


def train_epochs(
    epochs: int, epoch: Callable[[], Stretch], test: Callable[[], Figures | None], until: QualityTarget | None = None
) -> tuple[Stretch, list[Epoch]]:
    """Train ``epochs`` epochs, or fewer where ``until`` is reached; all of them as one stretch, and the learning curve.

    That has for each epoch its ``seconds``, the mean training ``loss`` of its steps (None where no step tells one),
    the figures of the ``test`` after it (``quality``), and how long that took (``test_s``, in no other figure).
    """
    stretches: list[Stretch] = []
    curve: list[Epoch] = []
    while len(curve) < epochs and not (
        until and until.reached_after(until.reading(point["loss"], point["quality"]) for point in curve)
    ):
        stretches.append(epoch())
        begin = time.perf_counter()
        figures = test()
        took_s = time.perf_counter() - begin
        losses = [loss for loss in stretches[-1].losses if loss is not None]
        learnt = _of_all_ranks({"loss": fmean(losses) if losses else None, "quality": figures})
        curve.append({"seconds": stretches[-1].seconds, **learnt, "test_s": round(took_s, 6)})
    return joined(stretches), curve


def _of_all_ranks(learnt: _Learnt) -> _Learnt:
    """The mean loss of all ranks that know one, and the figures of the first one's test.

    Each rank decides by these whether to go on: by its own figures it could train on when others have ended.
    """
    if distributed.size() == 1:
        return learnt
    ranks = distributed.of_all(learnt)
    losses = [of_rank["loss"] for of_rank in ranks if of_rank["loss"] is not None]
    return {"loss": fmean(losses) if losses else None, "quality": ranks[0]["quality"]}


def joined(stretches: Sequence[Stretch]) -> Stretch:
    """All of them as one, without what came between. The peak of memory is the first one's: tests may need more."""
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
