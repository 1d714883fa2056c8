"""Messages of ``envkit breakdown``. Times are shares of a step's time."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note


class ComparedWithItself(Message):
    """Both names are of one profile."""

    template = "breakdown: '{profile}' is compared with itself; name two profiles, or one"

    profile: str


class WorkerOfArmFailed(Message):
    """A worker of a profile failed. ``problem`` is a clause whose subject is the worker."""

    template = "a worker of {arm}: {problem}"

    arm: str
    problem: Message


class NotFashionMnist(Caution):
    """The images were generated."""

    template = "SYNTHETIC DATA: this is not Fashion-MNIST"


class ShareOf(Note):
    """A share of one profile."""

    template = "{arm} {share:percent}"

    arm: str
    share: float


class GpuIdle(Note):
    """How much of a step's time under the profiler the GPU had nothing to do."""

    template = "idle for this share of a step's time under the profiler: {shares:list}"

    shares: tuple[Message, ...]


class Overhead(Note):
    """How much the profiler changes a step's time of one profile."""

    template = "{share:+.0%}"

    share: float


class ProfilerCosts(Note):
    """How much the profiler changes a step's time, and which figures include that."""

    template = "changes a step's time by {overheads}; operators' times include that; clock, faults and CPU time do not"

    overheads: tuple[Message, ...]


class IntervalTakes(Advice):
    """Fewer processes were started than an interval takes."""

    template = "needs {processes} processes of each profile (--processes)"

    processes: int


class LoadsItself(Note):
    """The process that trains makes its batches."""

    template = "batches come from the training process: their parts are parts of '{phase}'"

    phase: str


class LoadsBeside(Note):
    """Processes of DataLoader's make batches while others are trained on."""

    template = (
        "batches come from {workers:count DataLoader worker} beside the training process: their parts overlap with "
        "the step, and do not add up to it; '{phase}' is the time spent waiting for them"
    )

    workers: int
    phase: str


class MeasuredBy(Note):
    """The engine that started the workers, and their torch."""

    template = "{engine} {version}, torch {torch}"

    engine: str
    version: str
    torch: str


class Breakdown(Note):
    """The measurement. ``profiled`` are the steps of each process under the profiler."""

    template = (
        "{processes:count process|processes}[ of each of {arms}, in turns]: {steps:count step} after {warmup}"
        "[, then {profiled} under the profiler]; medians; workload {workload}[ ({modes})], {by}"
    )

    processes: int
    steps: int
    warmup: int
    workload: str
    by: str  # the engine and the versions of what it starts
    arms: tuple[str, ...] = ()
    profiled: int | None = None
    modes: str | None = None
