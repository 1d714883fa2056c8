"""How long input takes with which settings of DataLoader, as tables and a plot of text."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from envkit.analysis.result import Result
from envkit.messages import Message
from envkit.report.messages import loaders as messages
from envkit.report.parts import Row
from envkit.worker.workloads.loader import Settings, settings_of

IMAGES = 1000
UNIT = messages.PerImages(IMAGES)
# Of the plot, in characters: rows, and columns of each size of a batch.
HEIGHT, WIDTH = 12, 10
MARKERS = "o+x*#@%&"


@dataclass(frozen=True)
class Cell:
    """One setting of the loader, and how long IMAGES images take with it."""

    settings: Settings
    samples: int
    seconds: float  # the median of the samples, with the least and the most of any
    least: float
    most: float

    @property
    def named(self) -> Message:
        """Its settings in words."""
        one = self.settings
        prefetch = one.prefetch if one.workers else None
        return messages.LoaderSetting(one.workers, one.batch, prefetch, memory(one.pin))


@dataclass(frozen=True)
class Variant:
    """One table: a number of batches that workers make ahead, and whether memory is pinned.

    Without workers nothing is made ahead: those cells stand in the first variant.
    """

    prefetch: int
    pin: bool
    cells: dict[tuple[int, int], Cell]  # by the number of workers and the size of a batch

    @property
    def title(self) -> Message:
        """Return what all its cells have in common."""
        pinned = memory(self.pin)
        return messages.Prefetching(self.prefetch, pinned) if self.prefetch else messages.NoWorkers(pinned)

    @property
    def workers(self) -> list[int]:
        return sorted({workers for workers, _ in self.cells})

    @property
    def batches(self) -> list[int]:
        return sorted({batch for _, batch in self.cells})


def memory(pin: bool) -> str | None:
    """Return the kind of memory that batches are copied to, if it is not the usual one."""
    return "pinned" if pin else None


def cells(result: Result) -> list[Cell]:
    """Return those that were measured, as planned."""
    measured = []
    for arm in result.study.arms:
        settings = settings_of(result.study.workload_of(arm))
        steps = [sample.mean_step_s for sample in result.samples if sample.arm == arm.name]
        if settings is not None and steps:
            seconds = [step * IMAGES / settings.batch for step in steps]
            measured.append(Cell(settings, len(steps), statistics.median(seconds), min(seconds), max(seconds)))
    return measured


def variants(measured: Sequence[Cell]) -> list[Variant]:
    """The tables, in the order in which their cells come."""
    with_workers = [cell for cell in measured if cell.settings.workers] or measured
    tables: list[Variant] = []
    for prefetch, pin in dict.fromkeys((one.settings.prefetch, one.settings.pin) for one in with_workers):
        first = not any(one.pin == pin for one in tables)
        made_ahead = (0, prefetch) if first else (prefetch,)
        shown = [cell for cell in measured if cell.settings.pin == pin and cell.settings.prefetch in made_ahead]
        by_place = {(one.settings.workers, one.settings.batch): one for one in shown}
        tables.append(Variant(prefetch, pin, by_place))
    return tables


def ties(measured: Sequence[Cell]) -> int:
    """Return how many settings, the best among them, have a sample within the range of the best's samples."""
    best = min(measured, key=lambda cell: cell.seconds)
    return sum(one.least <= best.most for one in measured)


def rows_on_fastest(result: Result) -> list[Row]:
    """Return how sure the fastest setting is, what to mind, and what to do next."""
    measured = cells(result)
    if len(measured) < 2:
        return []
    best = min(measured, key=lambda cell: cell.seconds)
    settings = best.settings
    prefetch = settings.prefetch if settings.workers else None
    lines = [Row("Range", messages.LoaderRange(best.least, best.most, best.samples))]
    if len({one.settings.batch for one in measured}) > 1:
        lines.append(Row("Caution", messages.OtherBatchSize()))
    pin = "pin_memory=True" if settings.pin else None
    return [*lines, Row("Next", messages.TryLoader(settings.batch, settings.workers, prefetch, pin))]


def of_workers(number: int) -> str:
    """Return ``1 worker`` or ``2 workers``."""
    return f"{number} worker{'' if number == 1 else 's'}"


def header(variant: Variant) -> list[str]:
    return ["batch", *map(of_workers, variant.workers)]


def rows(variant: Variant) -> list[list[str]]:
    """A row for each size of a batch, a column for each number of workers."""
    lines = []
    for batch in variant.batches:
        line = [variant.cells.get((workers, batch)) for workers in variant.workers]
        lines.append([str(batch), *(f"{cell.seconds:.2f}" if cell else "-" for cell in line)])
    return lines


def chart(variant: Variant) -> list[str]:
    """The time against the size of a batch: a marker for each number of workers, from 0 at the bottom."""
    workers, batches = variant.workers, variant.batches
    top = max(cell.seconds for cell in variant.cells.values())
    rows = [[" "] * (WIDTH * len(batches)) for _ in range(HEIGHT)]
    for (number, batch), cell in variant.cells.items():
        which = workers.index(number)
        row = round((1 - cell.seconds / top) * (HEIGHT - 1))
        # beside one another, so that none hides another
        rows[row][WIDTH * batches.index(batch) + 2 + which % (WIDTH - 2)] = MARKERS[which % len(MARKERS)]
    lines = []
    for number, marked in enumerate(rows):
        label = f"{top * (1 - number / (HEIGHT - 1)):7.2f}" if number % 3 == 0 or number == HEIGHT - 1 else " " * 7
        lines.append(f"{label} |{''.join(marked)}".rstrip())
    lines.append(f"{'':7} +{'-' * WIDTH * len(batches)}")
    lines.append(f"{'batch':>7}  {''.join(f'  {batch:<{WIDTH - 2}}' for batch in batches)}".rstrip())
    legend = (f"{MARKERS[which % len(MARKERS)]} {of_workers(number)}" for which, number in enumerate(workers))
    return [*lines, f"{'':9}{'   '.join(legend)}"]


def to_json(result: Result) -> list[dict[str, object]]:
    """Plain data for scripts: a row for each cell."""
    return [
        {
            "workers": cell.settings.workers, "batch": cell.settings.batch, "prefetch_factor": cell.settings.prefetch,
            "pin_memory": cell.settings.pin, "samples": cell.samples, "seconds_per_1000_images": cell.seconds,
            "least": cell.least, "most": cell.most,
        }
        for cell in cells(result)
    ]  # fmt: skip
