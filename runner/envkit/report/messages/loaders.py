"""Messages of runs that measure the settings of a DataLoader. Times are in seconds."""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE = Severity.NOTE


class PerImages(Message):
    code = "report.per-images"
    severity = NOTE
    template = "s per {images} images"

    images: int


class LoaderSetting(Message):
    """``memory`` is ``pinned`` or None."""

    code = "report.loader-setting"
    severity = NOTE
    template = "{workers:count worker}, batches of {batch:d}[, prefetch_factor {prefetch:d}][, {memory} memory]"

    workers: int
    batch: int
    prefetch: int | None
    memory: str | None


class Prefetching(Message):
    """One table of settings: the batches that each worker makes ahead."""

    code = "report.prefetching"
    severity = NOTE
    template = "prefetch_factor {prefetch:d}[, {memory} memory]"

    prefetch: int
    memory: str | None


class NoWorkers(Message):
    code = "report.no-workers"
    severity = NOTE
    template = "no workers[, {memory} memory]"

    memory: str | None


class TableOfLoaders(Message):
    code = "report.table-of-loaders"
    severity = NOTE
    template = "{unit}, {settings}"

    unit: Message
    settings: Message


class LoaderRange(Message):
    """Times of the setting with the lowest median."""

    code = "report.loader-range"
    severity = NOTE
    template = "its {samples:count sample} took {least:.2f} to {most:.2f} s; no confidence interval"

    least: float
    most: float
    samples: int


class OtherBatchSize(Message):
    code = "report.other-batch-size"
    severity = Severity.WARNING
    template = "another batch size changes what your model learns: compare rows of one size"


class TryLoader(Message):
    """The fastest settings, as arguments of a DataLoader."""

    code = "report.try-loader"
    severity = Severity.ADVICE
    template = (
        "at batch size {batch:d} try DataLoader(num_workers={workers:d}[, prefetch_factor={prefetch:d}][, {pin}]), "
        "and time your training"
    )

    batch: int
    workers: int
    prefetch: int | None
    pin: str | None


class EpochsOf(Message):
    """A group of settings that differ in the start method of workers, and in whether these are persistent."""

    code = "report.epochs-of"
    severity = NOTE
    template = (
        "epochs of {steps:d} batches of {batch:d}, {workers:count worker}, prefetch_factor {prefetch:d}"
        "[, {memory} memory]"
    )

    steps: int
    batch: int
    workers: int
    prefetch: int
    memory: str | None


class StartMethod(Message):
    """``kind`` of workers: persistent or new."""

    code = "report.start-method"
    severity = NOTE
    template = "{start}, {kind} workers"

    start: str
    kind: str


class PersistentSave(Message):
    code = "report.persistent-save"
    severity = NOTE
    template = "persistent workers save at the end of each epoch: {savings:list}"

    savings: tuple[Message, ...]


class Saves(Message):
    code = "report.saves"
    severity = NOTE
    template = "{start} {seconds:.2f} s"

    start: str
    seconds: float


class SavesNothing(Message):
    code = "report.saves-nothing"
    severity = NOTE
    template = "{start} nothing"

    start: str


class NoSavingFound(Message):
    code = "report.no-saving-found"
    severity = NOTE
    template = "{start} unknown (no difference found)"

    start: str
