"""A run read back: its study and the typed events of its record, with the blocks and times that follow from these."""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.events import (
    EVENTS,
    Beginning,
    Dropped,
    End,
    Failure,
    FixedDesign,
    Lengths,
    Resume,
    Sample,
    Timed,
)
from envkit.bench.losses import Losses, compared, loss_tolerance, of_command
from envkit.bench.record import Event
from envkit.bench.study import Study
from envkit.common import codec
from envkit.common.file_messages import OtherType
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.profiles.resolve import of_rank
from envkit.stats.interval import log_ratios
from envkit.stats.sequential import Design

# The digest of what follows from the code and PyTorch, of which the latter may be what is compared.
INITIAL_WEIGHTS = "initial_weights"
AnyEvent = Timed | Sample
Kind = TypeVar("Kind", bound=Struct)


@dataclass(frozen=True)
class Run:
    """A run, completed or not. ``study`` has the lengths of samples, if the machine's pace has fixed them.

    ``events`` are in the order of the record, without those of unknown kinds.
    """

    study: Study
    events: tuple[AnyEvent, ...]

    @staticmethod
    def parse(events: Sequence[Event]) -> Run:
        """Return the run of a record's events. Raise KeyError, TypeError or ValueError for another form."""
        typed = tuple(_typed(event) for event in events if event["event"] in EVENTS)
        first = typed[0]
        assert isinstance(first, Beginning), "a run's record begins with it"
        study = Study.from_json(first.study)
        run = Run(study, typed).measuring(study)
        if not run.dropped.keys() < {arm.name for arm in study.subjects} and run.dropped:
            raise codec.Misfit(OtherType("arms"))
        return run

    def followed_by(self, event: Event) -> Run:
        """Return the run with one event more."""
        more = _typed(event)
        run = Run(self.study, (*self.events, more))
        return run.measuring(self.study) if isinstance(more, Lengths) else run

    def measuring(self, study: Study) -> Run:
        """Return the run with another study: a run that goes on may have another budget."""
        fixed = self.lengths
        return Run(study if fixed is None else study.sized(fixed.steps, fixed.warmup_steps), self.events)

    @property
    def beginning(self) -> Beginning:
        return self.all(Beginning)[0]

    @property
    def ended(self) -> str | None:
        """Return why the run ended; None if it still runs, or was killed."""
        last = next((event for event in reversed(self.events) if isinstance(event, End | Resume)), None)
        return last.reason if isinstance(last, End) else None

    def all(self, kind: type[Kind]) -> list[Kind]:
        """Return the events of a kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def first(self, kind: type[Kind]) -> Kind | None:
        """Return the first event of a kind, or None."""
        return next((event for event in self.events if isinstance(event, kind)), None)

    def samples(self, *arms: Arm) -> list[Sample]:
        """Return all samples, or those of some arms, in the order in which they were measured."""
        names = {arm.name for arm in arms}
        return [event for event in self.events if isinstance(event, Sample) and (not arms or event.arm in names)]

    @property
    def lengths(self) -> Lengths | None:
        """Return how long samples are (``envkit.bench.pace``), or None if the run did not get that far."""
        return self.first(Lengths)

    @property
    def spent_s(self) -> float:
        """Return what counts towards the budget: all workers so far, those of an interrupted run too."""
        return sum(event.worker_seconds for event in self.events)

    @property
    def left_s(self) -> float:
        """Return what is left of the budget (seconds)."""
        return max(0.0, self.study.stopping.budget_s - self.spent_s)

    @property
    def skipped_steps(self) -> int:
        """Return how many timed steps at the start of each sample don't count: training was still warming up."""
        fixed = self.lengths
        return fixed.skipped_steps if fixed else 0

    @property
    def design(self) -> Design | None:
        """Return the looks that were fixed early in the run, and moved by arms that left; None before.

        Raise Misfit if the record's looks can't be those of one run.
        """
        fixed = self.first(FixedDesign)
        if fixed is None or not self.study.contrasts:
            return None
        first = Design(fixed.planned_blocks, tuple(fixed.looks), self.study.sharing)
        latest = next(iter(reversed(self.all(Dropped))), None)
        if latest is None:
            return first
        if len(latest.looks) != len(first.looks):
            raise codec.Misfit(OtherType("looks"))
        shares = tuple(map(first.share, first.looks))  # which each look keeps
        return replace(first, planned=latest.planned_blocks, looks=tuple(latest.looks), shares=shares)

    @property
    def dropped(self) -> dict[str, Dropped]:
        """Return the event of each arm that was dropped, by its name."""
        return {name: event for event in self.all(Dropped) for name in event.arms}

    @property
    def withdrawn(self) -> dict[str, int]:
        """Return the arms that left a race as a worker failed or settings were not in effect, and in which block."""
        if not self.study.is_race:
            return {}
        failed = [
            (event.arm, event.block)
            for event in self.events
            if isinstance(event, Failure)
            or (isinstance(event, Sample) and not all(check.holds for check in event.checks))
        ]
        return dict(reversed(failed))

    @property
    def racing(self) -> list[Arm]:
        """Return the arms that did not leave the run."""
        gone = self._blocks_of_gone()
        return [arm for arm in self.study.arms if arm.name not in gone]

    def _blocks_of_gone(self) -> dict[str, int]:
        """Return how many blocks each arm that left took part in."""
        return {**{name: event.block for name, event in self.dropped.items()}, **self.withdrawn}

    def arms_of(self, block: int) -> list[Arm]:
        """Return the arms of a block (from 0), in the order in which it runs them: those that did not leave before."""
        gone = self._blocks_of_gone()
        return [arm for arm in self.study.order(block) if block < gone.get(arm.name, math.inf)]

    @property
    def whole_blocks(self) -> int:
        """Return how many blocks have a sample of each of their arms."""
        arms: dict[int, set[str]] = {}
        for sample in self.samples():
            arms.setdefault(sample.block, set()).add(sample.arm)
        blocks_of = self._blocks_of_gone()
        left = ({arm.name for arm in self.study.arms if block < blocks_of.get(arm.name, math.inf)} for block in arms)
        return sum(names >= expected for names, expected in zip(arms.values(), left, strict=True))

    def is_supported(self, arm: Arm) -> bool:
        """Return whether the arm's environment leaves numerics alone and overrides no vendor's check."""
        return Environment.from_json(self.beginning.environments[arm.name]).is_supported

    def inspection(self, arm: Arm) -> Inspection:
        """Return what a process of ``arm`` finds: its image and machine, and its part of the CPUs."""
        return of_rank(self.beginning.inspection(arm.target), self.study.parts_of(arm))

    def same_training(self, arm: Arm) -> bool:
        """Return whether ``arm`` trains what its reference does, from the same weights: only then do losses compare.

        A user's command has no known value.
        """
        study, reference = self.study, self.study.reference_of(arm)
        first = (self.samples(side)[:1] for side in (reference, arm))
        weights = {sample.digests.get(INITIAL_WEIGHTS) for samples in first for sample in samples}
        return (
            study.user_command is None and study.workload_of(arm) == study.workload_of(reference) and len(weights) <= 1
        )

    def losses(self, arm: Arm) -> Losses | None:
        """Compare the losses of ``arm`` with its reference's, in all samples so far; None where they do not compare."""
        study, reference = self.study, self.study.reference_of(arm)
        samples, of_reference = self.samples(arm), self.samples(reference)
        if not samples or not of_reference:
            return None
        if study.user_command is not None:
            return of_command(samples, of_reference)
        if not self.same_training(arm):
            return None
        other_ranks = study.ranks_of(arm) != study.ranks_of(reference)
        tolerance = loss_tolerance(study.workload_of(arm), study.options.precision, other_ranks)
        return compared(samples, of_reference, tolerance, ends_early=study.until is not None)

    def losses_differ(self, arm: Arm) -> bool:
        """Return whether the losses of ``arm`` are known to differ from its reference's by more than rounding."""
        losses = self.losses(arm)
        return losses is not None and not losses.agree

    def timed_steps(self, arm: Arm, blocks: Container[int] | None = None) -> list[list[float]]:
        """Per sample of ``arm``, or of those in ``blocks``, the seconds of the steps that count."""
        skipped = self.skipped_steps
        return [sample.step_s[skipped:] for sample in self._within(arm, blocks)]

    def complete_blocks(self, arm: Arm, reference: Arm | None = None) -> list[int]:
        """The blocks that have a sample of both ``arm`` and its reference (or another one), in order."""
        of_arm = {sample.block for sample in self.samples(arm)}
        return sorted(of_arm & {sample.block for sample in self.samples(reference or self.study.reference_of(arm))})

    def comparable_steps(self, arm: Arm, blocks: Container[int] | None = None) -> list[list[float]]:
        """Per sample, its steps' seconds for equal work, so that the means of arms with other batches compare.

        Samples of so many steps compare by the time per image. Full trainings go over the same images equally often.
        They compare by the time of all steps, so a step counts as many times as there are.
        """
        work = [
            1 / len(sample.step_s) if self.study.epochs else sample.images_per_step or 1
            for sample in self._within(arm, blocks)
        ]
        pairs = zip(self.timed_steps(arm, blocks), work, strict=True)
        return [steps if share == 1 else [second / share for second in steps] for steps, share in pairs]

    def block_ratios(self, arm: Arm, without: Container[int] = (), reference: Arm | None = None) -> list[float]:
        """Per complete block, in order, the logarithm of the reference's time over the arm's. Some can be left out.

        ``reference`` is another than the study has for the arm.
        """
        reference = reference or self.study.reference_of(arm)
        times = [dict(self._means(side)) for side in (reference, arm)]
        blocks = [block for block in self.complete_blocks(arm, reference) if block not in without]
        return log_ratios(*([of_arm[block] for block in blocks] for of_arm in times))

    def _within(self, arm: Arm, blocks: Container[int] | None) -> list[Sample]:
        return [sample for sample in self.samples(arm) if blocks is None or sample.block in blocks]

    def _means(self, arm: Arm) -> Iterator[tuple[int, float]]:
        for sample, steps in zip(self.samples(arm), self.comparable_steps(arm), strict=True):
            yield sample.block, statistics.fmean(steps)


def read(folder: Path) -> Run:
    """Return the run in ``folder``. Raise InputError for a record that is damaged or of another form."""
    events = record.read(folder)
    with record.reading(folder):
        return Run.parse(events)


def _typed(event: Event) -> AnyEvent:
    return codec.parse(event, EVENTS[event["event"]])
