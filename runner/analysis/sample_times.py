"""The samples of a run with the time of each of their steps, as pictures and tables show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runner.analysis.noise import interference_in
from runner.bench.blocks import skipped_steps
from runner.bench.plan import Plan
from runner.bench.record import Event


@dataclass(frozen=True)
class Sample:
    """One sample."""

    arm: str
    block: int
    began_s: float  # in seconds of all workers before it
    step_s: list[float]  # of each timed step that counts
    interference: list[str]  # what disturbed it

    @property
    def mean_step_s(self) -> float:
        return sum(self.step_s) / len(self.step_s)


def sample_times(events: Sequence[Event], plan: Plan) -> list[Sample]:
    """All samples, in the order in which they were measured."""
    found = []
    skipped = {arm.name: skipped_steps(events, arm) for arm in plan.arms}
    passed = 0.0  # the sum of what workers took, because clocks jump
    for event in events:
        if event["event"] == "sample":
            found.append(
                Sample(
                    arm=event["arm"],
                    block=event["block"],
                    began_s=passed,
                    step_s=event["step_s"][skipped[event["arm"]] :],
                    interference=interference_in(event),
                )
            )
        passed += event.get("worker_seconds", 0.0)
    return found
