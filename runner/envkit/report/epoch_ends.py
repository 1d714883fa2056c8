"""Tables of the cost of an epoch's end, by start method and persistence of DataLoader's workers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from envkit.analysis.result import Result
from envkit.analysis.sample_times import Sample
from envkit.messages import Message
from envkit.report.grid import memory
from envkit.report.messages import headings
from envkit.report.messages import loaders as messages
from envkit.worker.workloads import loader
from envkit.worker.workloads.loader_epochs import Settings, settings_of

NUMBERS = range(2, len(headings.EPOCH_ENDS))


@dataclass(frozen=True)
class Cell:
    """One start method, with workers that stay or not. Times are medians of samples, in seconds."""

    settings: Settings
    samples: int
    begin_s: float  # the first step of an epoch: DataLoader's next iterator, and waiting for its first batch
    least_s: float
    most_s: float
    step_s: float  # one of the others

    @property
    def epoch_s(self) -> float:
        return self.begin_s + (self.settings.epoch_steps - 1) * self.step_s

    @property
    def kind(self) -> str:
        """Whether its workers are persistent, or new in each epoch."""
        return "persistent" if self.settings.persistent else "new"

    @property
    def named(self) -> Message:
        """Its settings in words."""
        return messages.StartMethod(self.settings.start, self.kind)


@dataclass(frozen=True)
class Group:
    """The cells that differ in nothing but how workers are started, and whether these stay."""

    base: loader.Settings
    cells: list[Cell]

    @property
    def title(self) -> Message:
        """Return what all its cells have in common."""
        loader_settings, steps = self.base, self.cells[0].settings.epoch_steps
        return messages.EpochsOf(
            steps, loader_settings.batch, loader_settings.workers, loader_settings.prefetch, memory(loader_settings.pin)
        )


def cells(result: Result) -> list[Cell]:
    """Return those that were measured, as planned."""
    measured = []
    for arm in result.study.arms:
        settings = settings_of(result.study.workload_of(arm))
        parts_of_samples = [parts for sample in result.samples if sample.arm == arm.name and (parts := _parts(sample))]
        if settings is not None and parts_of_samples:
            begin_s, step_s = [begin for begin, _ in parts_of_samples], [step for _, step in parts_of_samples]
            extremes = (min(begin_s), max(begin_s))
            measured.append(
                Cell(settings, len(parts_of_samples), statistics.median(begin_s), *extremes, statistics.median(step_s))
            )
    return measured


def _parts(sample: Sample) -> tuple[float, float] | None:
    """The mean of the steps that begin an epoch, and of the others; None where one of the two is not among them."""
    begin = [second for step, second in enumerate(sample.step_s) if sample.begins_epoch(step)]
    others = [second for step, second in enumerate(sample.step_s) if not sample.begins_epoch(step)]
    return (statistics.fmean(begin), statistics.fmean(others)) if begin and others else None


def groups(measured: Sequence[Cell]) -> list[Group]:
    """In the order in which their cells come."""
    bases = dict.fromkeys(cell.settings.base for cell in measured)
    return [Group(base, [cell for cell in measured if cell.settings.base == base]) for base in bases]


def rows(group: Group) -> list[list[str]]:
    return [
        [
            cell.settings.start, "yes" if cell.settings.persistent else "no", f"{cell.begin_s:.3f}",
            f"{cell.least_s:.3f} to {cell.most_s:.3f}", f"{cell.step_s * 1000:.1f}", f"{cell.epoch_s:.2f}",
        ]
        for cell in group.cells
    ]  # fmt: skip


def saved(group: Group) -> Message | None:
    """Return what persistent workers save at the end of an epoch, for each start method that was measured with both.

    A difference counts if each sample of the one took less than any of the other.
    """
    new = {cell.settings.start: cell for cell in group.cells if not cell.settings.persistent}
    kept = {cell.settings.start: cell for cell in group.cells if cell.settings.persistent}
    savings = tuple(_saving(start, new[start], kept[start]) for start in kept if start in new)
    return messages.PersistentSave(savings) if savings else None


def _saving(start: str, new: Cell, kept: Cell) -> Message:
    if kept.most_s < new.least_s:
        return messages.Saves(start, new.begin_s - kept.begin_s)
    return messages.Saves(start, answer=messages.NOTHING if kept.least_s > new.most_s else messages.UNKNOWN)


def by_image(cell: Cell) -> float:
    """Seconds for an image, of all that an epoch takes."""
    return cell.epoch_s / (cell.settings.epoch_steps * cell.settings.base.batch)


def to_json(result: Result) -> list[dict[str, object]]:
    """Plain data for scripts: a row for each cell."""
    return [
        {
            "workers": cell.settings.base.workers, "batch": cell.settings.base.batch,
            "prefetch_factor": cell.settings.base.prefetch, "pin_memory": cell.settings.base.pin,
            "start_method": cell.settings.start, "persistent_workers": cell.settings.persistent,
            "samples": cell.samples, "batches_per_epoch": cell.settings.epoch_steps, "epoch_begin_s": cell.begin_s,
            "least_s": cell.least_s, "most_s": cell.most_s, "batch_s": cell.step_s, "epoch_s": cell.epoch_s,
        }
        for cell in cells(result)
    ]  # fmt: skip
