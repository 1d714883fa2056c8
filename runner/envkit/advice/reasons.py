"""Tell why a training takes longer than it must: what is seen, what causes it, and which profiles take it away.

``envkit advise``, ``envkit doctor`` and reports have these from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from envkit.advice.messages import (
    CpusKept,
    FasterMatrixCode,
    GenericMatrixCode,
    KernelTime,
    MemoryGivenBack,
    NativeMatrixCode,
    SmallBlocks,
    SmallOperators,
    WaitingThreads,
)
from envkit.advice.symptoms import SMALL_S, Symptoms
from envkit.common.messages import Clauses
from envkit.messages import Message


@dataclass(frozen=True)
class Reason:
    """A symptom with its cause and its mends.

    ``share`` is how much of a training's time it concerns, None where it was not seen; from ``least`` on a mend is
    worth a try. ``seen`` says how much there is of it, whether that is much or little.
    """

    code: str
    share: Callable[[Symptoms], float | None]
    least: float
    seen: Callable[[Symptoms], Message]
    why: Message
    mends: tuple[str, ...]  # profiles, the first of them for those who want to try one

    def holds(self, symptoms: Symptoms) -> bool | None:
        """Return whether there is enough of it to do something; None if it was not looked at."""
        share = self.share(symptoms)
        return None if share is None else share >= self.least


def _page_faults(symptoms: Symptoms) -> KernelTime:
    if symptoms.steps is None:
        return KernelTime(symptoms.system_share, faults_per_s=symptoms.faults_per_s)
    return KernelTime(symptoms.system_share, symptoms.faults_per_s * symptoms.seconds / symptoms.steps)


def _matrix_products(symptoms: Symptoms) -> Message:
    """Return what is seen of matrix products, which were looked at."""
    if symptoms.generic_matrix_code is False:
        return NativeMatrixCode()
    assert symptoms.matrix_share is not None, "it was looked at"
    return GenericMatrixCode(symptoms.matrix_share)


def _waiting(symptoms: Symptoms) -> WaitingThreads:
    """Return what is seen of waiting threads, which were looked at."""
    assert symptoms.waiting_share is not None, "it was looked at"
    return WaitingThreads(symptoms.waiting_share)


def _small_operators(symptoms: Symptoms) -> SmallOperators:
    """Return what is seen of small operators, which were looked at."""
    assert symptoms.small_share is not None, "it was looked at"
    assert symptoms.small_per_s is not None, "it was looked at"
    return SmallOperators(symptoms.small_share, 1e6 * SMALL_S, symptoms.small_per_s)


# With fewer of them the kernel does something else.
FAULTS_PER_S = 1_000

PAGE_FAULTS = Reason(
    "page-faults",
    lambda symptoms: symptoms.system_share if symptoms.faults_per_s >= FAULTS_PER_S else 0.0,
    0.05,
    _page_faults,
    MemoryGivenBack(),
    ("glibc-retain", "mimalloc-retain", "jemalloc-retain", "tcmalloc-retain", "glibc-retain-mkl", "mimalloc-retain-mkl",
     "jemalloc-retain-mkl", "gnu-omp-glibc-retain", "intel-omp-jemalloc-retain", "mimalloc-retain-passive", "mimalloc",
     "mimalloc-2", "mimalloc-2-retain", "mimalloc-2-retain-mkl", "tcmalloc"),
)  # fmt: skip
GENERIC_MATRIX_CODE = Reason(
    "generic-matrix-code",
    lambda symptoms: symptoms.matrix_share,
    0.10,
    _matrix_products,
    FasterMatrixCode(),
    ("mkl-native", "glibc-retain-mkl", "mimalloc-retain-mkl", "mimalloc-2-retain-mkl", "jemalloc-retain-mkl"),
)
CROWDED_CPUS = Reason(
    "crowded-cpus",
    lambda symptoms: symptoms.waiting_share,
    0.10,
    _waiting,
    CpusKept(),
    ("low-noise", "intel-omp", "mimalloc-retain-passive", "physical-cores"),
)
# One training has shown it: a small recurrent network, 54% of whose step was in small operators, became 1.3 to 1.5
# times as fast. Too few trainings were watched for it to fit a gain (docs/advise.md).
SMALL_BLOCKS = Reason(
    "small-blocks",
    lambda symptoms: symptoms.small_share,
    0.50,
    _small_operators,
    SmallBlocks(),
    ("mimalloc-retain", "mimalloc", "mimalloc-2-retain", "mimalloc-2", "mimalloc-retain-mkl", "mimalloc-2-retain-mkl"),
)
REASONS = (PAGE_FAULTS, GENERIC_MATRIX_CODE, SMALL_BLOCKS, CROWDED_CPUS)


def reasons_of(profile: str) -> list[Reason]:
    """Return what a profile takes away; nothing if that is not known."""
    return [reason for reason in REASONS if profile in reason.mends]


def why_to_try(profile: str, symptoms: Symptoms) -> list[Reason]:
    """Return those of a profile's reasons that hold."""
    return [reason for reason in reasons_of(profile) if reason.holds(symptoms)]


def why_not(profile: str, symptoms: Symptoms) -> Clauses | None:
    """Return what is seen of all that a profile takes away, which is too little; None if nothing was looked at."""
    observations = tuple(reason.seen(symptoms) for reason in reasons_of(profile) if reason.holds(symptoms) is not None)
    return Clauses(observations) if observations else None
