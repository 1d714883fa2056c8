"""What is kept of a node's record: a few hundred bytes of the hundreds of kilobytes that it has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """One node and what it measured; ``name`` is that of the folder that its record is in.

    Times are in seconds. ``step_s`` has the mean time of a step in each sample, in the order in which they were
    measured. ``kind`` is the type of machine, and ``must_agree`` what has to be equal on two nodes of a kind for their
    times to be comparable; ``facts`` is all that is known of machine and image. ``began`` is by the node's own clock,
    in seconds since 1970; ``finished`` whether its run was completed. ``samples_with_interference`` counts those
    that something from outside disturbed, and ``interference`` says what disturbed most of them.
    ``reference_kernel_s`` and ``clock_mhz`` are medians over the run, and None where nothing is known of them.
    """

    name: str
    profile: str
    workload: str
    kind: str
    must_agree: dict[str, str]
    facts: dict[str, str]
    memory_bytes: int | None
    began: float
    finished: bool
    step_s: tuple[float, ...]
    samples_with_interference: int
    interference: str
    reference_kernel_s: float | None
    reference_kernel_digest: str | None
    clock_mhz: float | None


@dataclass(frozen=True)
class LeftOut:
    """A node whose times can't be used, and why, in one line."""

    name: str
    reason: str
