"""The fixed training jobs. A new one is a module here and a line in ``WORKLOADS``; so is a variant of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from runner.worker.workloads import cnn


@dataclass(frozen=True)
class Workload:
    """A training job, and how many steps of it make a sample."""

    prepare: Callable[[str], Any]
    warmup_steps: int = 20
    steps: int = 200
    epochs: int = 10  # of the full training


WORKLOADS = {
    "cnn": Workload(cnn.prepare),
    "cnn-nobias": Workload(partial(cnn.prepare, variant=cnn.Variant(bias=False))),
    "cnn-batch128": Workload(partial(cnn.prepare, variant=cnn.Variant(batch=128))),
    "cnn-batch256": Workload(partial(cnn.prepare, variant=cnn.Variant(batch=256))),
}
