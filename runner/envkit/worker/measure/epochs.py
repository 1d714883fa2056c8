"""A full training, epoch by epoch: each is timed, and tested afterwards outside of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import fmean
from typing import TYPE_CHECKING, Any

from envkit.worker import distributed
from envkit.worker.measure.quality_target import QualityTarget
from envkit.worker.measure.stretch import Stretch, joined

if TYPE_CHECKING:
    Figures = dict[str, Any]  # which Python 3.8 could not evaluate


def train_epochs(
    epochs: int, epoch: Callable[[], Stretch], test: Callable[[], Figures | None], until: QualityTarget | None = None
) -> tuple[Stretch, list[dict[str, Any]]]:
    """Train ``epochs`` epochs, or fewer where ``until`` is reached; all of them as one stretch, and the learning curve.

    That has for each epoch its ``seconds``, the mean training ``loss`` of its steps (None where no step tells one),
    what the ``test`` after it found (``quality``), and how long that took (``test_s``, in no other figure).
    """
    stretches: list[Stretch] = []
    curve: list[dict[str, Any]] = []
    while len(curve) < epochs and not (
        until and until.reached_after(until.reading(one["loss"], one["quality"]) for one in curve)
    ):
        stretches.append(epoch())
        begin = time.perf_counter()
        found = test()
        took_s = time.perf_counter() - begin
        losses = [loss for loss in stretches[-1].losses if loss is not None]
        loss, quality = _of_all_ranks(fmean(losses) if losses else None, found)
        seconds = stretches[-1].seconds
        curve.append({"seconds": seconds, "loss": loss, "quality": quality, "test_s": round(took_s, 6)})
    return joined(stretches), curve


def _of_all_ranks(loss: float | None, quality: Figures | None) -> tuple[float | None, Figures | None]:
    """The mean loss of all ranks that know one, and what the first found in its test.

    Each rank decides by these whether to go on: by its own figures it could train on when others have ended.
    """
    if distributed.size() == 1:
        return loss, quality
    found = distributed.of_all([loss, quality])
    losses = [one for one, _ in found if one is not None]
    return fmean(losses) if losses else None, found[0][1]
