"""The fixed training jobs. A new one is a module here with ``prepare`` and a line in ``WORKLOADS``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runner.worker.workloads import cnn


@dataclass(frozen=True)
class Workload:
    """A training job, and how many steps of it make a sample."""

    prepare: Callable[[str], Any]
    warmup_steps: int
    steps: int
    epochs: int  # of the full training


WORKLOADS = {"cnn": Workload(cnn.prepare, warmup_steps=20, steps=200, epochs=10)}
