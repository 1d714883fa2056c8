"""The parts of a process's evidence that checks read, by the probes of ``envkit.worker.evidence``.

A program may have written anything in the hook's place. These types say what the kit's probes write. Reading another
form raises one of ``envkit.common.errors.MISFITS`` at that place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast

from envkit.worker.evidence.cpu_use import CpuUseDocument

Evidence = Mapping[str, object]  # by the probe's name


class Change(TypedDict, total=False):
    """The values of a variable that the program itself changed; None where it had removed the variable."""

    now: str | None
    at_torch: str | None  # when torch was imported, if it was


class Variables(TypedDict, total=False):
    """Environment variables of a process (``envkit.worker.evidence.variables``)."""

    sensitive: dict[str, str]  # those that can change the outcome, as the process was started with them
    named: dict[str, str | None]  # others that were asked for
    changed: dict[str, Change]
    preloaded: dict[str, str]  # by each entry of LD_PRELOAD ``mapped``, or the loader's reason


class Threads(TypedDict, total=False):
    """The threads of a process, and CPUs as lists such as ``0-3,8``."""

    started_on: str | None  # the CPUs that the process began with
    masks: dict[str, int]  # by the CPUs that threads may run on, the number of threads


class ProcessDocument(TypedDict, total=False):
    """A process that left evidence: one of a user's command, a rank or an instance."""

    pid: int
    argv: list[str]
    evidence: dict[str, object]
    rank: int
    instance: int
    node: str
    cpus: list[int]


class SampleDocument(TypedDict, total=False):
    """A sample, as a worker measured it."""

    evidence: dict[str, object]
    stderr: str
    other_processes: list[ProcessDocument]  # of a user's command
    ranks: list[ProcessDocument]
    instances: list[ProcessDocument]


def part(evidence: Evidence, name: str) -> Mapping[str, object]:
    """Return what a probe observed; nothing if it did not look. Raise TypeError for another form."""
    observed = evidence.get(name) or {}
    if not isinstance(observed, dict):
        raise TypeError(f"the evidence of {name} must be an object: {observed!r}")
    return observed


def variables(evidence: Evidence) -> Variables:
    """Return the variables of a process. Raise KeyError if the evidence lacks them."""
    return cast(Variables, evidence["variables"])


def threads(evidence: Evidence) -> Threads:
    """Return the threads of a process; nothing if no probe looked."""
    return cast(Threads, part(evidence, "threads"))


def cpu_use(evidence: Evidence) -> CpuUseDocument:
    """Return how a process computes; nothing if no probe looked."""
    return cast(CpuUseDocument, part(evidence, "cpu_use"))


def openmp_runtimes(evidence: Evidence) -> list[str]:
    """Return the files of the OpenMP runtimes that a process has mapped."""
    return cast("list[str]", part(evidence, "openmp").get("mapped") or [])
