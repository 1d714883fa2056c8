"""Typed events of a record: each line is parsed into one of these classes (``envkit.bench.run``).

A field with a default may be missing in the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast

from msgspec import Struct

from envkit.checks.effect import Check
from envkit.engines.measurement import Communication, ComparedTraining, Number
from envkit.profiles.inspection import Inspection, Surroundings


class Timed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """Any event. ``time`` is in seconds since 1970; ``worker_seconds`` are those of the worker that it is about."""

    time: float = 0.0
    worker_seconds: float = 0.0


class Calibration(TypedDict):
    """How much the baseline differed from itself in an earlier run (``envkit.bench.calibration``)."""

    scale: float  # the noise of a block's log ratio that the interval's width shows (stats.power)
    blocks: int
    folder: str  # of that run
    time: float  # of its beginning, in seconds since 1970


class Beginning(Timed, frozen=True, kw_only=True, tag="run"):
    """The event ``run``: the study, the machine and its images, and the command line that started the run."""

    study: dict[str, object]
    engines: dict[str, dict[str, object]]  # by Arm.target: what each said of itself (engine) and its image (inspection)
    environments: dict[str, dict[str, object]]
    data_source: dict[str, object]
    command: list[str]
    cwd: str
    commands: dict[str, str]
    findings: list[dict[str, object]]
    removed_variables: dict[str, str] | list[str]
    allowed_variables: dict[str, str]
    calibration: Calibration | None
    kit_version: str = ""
    schema: int = 0

    def inspection(self, target: str) -> Inspection:
        """Return what was inside the image of a target (``Arm.target``)."""
        return self.surroundings(target)["inspection"]

    def surroundings(self, target: str) -> Surroundings:
        """Return how the engine of a target described itself, with the inspection of its image."""
        return cast(Surroundings, self.engines[target])


class WarmUp(Timed, frozen=True, kw_only=True, tag="warm-up"):
    """The event ``warm-up``: the first worker of an arm, which is no sample. Its pace is unknown without ``step_s``."""

    arm: str
    step_s: list[float] | None = None
    peak_memory_bytes: Number = 0
    writes: Mapping[str, object] | None = None  # files that a user's command wrote
    checks: list[Check] = []


class Lengths(Timed, frozen=True, kw_only=True, tag="lengths"):
    """The event ``lengths``: the lengths of samples, as they were fixed before anything was compared."""

    warm_up: dict[str, int]  # by the arm's name: after so many steps it was steady
    unsteady: list[str]  # arms that were not steady
    together: int  # workers that are started at once
    skipped_steps: int
    commands: dict[str, str]
    steps: dict[str, int] | None = None  # by the workload's name; not of a user's command
    warmup_steps: dict[str, int] | None = None


class FixedDesign(Timed, frozen=True, kw_only=True, tag="design"):
    """The event ``design``: how many blocks there will be, and after which of them the results are looked at."""

    planned_blocks: int
    looks: list[int]


class Dropped(Timed, frozen=True, kw_only=True, tag="dropped"):
    """The event ``dropped``: after so many complete blocks, ``arms`` are measured no longer.

    Others are faster, or with ``over_memory`` their peak memory is above the limit.

    The blocks that fit into the time that is left, and the looks, replace those of the design.
    """

    block: int
    arms: dict[str, str]  # by name, each with the arm that it is slower than, or needs more memory than
    planned_blocks: int
    looks: list[int]
    over_memory: bool = False


class LeftOut(Timed, frozen=True, kw_only=True, tag="left-out"):
    """The event ``left-out``: why a matrix does not measure some profiles, each reason a message as JSON."""

    profiles: dict[str, dict[str, object]]


class Advised(Timed, frozen=True, kw_only=True, tag="advice"):
    """The event ``advice``: what --json had of the advice before a race, for the command that goes on with it."""

    document: dict[str, object]


class Program(Struct, frozen=True, kw_only=True):
    """Another program that used the machine's CPUs."""

    name: str
    pid: int
    cpus: float = 0.0  # that it used


class OtherPrograms(Timed, frozen=True, kw_only=True, tag="load"):
    """The event ``load``: other programs at work beside the first blocks."""

    programs: list[Program]
    block: int = 0  # after which they were noticed


