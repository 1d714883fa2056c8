"""How far a run got: what a verdict still takes, and what the first worker of each arm showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from envkit.analysis.load import Load
from envkit.bench import pace
from envkit.bench.arms import Arm
from envkit.bench.decide import INTERRUPTED, TOO_SHORT
from envkit.bench.events import Longer, Sample, WarmUp
from envkit.bench.room import Need
from envkit.checks.effect import Check

# How a run ended that can go on as it is; None: it still runs, or was killed.
CUT_SHORT = (None, INTERRUPTED, TOO_SHORT)


@dataclass(frozen=True)
class FirstRun:
    """What the first worker of an arm showed that has no sample: seconds of a step, and its settings."""

    arm: str
    step_s: float
    checks: list[Check]


@dataclass(frozen=True)
class Unfinished:
    """A run that has too few blocks for a verdict: how many it has of ``fewest``. Times are in seconds of workers."""

    blocks: int
    fewest: int
    total_s: float  # of a run from its start to a verdict
    more_s: float  # of this run, where it goes on: with a first worker of each arm again


@dataclass(frozen=True)
class Course:
    unfinished: Unfinished | None = None
    longer: dict[str, float] | None = None  # the budget_s that was given, and what a verdict takes_s
    first_runs: list[FirstRun] | None = None
    load: Load | None = None  # of a run that compares nothing; else each comparison has its own

    def to_json(self) -> dict[str, object]:
        return {
            "unfinished": self.unfinished and asdict(self.unfinished),
            "longer_than_budget": self.longer,
            "first_runs": [asdict(first) for first in self.first_runs or ()],
            "load": self.load and self.load.to_json(),
        }


def course(
    arms: Sequence[Arm],
    samples: Sequence[Sample],
    warm_ups: Sequence[WarmUp],
    longer: Longer | None,
    need: Need | None,
    load: Load | None,
) -> Course:
    """Return how far the ``arms`` of a run got.

    ``need`` is what a verdict takes of a run that can go on, and ``load`` that of a run that compares nothing.
    """
    with_sample = {sample.arm for sample in samples}
    return Course(
        unfinished=_unfinished(need, warm_ups) if need is not None and need.blocks < need.fewest else None,
        longer={"budget_s": longer.budget_s, "takes_s": longer.takes_s} if longer else None,
        first_runs=_first_runs([arm for arm in arms if arm.name not in with_sample], warm_ups),
        load=load,
    )


def _unfinished(need: Need, warm_ups: Sequence[WarmUp]) -> Unfinished:
    again_s = sum({event.arm: event.worker_seconds for event in warm_ups}.values())
    return Unfinished(need.blocks, need.fewest, round(need.total_s(), 3), round(need.more_s + again_s, 3))


def _first_runs(arms: Sequence[Arm], warm_ups: Sequence[WarmUp]) -> list[FirstRun]:
    first = {event.arm: event for event in warm_ups if event.step_s}
    return [
        FirstRun(arm.name, pace.pace_of(event).step_s, event.checks) for arm in arms if (event := first.get(arm.name))
    ]
