"""The form of a training's sample, the document that a worker prints. Times are in seconds, memory is in bytes."""

from __future__ import annotations

from typing import TypedDict


class Communication(TypedDict):
    """How long a step of a rank communicates, and the share of the step that this is."""

    seconds: float
    share: float


class Exchanged(TypedDict):
    """How long one exchange of this size took."""

    bytes: int
    seconds: float


class GpuReading(TypedDict):
    """A GPU's state in MHz, degrees Celsius, watts, and joules since the driver was loaded. None is not known.

    ``held_back`` names why clocks are below the highest.
    """

    sm_mhz: int | None
    memory_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    energy_j: float | None
    held_back: list[str] | None


class GpuUse(TypedDict, total=False):
    """A GPU around the timed steps. ``before`` and ``after`` are a ``GpuReading`` without its energy."""

    before: dict[str, object]
    after: dict[str, object]
    energy_j: float | None
    mean_power_w: float | None
    allocated_bytes: int
    reserved_bytes: int
    idle_share: float | None
    kernels_per_step: float


class Epoch(TypedDict):
    """A point of the learning curve: the mean training loss, and the figures of the test after the epoch."""

    seconds: float
    loss: float | None
    quality: dict[str, object] | None
    test_s: float


class TimedSteps(TypedDict):
    """The timed steps in the document of every worker that trained. A loss is None where a workload tells none."""

    seconds: float
    step_s: list[float]
    losses: list[float | None]
    digests: dict[str, str]  # of code, data and initial weights


class _Training(TimedSteps):
    warmup_step_s: list[float]
    images_per_step: int
    unit: str
    quality: dict[str, object] | None
    modes: dict[str, str | bool]
    usage: dict[str, float | None]
    peak_memory_bytes: int
    evidence: dict[str, object]


class SampleDetails(TypedDict, total=False):
    """Keys that some samples have. ``backend`` and those below are of one of several ranks or instances."""

    curve: list[Epoch]
    exchange: list[Exchanged]
    gpu: GpuUse
    loader: dict[str, object]
    backend: str
    communication: Communication
    final_weights: str
    rank: int
    node: str
    cpus: list[int]
    own_steps: int  # of an instance: the steps that it had to take


class Sample(_Training, SampleDetails):
    """A sample of one process."""
