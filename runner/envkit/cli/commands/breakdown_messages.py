"""Messages of ``envkit breakdown``. Times are shares of a step's time."""

from __future__ import annotations

from envkit.messages import Message, Severity


class ComparedWithItself(Message):
    """Both names are of one profile."""

    code = "cli.compared-with-itself"
    template = "breakdown: '{profile}' is compared with itself; name two profiles, or one"

    profile: str


class NotWithPhases(Message):
    """A clause whose subject is an option for operators."""

    code = "cli.not-with-phases"
    template = "is for operators, and --phases shows none; leave one of the two out"


class WorkerOfArmFailed(Message):
    """A worker of a profile failed. ``problem`` is a clause whose subject is the worker."""

    code = "cli.worker-of-arm-failed"
    template = "a worker of {arm}: {problem}"

    arm: str
    problem: Message


class NotFashionMnist(Message):
    """The images were generated."""

    code = "cli.not-fashion-mnist"
    severity = Severity.WARNING
    template = "SYNTHETIC DATA: this is not Fashion-MNIST"


class ShareOf(Message):
    """A share of one profile."""

    code = "cli.share-of"
    severity = Severity.NOTE
    template = "{arm} {share:percent}"

    arm: str
    share: float


class GpuIdle(Message):
    """How much of a step's time under the profiler the GPU had nothing to do."""

    code = "cli.gpu-idle"
    severity = Severity.NOTE
    template = "idle for this share of a step's time under the profiler: {shares:list}"

    shares: tuple[Message, ...]


class Overhead(Message):
    """How much the profiler changes a step's time of one profile."""

    code = "cli.overhead"
    severity = Severity.NOTE
    template = "{share:+.0%}"

    share: float


class ProfilerCosts(Message):
    """How much the profiler changes a step's time, and which figures include that."""

    code = "cli.profiler-costs"
    severity = Severity.NOTE
    template = "changes a step's time by {overheads}; operators' times include that; clock, faults and CPU time do not"

    overheads: tuple[Message, ...]


class IntervalTakes(Message):
    """Fewer processes were started than an interval takes."""

    code = "cli.interval-takes"
    severity = Severity.ADVICE
    template = "needs {processes} processes of each profile (--processes)"

    processes: int


class LoadsItself(Message):
    """The process that trains makes its batches."""

    code = "cli.loads-itself"
    severity = Severity.NOTE
    template = "batches come from the training process: their parts are parts of '{phase}'"

    phase: str


class LoadsBeside(Message):
    """Processes of DataLoader's make batches while others are trained on."""

    code = "cli.loads-beside"
    severity = Severity.NOTE
    template = (
        "batches come from {workers:count DataLoader worker} beside the training process: their parts overlap with "
        "the step, and do not add up to it; '{phase}' is the time spent waiting for them"
    )

    workers: int
    phase: str


class MeasuredBy(Message):
    """Which engine started the workers, and which torch they had."""

    code = "cli.measured-by"
    severity = Severity.NOTE
    template = "{engine} {version}, torch {torch}"

    engine: str
    version: str
    torch: str


class Breakdown(Message):
    """The measurement. ``profiled`` are the steps of each process under the profiler."""

    code = "cli.breakdown"
    severity = Severity.NOTE
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
