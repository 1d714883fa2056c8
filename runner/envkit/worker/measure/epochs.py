"""A full training, epoch by epoch: each is timed, and tested afterwards outside of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import fmean
from typing import TYPE_CHECKING, TypedDict

from envkit.worker import distributed
from envkit.worker.measure.quality_target import QualityTarget
from envkit.worker.measure.stretch import Stretch, joined
from envkit.worker.sample import Epoch

if TYPE_CHECKING:
    Figures = dict[str, object]  # which Python 3.8 could not evaluate


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
