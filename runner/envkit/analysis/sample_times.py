"""The samples of a run with the time of each of their steps, as pictures and tables show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envkit.bench.blocks import skipped_steps
from envkit.bench.plan import Plan
from envkit.bench.record import Event
from envkit.checks.interference import disturbances


@dataclass(frozen=True)
class Sample:
    """One sample."""

    arm: str
    block: int
    began_s: float  # in seconds of all workers before it
    step_s: list[float]  # of each timed step that counts
    interference: dict[str, float]  # what disturbed it, as ``disturbances`` returns it
    warmup_steps: int = 0  # that came before these
    epoch_steps: int = 0  # of each epoch, where its end was measured

    @property
    def mean_step_s(self) -> float:
        return sum(self.step_s) / len(self.step_s)

    def begins_epoch(self, step: int) -> bool:
        """Whether a step, from 0, is the first of an epoch."""
        return self.epoch_steps > 0 and (self.warmup_steps + step) % self.epoch_steps == 0


def sample_times(events: Sequence[Event], plan: Plan) -> list[Sample]:
    """All samples, in the order in which they were measured."""
    found = []
    skipped = skipped_steps(events)
    passed = 0.0  # the sum of what workers took, because clocks jump
    for event in events:
        if event["event"] == "sample":
            found.append(
                Sample(
                    arm=event["arm"],
                    block=event["block"],
                    began_s=passed,
                    step_s=event["step_s"][skipped:],
                    interference=disturbances(event),
                    warmup_steps=len(event["warmup_step_s"]) + skipped,
                    epoch_steps=event.get("loader", {}).get("steps_per_epoch", 0),
                )
            )
        passed += event.get("worker_seconds", 0.0)
    return found
