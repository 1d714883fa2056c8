"""Why a training takes longer than it must: what is seen, what causes it, and which profiles take it away.

The one place for these: ``envkit advise``, ``envkit doctor`` and reports say them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from envkit.advice.symptoms import Symptoms


@dataclass(frozen=True)
class Reason:
    """A symptom with its cause and its mends.

    ``share`` is how much of a training's time it concerns, None where it was not seen; from ``least`` on a mend is
    worth a try. ``seen`` says how much there is of it, whether that is much or little.
    """

    code: str
    share: Callable[[Symptoms], float | None]
    least: float
    seen: Callable[[Symptoms], str]
    why: str
    mends: tuple[str, ...]  # profiles, the first of them for those who want to try one

    def holds(self, symptoms: Symptoms) -> bool | None:
        """Whether there is enough of it to do something; None where it was not looked at."""
        share = self.share(symptoms)
        return None if share is None else share >= self.least


def _page_faults(symptoms: Symptoms) -> str:
    """The kernel's share of the CPU time, with page faults per step where steps were seen."""
    kernel = f"{symptoms.system_share:.0%} of its CPU time is the kernel's"
    if symptoms.steps is None:
        return f"{kernel}, with {symptoms.faults_per_s:,.0f} page faults a second"
    return f"{kernel}, with {symptoms.faults_per_s * symptoms.seconds / symptoms.steps:,.0f} page faults a step"


def _matrix_products(symptoms: Symptoms) -> str:
    if symptoms.generic_matrix_code is False:
        return "MKL takes code that is made for this processor already"
    share = symptoms.matrix_share
    return f"{share:.0%} of a step is matrix products, for which MKL takes code that is made for any processor"


def _waiting(symptoms: Symptoms) -> str:
    return f"threads that could run waited for a CPU in {symptoms.waiting_share:.0%} of their time"


# With fewer of them the kernel does something else.
FAULTS_PER_S = 1_000

PAGE_FAULTS = Reason(
    "page-faults",
    lambda symptoms: symptoms.system_share if symptoms.faults_per_s >= FAULTS_PER_S else 0.0,
    0.05,
    _page_faults,
    "the allocator gives memory back to the kernel, which fills its pages with zeros anew for each step",
    ("glibc-retain", "mimalloc-retain", "jemalloc-retain", "tcmalloc-retain", "glibc-retain-mkl", "mimalloc-retain-mkl",
     "jemalloc-retain-mkl", "gnu-omp-glibc-retain", "intel-omp-jemalloc-retain", "mimalloc-retain-passive", "mimalloc",
     "tcmalloc"),
)  # fmt: skip
GENERIC_MATRIX_CODE = Reason(
    "generic-matrix-code",
    lambda symptoms: symptoms.matrix_share,
    0.10,
    _matrix_products,
    "MKL has faster code for this processor, and takes it where it believes the processor to be Intel's",
    ("mkl-native", "glibc-retain-mkl", "mimalloc-retain-mkl", "jemalloc-retain-mkl"),
)
CROWDED_CPUS = Reason(
    "crowded-cpus",
    lambda symptoms: symptoms.waiting_share,
    0.10,
    _waiting,
    "other programs, or threads that spin while they wait for others, keep CPUs from those that have work",
    ("low-noise", "intel-omp", "mimalloc-retain-passive", "physical-cores"),
)
REASONS = (PAGE_FAULTS, GENERIC_MATRIX_CODE, CROWDED_CPUS)


def reasons_of(profile: str) -> list[Reason]:
    """What a profile takes away; nothing for one of which that is not known."""
    return [reason for reason in REASONS if profile in reason.mends]


def why_to_try(profile: str, symptoms: Symptoms) -> list[Reason]:
    """Those of a profile's reasons that hold."""
    return [reason for reason in reasons_of(profile) if reason.holds(symptoms)]


def why_not(profile: str, symptoms: Symptoms) -> str:
    """What is seen of all that a profile takes away, where that is too little; empty where nothing was seen."""
    looked_at = [reason for reason in reasons_of(profile) if reason.holds(symptoms) is not None]
    return "; ".join(reason.seen(symptoms) for reason in looked_at)
