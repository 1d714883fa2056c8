"""The kept part of a node's record: a few hundred bytes out of hundreds of kilobytes."""

from __future__ import annotations

from dataclasses import dataclass

from envkit.messages import Message


@dataclass(frozen=True)
class Node:
    """One node and what it measured. None means unknown."""

    name: str  # of the folder that its record is in
    profile: str
    workload: str  # with the kind of scaling, where its batch grew with its ranks
    kind: str  # the type of machine
    must_agree: dict[str, str]  # has to be equal on two nodes of a kind for their times to be comparable
    facts: dict[str, str]  # all that is known of machine and image
    memory_bytes: int | None
    began: float  # seconds since 1970, by the node's own clock
    finished: bool  # whether its run was completed
    step_s: tuple[float, ...]  # the mean time of a step in each sample, in the order in which they were measured
    samples_with_interference: int  # how many something from outside disturbed
    interference: str  # what disturbed most of these
    reference_kernel_s: float | None  # the median over the run
    reference_kernel_digest: str | None
    clock_mhz: float | None  # the median over the run


@dataclass(frozen=True)
class LeftOut:
    """A node whose times can't be used, and why. The subject of ``reason`` is the node."""

    name: str
    reason: Message

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return {"name": self.name, "reason": self.reason.to_json()}
