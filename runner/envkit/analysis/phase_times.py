"""Time per phase of a step in the processes of one or two profiles, and the time that each phase saves.

Documents are those of ``envkit.worker.measure.phases``. A number per step is the median over a profile's processes.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from envkit.analysis.operator_times import Figure
from envkit.engines.measurement import TrainingDocument
from envkit.stats.two_sample import Shift, shift

CONFIDENCE = 0.95


@dataclass(frozen=True)
class PhaseTimes:
    """One profile's processes. Times are milliseconds per step, by phase; in each process they add up to the step.

    ``batch`` is what DataLoader does for a batch of one step, by parts, and ``workers`` how many of its processes do
    so; they are no parts of the step, unless there are none. Without a DataLoader both are None.
    """

    arm: str
    step_ms: Figure
    phases: dict[str, Figure]
    batch: dict[str, Figure] | None
    workers: int | None

    @property
    def batch_ms(self) -> Figure:
        """All parts of a batch. There must be some."""
        assert self.batch is not None
        return Figure(tuple(map(sum, zip(*(part.values for part in self.batch.values()), strict=True))))

    def to_json(self) -> dict[str, object]:
        return {
            "arm": self.arm,
            "step_ms": self.step_ms.to_json(),
            "phases": _plain(self.phases),
            "loader": None if self.batch is None else {"workers": self.workers, "batch": _plain(self.batch)},
        }


def _plain(figures: Mapping[str, Figure]) -> dict[str, object]:
    return {name: figure.to_json() for name, figure in figures.items()}


def phase_times(arm: str, documents: Sequence[TrainingDocument]) -> PhaseTimes:
    """The processes of one profile, each per step of its own."""
    batches = [document["batch"] for document in documents if document["batch"] is not None]
    return PhaseTimes(
        arm=arm,
        step_ms=Figure(tuple(_per_step(document["step_s"]) for document in documents)),
        phases=_figures([document["phases"] for document in documents]),
        batch=_figures([batch["parts"] for batch in batches]) if batches else None,
        workers=batches[0]["workers"] if batches else None,
    )


def _figures(processes: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, Figure]:
    """By name, of the seconds for each step of each process."""
    return {name: Figure(tuple(_per_step(one[name]) for one in processes)) for name in processes[0]}


def _per_step(seconds: Sequence[float]) -> float:
    return 1000 * statistics.fmean(seconds)


@dataclass(frozen=True)
class Line:
    """One phase, or all of them, of both profiles or of the only one."""

    name: str
    reference: Figure
    other: Figure | None

    @property
    def saved(self) -> Shift | None:
        """By how many milliseconds per step the other is faster, with an interval; None for too few processes."""
        return shift(self.other.values, self.reference.values, CONFIDENCE) if self.other else None


def lines(reference: PhaseTimes, other: PhaseTimes | None) -> Iterator[Line]:
    """Each phase, and at last the whole step."""
    yield from _pairs(reference.phases, other.phases if other else None)
    yield Line("whole step", reference.step_ms, other.step_ms if other else None)


def batch_lines(reference: PhaseTimes, other: PhaseTimes | None) -> Iterator[Line]:
    """Each part of a batch of DataLoader's, and at last all of them; nothing without one."""
    if reference.batch is not None:
        yield from _pairs(reference.batch, other.batch if other else None)
        yield Line("whole batch", reference.batch_ms, other.batch_ms if other else None)


def _pairs(reference: Mapping[str, Figure], other: Mapping[str, Figure] | None) -> Iterator[Line]:
    for name, figure in reference.items():
        yield Line(name, figure, other[name] if other else None)


def saved_to_json(reference: PhaseTimes, other: PhaseTimes) -> dict[str, object]:
    """By phase, and by part of a batch: ``saved_ms`` per step with its interval; None for too few processes."""
    found = ((line.name, line.saved) for line in (*lines(reference, other), *batch_lines(reference, other)))
    return {name: saved._asdict() if saved else None for name, saved in found}
