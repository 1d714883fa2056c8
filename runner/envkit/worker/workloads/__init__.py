"""The fixed training jobs. A new one is a module here and a line in ``WORKLOADS``; so is a variant of one.

``prepare(data, options)`` returns a ``Training`` that is ready to step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from envkit.worker.modes import Options
from envkit.worker.workloads import all_reduce, cnn, loader, loader_epochs, segmentation, translation

# In the place of a data set's folder, for workloads that make their own.
GENERATED = "generated"
# Losses that differ by more than this share are not the rounding of another thread count or order.
LOSS_TOLERANCE = 1e-3


class TrainedNetwork(Protocol):
    """The model of a job: a ``modes.Network``, or the stages of a ``pipeline.Pipeline``."""

    def modes(self) -> dict[str, str | bool]:
        """Return the modes that were in effect."""

    def weights(self) -> str:
        """Return the digest of all that is trained, as it is now."""


class Training(Protocol):
    """A training job that is ready to step."""

    @property
    def unit(self) -> str:
        """The name that reports give to ``images_per_step``."""

    @property
    def images_per_step(self) -> int: ...

    @property
    def steps_per_epoch(self) -> int: ...

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of its code, data and initial weights, by these names."""

    @property
    def network(self) -> TrainedNetwork: ...

    def step(self) -> float | None:
        """Train on the next batch, and return the loss if this rank knows it."""

    def quality(self) -> dict[str, object] | None:
        """Test what was learnt, and return the figures by their names; None if nothing is learnt."""


if TYPE_CHECKING:
    Prepare = Callable[[str, Options], Training]


@dataclass(frozen=True)
class Workload:
    """A training job, and how many steps of it make a sample where these don't follow from a machine's pace.

    ``generated``: it makes its data itself. ``images``: its batches are images, which have a memory layout.
    ``scales``: it takes another scale than 1. ``pins``: it asks for memory that an accelerator reads. ``batch`` is how
    many items a step has at scale 1, which ranks share; 0 where it can't be trained by several. ``items`` are all that
    there are to train on, and so the most that a batch can have. Of ``stages`` each is in ranks of its own.
    ``loss_tolerance`` is for losses that may differ by rounding alone, and ``ranks_tolerance`` for those of several
    ranks beside those of one process, where it is larger. ``exchange``: it trains nothing, and ranks only exchange. One
    that is not ``paced`` has its number of steps on any machine; others never have fewer to warm up. One whose epochs
    end as DataLoader's do has ``epoch_steps`` in each. ``figures`` are what the test in its worker finds, each a share
    from 0 to 1; one without any learns nothing.
    """

    prepare: Prepare
    warmup_steps: int = 5
    steps: int = 40
    epochs: int = 10  # of the full training
    generated: bool = False
    images: bool = True
    scales: bool = True
    pins: bool = False
    loss_tolerance: float = LOSS_TOLERANCE
    batch: int = 0
    items: int = 0
    stages: int = 1
    ranks_tolerance: float = 0.0
    exchange: bool = False
    paced: bool = True
    epoch_steps: int = 0
    figures: tuple[str, ...] = ("accuracy",)


# With learning rates as high as one would take, rounding grows from step to step.
GROWN = 1e-2
# Batch norm over parts of a batch is another training; its losses stay near those of whole batches.
OTHERWISE = 0.5

# Fashion-MNIST's, and as many of what stands in for it.
IMAGES = int(60_000 * cnn.TRAINING_SHARE)

WORKLOADS = {
    "cnn": Workload(cnn.prepare, batch=64, items=IMAGES),
    "cnn-nobias": Workload(partial(cnn.prepare, variant=cnn.Variant(bias=False)), batch=64, items=IMAGES),
    "cnn-batch128": Workload(partial(cnn.prepare, variant=cnn.Variant(batch=128)), batch=128, items=IMAGES),
    "cnn-batch256": Workload(partial(cnn.prepare, variant=cnn.Variant(batch=256)), batch=256, items=IMAGES),
    "model-parallel": Workload(
        partial(cnn.prepare, variant=cnn.Variant(staged=True)), batch=64, items=IMAGES, stages=2
    ),
    "segmentation": Workload(
        segmentation.prepare,
        10,
        90,
        epochs=5,
        generated=True,
        loss_tolerance=GROWN,
        batch=segmentation.BATCH,
        items=segmentation.PICTURES,
        ranks_tolerance=OTHERWISE,
        figures=("pixel accuracy", "mIoU"),
    ),
    "translation": Workload(
        translation.prepare,
        10,
        90,
        epochs=10,
        generated=True,
        images=False,
        loss_tolerance=GROWN,
        batch=translation.BATCH,
        items=translation.PAIRS,
        figures=("token accuracy",),
    ),
    "loader": Workload(loader.prepare, 10, 90, epochs=40, generated=True, loss_tolerance=GROWN),
    "all-reduce": Workload(
        all_reduce.prepare, 10, 90, generated=True, images=False, exchange=True, paced=False, figures=()
    ),
}
# What is trained where nothing is said.
DEFAULT = "cnn"
# What `--workload all` measures, each for another kind of training.
ALL = ("cnn", "segmentation", "translation", "loader")


def find(name: str) -> Workload | None:
    """The workload called ``name``: one of WORKLOADS, or the loader with the settings in its name; None if none is."""
    if name in WORKLOADS:
        return WORKLOADS[name]
    settings = loader.settings_of(name)
    if settings is not None:
        return _cell(partial(loader.prepare, settings=settings), settings, 8, settings.cell_steps)
    epochs = loader_epochs.settings_of(name)
    if epochs is None:
        return None
    prepare, steps = partial(loader_epochs.prepare, settings=epochs), epochs.epoch_steps
    return _cell(prepare, epochs.base, steps, loader_epochs.EPOCHS * steps, epoch_steps=steps)


def _cell(prepare: Prepare, settings: loader.Settings, warmup_steps: int, steps: int, epoch_steps: int = 0) -> Workload:
    """The loader with settings of its own."""
    return Workload(
        prepare, warmup_steps, steps, epochs=40, epoch_steps=epoch_steps,
        generated=True, scales=False, pins=settings.pin, loss_tolerance=GROWN, paced=False,
    )  # fmt: skip


def get(name: str) -> Workload:
    """Return the workload called ``name``. Raise KeyError for another name."""
    workload = find(name)
    if workload is None:
        raise KeyError(name)
    return workload