class Longer(Timed, frozen=True, kw_only=True, tag="longer"):
    """The event ``longer``: a verdict takes longer than the budget, and the run goes on. Times are in seconds."""

    budget_s: float
    takes_s: float
    blocks: int = 0  # the fewest that a verdict takes


class Epoch(Struct, frozen=True, kw_only=True):
    """One epoch of a full training."""

    seconds: float  # of its timed steps
    loss: float | None  # the mean of its steps' training losses
    quality: dict[str, float] | None  # of the test after it
    test_s: float  # how long that took, in no other figure


class ReadingsCover(Struct, frozen=True, kw_only=True):
    """How long a metric's readings are, and the time in which they were printed, in seconds.

    ``fits`` is a unit in which they would be as long as that, or an empty text.
    """

    sum_s: float
    elapsed_s: float
    fits: str


class GpuReading(Struct, frozen=True, kw_only=True):
    """A GPU right before or after the timed steps. None is unknown."""

    sm_mhz: Number | None = None
    temperature_c: Number | None = None
    held_back: list[str] | None = None


class Gpu(Struct, frozen=True, kw_only=True):
    """The GPU that a sample trained on, or all of several ranks together. None is unknown."""

    before: GpuReading | None = None
    after: GpuReading | None = None
    mean_power_w: float | None = None
    idle_share: float | None = None
    kernels_per_step: Number | None = None
    allocated_bytes: Number | None = None


class Exchange(Struct, frozen=True, kw_only=True):
    """One size of an all-reduce, and the seconds that it takes."""

    bytes: int
    seconds: float


class Loader(Struct, frozen=True, kw_only=True):
    """The workers that load data, where epochs end as DataLoader's do."""

    steps_per_epoch: int = 0


class Sample(ComparedTraining, frozen=True, kw_only=True, tag_field="event", tag="sample"):
    """The event ``sample``: what one worker measured and observed."""

    block: int
    arm: str
    warmup_step_s: list[float]
    images_per_step: Number | None  # None of a user's command
    peak_memory_bytes: Number
    checks: list[Check]
    time: float = 0.0
    worker_seconds: float = 0.0  # of the whole worker, with its start
    padding_bytes: int = 0
    unit: str | None = None  # what images_per_step counts
    quality: dict[str, float] | None = None  # of a test, where one was made
    curve: list[Epoch] | None = None  # of a full training
    usage_steps: float | None = None  # how many steps ``usage`` is of, with those for other ranks' sake
    communication: Communication | None = None  # of several ranks
    exchange: list[Exchange] | None = None  # of the workload all-reduce
    loader: Loader | None = None
    gpu: Gpu | None = None
    unmatched_lines: tuple[int, str] | None = None  # lines that a metric misses amid alike ones that it reads, and one
    rank_lines: tuple[str, int] | None = None  # the mark of the lines that were read, and how many ranks print
    readings_cover: ReadingsCover | None = None  # where a metric's times are far from the time of their printing
    readings_rounding: float | None = None  # the share of a metric's times that their last digits stand for


class Failure(Timed, frozen=True, kw_only=True, tag="failure"):
    """The event ``failure``: a worker failed. ``problem`` is a message as JSON."""

    block: int
    arm: str
    problem: dict[str, object] | str
    stderr: str = ""


class ReferenceKernel(Timed, frozen=True, kw_only=True, tag="reference-kernel"):
    """The event ``reference-kernel``: a fixed piece of work, timed outside of any profile."""

    block: int
    seconds: float
    digest: str


class ReferenceKernelFailure(Timed, frozen=True, kw_only=True, tag="reference-kernel-failure"):
    """The event ``reference-kernel-failure``."""

    block: int
    problem: dict[str, object] | str
    stderr: str = ""


class Resume(Timed, frozen=True, kw_only=True, tag="resume"):
    """The event ``resume``: the run goes on after an interruption."""


class End(Timed, frozen=True, kw_only=True, tag="end"):
    """The event ``end``."""

    reason: str


# By the name of the event. Events of other names are of no matter to a run's readers.
EVENTS: dict[str, type[Timed | Sample]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        Beginning, WarmUp, Lengths, FixedDesign, Dropped, LeftOut, Advised, OtherPrograms, Longer, Sample, Failure,
        ReferenceKernel, ReferenceKernelFailure, Resume, End,
    )
}  # fmt: skip
