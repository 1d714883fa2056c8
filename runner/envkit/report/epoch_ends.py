"""What the end of an epoch costs with which start method of DataLoader's workers, and where these stay: as tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envkit.analysis.sample_times import Sample
from envkit.analysis.summary import Summary
from envkit.report.grid import of_workers
from envkit.worker.workloads import loader
from envkit.worker.workloads.loader_epochs import Settings, settings_of

HEADER = ("start", "persistent", "s to begin", "least to most", "ms/batch", "s/epoch")
NUMBERS = range(2, len(HEADER))


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
    def named(self) -> str:
        return f"{self.settings.start}, {'persistent' if self.settings.persistent else 'new'} workers"


@dataclass(frozen=True)
class Group:
    """The cells that differ in nothing but how workers are started, and whether these stay."""

    base: loader.Settings
    cells: list[Cell]

    @property
    def title(self) -> str:
        given, steps = self.base, self.cells[0].settings.epoch_steps
        pinned = ", pinned memory" if given.pin else ""
        ahead = f"{of_workers(given.workers)}, prefetch_factor {given.prefetch}{pinned}"
        return f"epochs of {steps} batches of {given.batch}, {ahead}"


def cells(summary: Summary) -> list[Cell]:
    """Those that were measured, as planned."""
    found = []
    for arm in summary.plan.arms:
        settings = settings_of(summary.plan.workload_of(arm))
        own = [parts for one in summary.samples if one.arm == arm.name and (parts := _parts(one))]
        if settings is not None and own:
            begin_s, step_s = [begin for begin, _ in own], [step for _, step in own]
            extremes = (min(begin_s), max(begin_s))
            found.append(Cell(settings, len(own), statistics.median(begin_s), *extremes, statistics.median(step_s)))
    return found


def _parts(sample: Sample) -> tuple[float, float] | None:
    """The mean of the steps that begin an epoch, and of the others; None where one of the two is not among them."""
    begin = [second for step, second in enumerate(sample.step_s) if sample.begins_epoch(step)]
    others = [second for step, second in enumerate(sample.step_s) if not sample.begins_epoch(step)]
    return (statistics.fmean(begin), statistics.fmean(others)) if begin and others else None


def groups(measured: Sequence[Cell]) -> list[Group]:
    """In the order in which their cells come."""
    given = dict.fromkeys(one.settings.base for one in measured)
    return [Group(same, [one for one in measured if one.settings.base == same]) for same in given]


def rows(group: Group) -> list[list[str]]:
    return [
        [
            one.settings.start, "yes" if one.settings.persistent else "no", f"{one.begin_s:.3f}",
            f"{one.least_s:.3f} to {one.most_s:.3f}", f"{one.step_s * 1000:.1f}", f"{one.epoch_s:.2f}",
        ]
        for one in group.cells
    ]  # fmt: skip


def saved(group: Group) -> str:
    """What workers that stay save at the end of an epoch, for each start method with which both were measured.

    A difference counts where each sample of the one took less than any of the other.
    """
    new = {one.settings.start: one for one in group.cells if not one.settings.persistent}
    kept = {one.settings.start: one for one in group.cells if one.settings.persistent}
    texts = ", ".join(f"{start} {_less(new[start], kept[start])}" for start in kept if start in new)
    return f"persistent workers save at the end of each epoch: {texts}" if texts else ""


def _less(new: Cell, kept: Cell) -> str:
    if kept.most_s < new.least_s:
        return f"{new.begin_s - kept.begin_s:.2f} s"
    return "nothing" if kept.least_s > new.most_s else "nothing that was found"


def by_image(one: Cell) -> float:
    """Seconds for an image, of all that an epoch takes."""
    return one.epoch_s / (one.settings.epoch_steps * one.settings.base.batch)


def least(summary: Summary) -> str | None:
    """The cell that takes least for an image, in words; None where there is none."""
    measured = cells(summary)
    one = min(measured, key=by_image, default=None)
    if one is None:
        return None
    which = f" ({Group(one.settings.base, [one]).title})" if len(groups(measured)) > 1 else ""
    samples = f"{one.samples} sample{'' if one.samples == 1 else 's'}"
    return f"{one.named}{which}: {one.epoch_s:.2f} s per epoch, in {samples}"


def to_json(summary: Summary) -> list[dict[str, Any]]:
    """Plain data for scripts: a row for each cell."""
    return [
        {
            "workers": one.settings.base.workers, "batch": one.settings.base.batch,
            "prefetch_factor": one.settings.base.prefetch, "pin_memory": one.settings.base.pin,
            "start_method": one.settings.start, "persistent_workers": one.settings.persistent, "samples": one.samples,
            "batches_per_epoch": one.settings.epoch_steps, "epoch_begin_s": one.begin_s, "least_s": one.least_s,
            "most_s": one.most_s, "batch_s": one.step_s, "epoch_s": one.epoch_s,
        }
        for one in cells(summary)
    ]  # fmt: skip
