"""Messages of runs that measure the settings of a DataLoader. Times are in seconds."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

NOTHING, UNKNOWN = "nothing", "unknown (no difference found)"


class PerImages(Note):
    template = "s per {images} images"

    images: int


class LoaderSetting(Note):
    """``memory`` is ``pinned`` or None."""

    template = "{workers:count worker}, batches of {batch:d}[, prefetch_factor {prefetch:d}][, {memory} memory]"

    workers: int
    batch: int
    prefetch: int | None
    memory: str | None


class Prefetching(Note):
    """One table of settings: the batches that each worker makes ahead."""

    template = "prefetch_factor {prefetch:d}[, {memory} memory]"

    prefetch: int
    memory: str | None


class NoWorkers(Note):
    template = "no workers[, {memory} memory]"

    memory: str | None


class TableOfLoaders(Note):
    template = "{unit}, {settings}"

    unit: Message
    settings: Message


class LoaderRange(Note):
    """Times of the setting with the lowest median."""

    template = "its {samples:count sample} took {least:.2f} to {most:.2f} s; no confidence interval"

    least: float
    most: float
    samples: int


class OtherBatchSize(Caution):
    template = "another batch size changes what your model learns: compare rows of one size"


class TryLoader(Advice):
    """The fastest settings, as arguments of a DataLoader."""

    template = (
        "at batch size {batch:d} try DataLoader(num_workers={workers:d}[, prefetch_factor={prefetch:d}][, {pin}]), "
        "and time your training"
    )

    batch: int
    workers: int
    prefetch: int | None
    pin: str | None


class EpochsOf(Note):
    """A group of settings that differ in the start method of workers, and in whether these are persistent."""

    template = (
        "epochs of {steps:d} batches of {batch:d}, {workers:count worker}, prefetch_factor {prefetch:d}"
        "[, {memory} memory]"
    )

    steps: int
    batch: int
    workers: int
    prefetch: int
    memory: str | None


class StartMethod(Note):
    """``kind`` of workers: persistent or new."""

    template = "{start}, {kind} workers"

    start: str
    kind: str


class PersistentSave(Note):
    template = "persistent workers save at the end of each epoch: {savings:list}"

    savings: tuple[Message, ...]


class Saves(Note):
    """How much persistent workers save at the end of an epoch, or NOTHING or UNKNOWN."""

    template = "{start}[ {seconds:.2f} s][ {answer}]"

    start: str
    seconds: float | None = None
    answer: str | None = None
