"""What one run measures: the settings that are fixed when it starts and kept when it is resumed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

REFERENCE = "baseline"


@dataclass(frozen=True)
class Plan:
    """Times are in seconds; ``precision`` is the wanted half-width of the interval as a share of the ratio.

    ``epochs`` above 0 is the full training: one block, no time limit but each worker's own.
    """

    profile: str
    engine: str
    python: str | None
    workload: str
    warmup_steps: int
    steps: int
    epochs: int
    data: str
    budget_s: float
    precision: float
    timeout_s: float
    seed: int

    @property
    def profiles(self) -> tuple[str, ...]:
        """The names that are measured, the reference first."""
        return (REFERENCE,) if self.profile == REFERENCE else (REFERENCE, self.profile)

    def order(self, block: int) -> list[str]:
        """The profiles in the order in which block ``block`` (from 0) runs them: random, and the same for one seed."""
        shuffled = list(self.profiles)
        random.Random(f"{self.seed}:{block}").shuffle(shuffled)
        return shuffled

    def worker_arguments(self) -> tuple[str, ...]:
        """What follows ``python -m runner.worker``."""
        length = ("--epochs", str(self.epochs)) if self.epochs else ("--steps", str(self.steps))
        warmup = ("--warmup-steps", str(self.warmup_steps))
        return ("train", "--workload", self.workload, "--data", self.data, *warmup, *length)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Plan:
        return Plan(**document)
