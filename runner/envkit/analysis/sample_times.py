"""The samples of a run with the time of each of their steps, as pictures and tables show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envkit.bench import events
from envkit.bench.run import AnyEvent
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


def sample_times(recorded: Sequence[AnyEvent], skipped: int) -> list[Sample]:
    """Return all samples, in the order in which they were measured. ``skipped`` timed steps of each don't count."""
    samples = []
    passed = 0.0  # the sum of what workers took, because clocks jump
    for event in recorded:
        if isinstance(event, events.Sample):
            samples.append(
                Sample(
                    arm=event.arm,
                    block=event.block,
                    began_s=passed,
                    step_s=event.step_s[skipped:],
                    interference=disturbances(event.usage, event.seconds),
                    warmup_steps=len(event.warmup_step_s) + skipped,
                    epoch_steps=event.loader.steps_per_epoch if event.loader else 0,
                )
            )
        passed += event.worker_seconds
    return samples
