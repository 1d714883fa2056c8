"""The document of a worker that measured a training: the keys of the JSON, and the same as typed data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from msgspec import Struct

from envkit.worker.sample import Epoch, TimedSteps

# A whole number stays one, so that counts are printed as such; a mean over several processes may have a fraction.
Number = int | float
Evidence = dict[str, object]  # by the probe's name: plain data, of which only the probe and its checks know the form


def probe(evidence: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return what a probe observed; nothing if it was not asked, or left another form."""
    observed = evidence.get(name)
    return observed if isinstance(observed, dict) else {}


class Usage(Struct, frozen=True, kw_only=True):
    """Resources that the timed steps took, of the process and of what it started beside itself. None: it is unknown."""

    user_s: float
    system_s: float
    minor_faults: Number
    throttled_s: float = 0.0  # summed over the CPUs, by a quota
    major_faults: Number | None = None
    voluntary_switches: Number | None = None
    involuntary_switches: Number | None = None
    throttle_events: Number | None = None
    cpu_pressure_s: float | None = None
    machine_busy_s: float | None = None
    machine_steal_s: float | None = None
    machine_swapped_bytes: Number | None = None
    worker_cpus: Number | None = None  # how many it could run on
    worker_cpus_busy_s: float | None = None
    worker_cpus_steal_s: float | None = None
    frequency_mhz: float | None = None  # at the end of the steps
    engine_s: float | None = None  # CPU time of the engine's own processes
    # from before the training is prepared until its timed steps are done: seconds, and CPU time of all programs on the
    # worker's CPUs, stolen from these, and of the training with what it started
    training_s: float | None = None
    training_busy_s: float | None = None
    training_steal_s: float | None = None
    training_used_s: float | None = None


class HelperUsage(Struct, frozen=True, kw_only=True):
    """CPU time of a command's other processes while it was watched."""

    user_s: float
    system_s: float
    seconds: float


class OperatorTimes(Struct, frozen=True, kw_only=True):
    """Seconds in each operator itself, and its calls, by its name, of the ``seconds`` of the profiled steps."""

    self_s: dict[str, float]
    seconds: float
    calls: dict[str, int] | None = None


class Observed(Struct, frozen=True, kw_only=True):
    """Observations of a command that was watched while it trained."""

    pid: int | None = None
    usage: Usage | None = None
    operators: OperatorTimes | None = None
    waited_s: float | None = None
    threads: int | None = None
    helpers: HelperUsage | None = None


class Communication(Struct, frozen=True, kw_only=True):
    """Seconds of a step in which ranks communicate or wait for each other, and their share of a step."""

    seconds: float
    share: float


class Process(Struct, frozen=True, kw_only=True):
    """One process of several: a rank, an instance, or a further process of a user's command."""

    evidence: Evidence
    communication: Communication | None = None  # of a rank


class Measurement(Struct, frozen=True, kw_only=True):
    """A worker's measurement of one training, as far as checks and advice read it."""

    step_s: list[float]
    usage: Usage
    evidence: Evidence
    seconds: float | None = None  # of the timed steps
    other_processes: list[Process] | None = None  # of a user's command: the further ones that left evidence
    ranks: list[Process] | None = None  # that trained together
    instances: list[Process] | None = None  # that trained at once, each by itself
    observed: Observed | None = None  # of a command that was watched
    stderr: str = ""


class ComparedTraining(Measurement, frozen=True, kw_only=True):
    """A measurement with the losses and digests that it is compared by with others."""

    seconds: float  # of the timed steps
    losses: list[float | None]  # None each where a workload learns nothing; of a command those its loss metric reads
    digests: dict[str, str]

    @property
    def known_losses(self) -> list[float]:
        """Return the losses; none of a workload that learns nothing."""
        return present_losses(self.losses)


def present_losses(losses: Sequence[float | None]) -> list[float]:
    """Return ``losses`` without those of steps that learn nothing."""
    return [loss for loss in losses if loss is not None]


class Written(TypedDict):
    """Files that a user's command wrote."""

    files: int
    bytes: int
    names: list[str]


class LoaderDocument(TypedDict, total=False):
    """How DataLoader's workers were started, and whether they stayed for the next epoch."""

    start: str
    persistent: bool


class RankDocument(TypedDict):
    """One of several ranks."""

    cpus: list[int]


class OperatorDocument(TypedDict):
    """An operator of all profiled steps: seconds in itself, and bytes that it allocates and keeps."""

    name: str
    self_s: float
    calls: int
    allocated_bytes: int


class BatchDocument(TypedDict):
    """DataLoader's work for the batch of each step: seconds by its parts, and how many processes do it."""

    parts: dict[str, list[float]]
    workers: int


class TrainingDocument(TimedSteps, total=False):
    """The JSON document of a worker that trained. It is recorded as it is, with keys that are not named here."""

    arm: str  # of a recorded sample
    warmup_step_s: list[float]
    usage: dict[str, float]
    evidence: dict[str, dict[str, object]]
    modes: dict[str, object] | None
    backend: str  # by which ranks communicate
    ranks: list[RankDocument]
    instances: list[object]
    loader: LoaderDocument | None
    quality: dict[str, object] | None
    curve: list[Epoch] | None
    writes: dict[str, Written]  # ``inside`` the working copy, and ``outside``
    cpu_s: float  # CPU time of the worker
    peak_memory_bytes: int
    stderr: str
    digest: str  # of the reference kernel's code
    batch: BatchDocument | None
    profiled_step_s: list[float]
    operators: list[OperatorDocument]
    gpu_idle_share: float | None
    forward_s: float  # where operators are those of the forward pass alone
    phases: dict[str, list[float]]  # by name: the seconds of each step
