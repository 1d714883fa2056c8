"""Symptoms: plain numbers that a training shows while it takes its steps."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from msgspec import Struct

from envkit.common import codec
from envkit.engines.measurement import HelperUsage, Measurement, Observed, OperatorTimes, Usage, probe

# What operators of PyTorch do, by their names; the first that matches counts. Matrix products are MKL's in PyTorch's
# builds for x86-64 (aten/src/ATen/native/CPUBlas.cpp), and so are those of attention, which is written out in them
# (aten/src/ATen/native/cpu/FlashAttentionKernel.cpp); convolutions are oneDNN's (aten/src/ATen/native/mkldnn/Conv.cpp).
MATRIX, RECURRENT, CONVOLUTION = "matrix", "recurrent", "convolution"
MOVING, OTHER, OUTSIDE = "moving", "other", "outside"
KINDS = {
    MATRIX: re.compile(r"^aten::(mm|addmm|bmm|baddbmm|addbmm|addmv|mv|dot|linear|_slow_conv2d|_?scaled_dot_product)"),
    RECURRENT: re.compile(r"rnn|lstm|gru"),
    CONVOLUTION: re.compile(r"conv|mkldnn"),
    MOVING: re.compile(r"^aten::(copy_|_to_copy|clone|contiguous|zero_|zeros|fill_|cat|_foreach_copy_|empty)"),
    OTHER: re.compile(r"^(aten|torch|autograd)"),
}
GENERIC = "generic"
# An operator that takes less than so many seconds itself, on average, works on small blocks of memory.
SMALL_S = 20e-6
# In less time, or in fewer steps on a slow machine, what a process does once (memory that it touches for the first
# time) is much of what is seen.
SHORTEST_S, FEWEST_STEPS = 1.0, 5


@dataclass(frozen=True)
class Symptoms:
    """Means over the time that was watched; None for what was not seen.

    ``cpus`` are those that were busy, on average; ``system_share`` is the kernel's part of that time; ``waiting_share``
    the part of the time in which a thread that could run had no CPU, of that and its CPU time. ``operators`` are shares
    of a step's time, by kind (``KINDS``; ``OUTSIDE`` is what no operator took). ``small_share`` is the share of that
    time in operators that take less than ``SMALL_S`` each, and ``small_per_s`` the calls of these a second. Both are of
    steps under the profiler, which slows small operators most. ``generic_matrix_code`` says whether MKL takes code that
    is made for no processor in particular.
    """

    seconds: float
    cpus: float
    system_share: float
    faults_per_s: float
    steps: int | None = None
    step_s: float | None = None
    waiting_share: float | None = None
    operators: Mapping[str, float] | None = None
    generic_matrix_code: bool | None = None
    threads: int | None = None
    helper_cpus: float = 0.0  # those that other processes of it keep busy: DataLoader's workers, other ranks
    small_share: float | None = None
    small_per_s: float | None = None

    @property
    def is_long_enough(self) -> bool:
        """Return whether it was watched for so long that what it does in each step is most of what is seen."""
        return self.seconds >= SHORTEST_S and (self.steps is None or self.steps >= FEWEST_STEPS)

    @property
    def matrix_share(self) -> float | None:
        """The part of a step's time in matrix products, where other code for them could be faster; else 0."""
        if self.generic_matrix_code is False:
            return 0.0
        return None if self.operators is None else self.operators.get(MATRIX, 0.0)

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, object]) -> Symptoms:
        return codec.parse(document, Symptoms)


@dataclass(frozen=True)
class Feature:
    """A number that a gain may depend on; None where it was not seen."""

    name: str
    value: Callable[[Symptoms], float | None] = field(repr=False)


def of_sample(sample: Measurement) -> Symptoms:
    """Return those of a worker's sample: of a watched command (``observed``), or of the timed steps of a workload.

    If a command was timed by its output, ``usage`` is that of the whole command, its start and end too.
    """
    observed = sample.observed or Observed()
    steps = sample.step_s
    usage = observed.usage or sample.usage
    mkl = probe(sample.evidence, "mkl")
    seconds = sum(steps) if sample.observed else sample.seconds or sum(steps)
    small_share, small_per_s = _small(observed.operators)
    return replace(
        _of_usage(usage, seconds, observed.waited_s),
        steps=len(steps),
        step_s=statistics.median(steps),
        operators=_kinds(observed.operators) if observed.operators else None,
        generic_matrix_code=mkl["dispatch"] == GENERIC if mkl.get("dispatch") else None,
        threads=observed.threads,
        helper_cpus=_cpus(observed.helpers),
        small_share=small_share,
        small_per_s=small_per_s,
    )


def _cpus(usage: HelperUsage | None) -> float:
    """How many CPUs processes kept busy, on average; 0 where that is not known."""
    return (usage.user_s + usage.system_s) / usage.seconds if usage else 0.0


class Watched(Struct, frozen=True, kw_only=True):
    """The use of processes that were watched from outside, in seconds. ``waited_s`` is None if unknown."""

    usage: Usage
    seconds: float
    waited_s: float | None


def of_process(document: Mapping[str, object]) -> Symptoms:
    """Return the symptoms of processes that were watched from outside (``steady_process.increase``)."""
    watched = codec.parse(document, Watched)
    return _of_usage(watched.usage, watched.seconds, watched.waited_s)


def _of_usage(usage: Usage, seconds: float, waited_s: float | None) -> Symptoms:
    busy = usage.user_s + usage.system_s
    return Symptoms(
        seconds=seconds,
        cpus=busy / seconds,
        system_share=usage.system_s / busy if busy else 0.0,
        faults_per_s=usage.minor_faults / seconds,
        waiting_share=None if waited_s is None else waited_s / (busy + waited_s) if busy + waited_s else 0.0,
    )


def kind(operator: str) -> str:
    """Return what an operator does, by its name."""
    return next((name for name, pattern in KINDS.items() if pattern.search(operator)), OTHER)


def _kinds(operators: OperatorTimes) -> dict[str, float]:
    """The share of the profiled steps' time that each kind takes."""
    shares = dict.fromkeys((*KINDS, OUTSIDE), 0.0)
    for name, seconds in operators.self_s.items():
        shares[kind(name)] += seconds / operators.seconds
    shares[OUTSIDE] = max(0.0, 1 - sum(shares.values()))
    return shares


def _small(operators: OperatorTimes | None) -> tuple[float | None, float | None]:
    """Return the share of a step in operators of less than SMALL_S, and their calls a second; None if not counted."""
    if operators is None or operators.calls is None:
        return None, None
    small = [name for name, calls in operators.calls.items() if operators.self_s.get(name, 0.0) < SMALL_S * calls]
    seconds = sum(operators.self_s.get(name, 0.0) for name in small)
    return seconds / operators.seconds, sum(operators.calls[name] for name in small) / operators.seconds


# What gains are fitted to: what can be seen of any process, and what takes a profiler.
FEATURES = (
    Feature("kernel", lambda symptoms: symptoms.system_share),  # of the CPU time
    Feature("matrix", lambda symptoms: symptoms.matrix_share),  # of a step, in products for which MKL's code is generic
    Feature("small", lambda symptoms: symptoms.small_share),  # of a step, in operators of less than SMALL_S each
    Feature("outside", lambda symptoms: symptoms.operators.get(OUTSIDE) if symptoms.operators else None),  # of a step
)
