"""Typed events of a record, for most of its readers.

``envkit.bench.record`` appends and reads events as plain dictionaries. A key may be missing where its comment names a
condition.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Usage(TypedDict, total=False):
    """What the timed steps took, of the process and of what it started beside itself. None: it could not be read."""

    user_s: float
    system_s: float
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int
    throttled_s: float  # summed over the CPUs, by a quota
    throttle_events: int | None
    cpu_pressure_s: float | None
    machine_busy_s: float | None
    machine_steal_s: float | None
    machine_swapped_bytes: int | None
    worker_cpus: int  # how many it could run on
    worker_cpus_busy_s: float | None
    worker_cpus_steal_s: float | None
    frequency_mhz: float | None  # at the end of the steps
    engine_s: float  # CPU time of what the engine ran beside it, where that is known


class EpochEvent(TypedDict):
    """One epoch of a full training, in a sample's ``curve``."""

    seconds: float  # of its timed steps
    loss: float | None  # the mean of its steps' training losses
    quality: dict[str, float] | None  # of the test after it
    test_s: float  # how long that took, in no other figure


class ReadingsCover(TypedDict):
    """How long a metric's readings are, and the time in which they were printed, in seconds.

    ``fits`` is a unit in which they would be as long as that, or an empty text.
    """

    sum_s: float
    elapsed_s: float
    fits: str


class SampleEvent(TypedDict, total=False):
    """The event ``sample``: what one worker measured and observed."""

    event: str
    time: float  # seconds since 1970
    block: int
    arm: str
    worker_seconds: float  # of the whole worker, with its start
    padding_bytes: int
    seconds: float  # of the timed steps
    step_s: list[float]
    warmup_step_s: list[float]
    losses: list[Any]  # numbers; None each where a workload learns nothing; of a command those its loss metric reads
    images_per_step: int | None  # None of a user's command
    unit: str  # what images_per_step counts
    quality: dict[str, float] | None  # of a test, where one was made
    curve: list[EpochEvent]  # of a full training
    modes: dict[str, Any] | None
    usage: Usage
    peak_memory_bytes: int
    digests: dict[str, str]
    evidence: dict[str, Any]  # by the probe's name
    other_processes: list[dict[str, Any]]  # of a user's command: the further ones that left evidence
    stderr: str
    checks: list[dict[str, Any]]  # what was expected and seen
    ranks: list[dict[str, Any]]  # of several processes that trained together
    instances: list[dict[str, Any]]  # of several that trained at once, each by itself
    usage_steps: float  # of these: how many steps `usage` is of, with those for the others' sake
    backend: str
    communication: dict[str, float]
    exchange: list[dict[str, Any]]  # of the workload all-reduce
    loader: dict[str, Any]  # where epochs end as DataLoader's do: what was seen of the workers that load
    gpu: dict[str, Any]  # of a training on GPUs
    unmatched_lines: tuple[int, str]  # lines that a user's metric does not match, amid alike ones that it does, and one
    rank_lines: tuple[str, int]  # the mark of the lines that were read and how many ranks print, only if several do
    readings_cover: ReadingsCover  # only if a metric's times are far from the time in which they were printed
    readings_rounding: float  # the share of a metric's times that their last digits stand for, only if it is large


class LengthsEvent(TypedDict, total=False):
    """The event ``lengths``: how long samples are, as it was fixed before anything was compared."""

    event: str
    time: float
    warm_up: dict[str, int]  # by the arm's name: after so many steps it was steady
    unsteady: list[str]  # arms that were not steady in what was seen
    together: int  # workers that are started at once
    skipped_steps: int
    steps: dict[str, int]  # by the workload's name; not of a user's command
    warmup_steps: dict[str, int]
    commands: dict[str, str]


class RunEvent(TypedDict, total=False):
    """The event ``run``: what is measured, on what, and from where it was started."""

    event: str
    time: float
    schema: int
    kit_version: str
    command: list[str]
    cwd: str
    specification: dict[str, Any] | None
    plan: dict[str, Any]
    engines: dict[str, dict[str, Any]]
    data_source: dict[str, Any] | str
    environments: dict[str, dict[str, Any]]
    commands: dict[str, str]
    findings: list[dict[str, Any]]
    calibration: dict[str, Any] | None
    removed_variables: dict[str, str] | list[str]
    allowed_variables: dict[str, str]


class FailureEvent(TypedDict, total=False):
    """The events ``failure`` and ``reference-kernel-failure``."""

    event: str
    time: float
    block: int
    arm: str
    worker_seconds: float
    problem: dict[str, Any] | str
    stderr: str


class ReferenceKernelEvent(TypedDict, total=False):
    """The event ``reference-kernel``: a fixed piece of work, timed outside of any profile."""

    event: str
    time: float
    block: int
    worker_seconds: float
    seconds: float
    digest: str


class EndEvent(TypedDict, total=False):
    """The event ``end``."""

    event: str
    time: float
    reason: str


# What is known of the events of a record, by their names.
FORMS: dict[str, type] = {
    "run": RunEvent, "sample": SampleEvent, "lengths": LengthsEvent, "failure": FailureEvent,
    "reference-kernel": ReferenceKernelEvent, "reference-kernel-failure": FailureEvent, "end": EndEvent,
}  # fmt: skip
