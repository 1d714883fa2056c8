"""The kept part of a node's record: a few hundred bytes out of hundreds of kilobytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from envkit.messages import Message

# In seconds: the ratio of any two times that are accepted is one that a float can hold.
SHORTEST = 1e-12
# In seconds since 1970: a clock that says more can't be printed as a date.
LATEST = 2.0**37
Positive = Annotated[float, Meta(gt=SHORTEST, lt=LATEST)]


@dataclass(frozen=True)
class Node:
    """One node and what it measured. None means unknown."""

    name: str  # of the folder that its record is in
    profile: str
    workload: str  # with the kind of scaling, where its batch grew with its ranks
    kind: str  # the type of machine
    must_agree: dict[str, str]  # has to be equal on two nodes of a kind for their times to be comparable
    facts: dict[str, str]  # all that is known of machine and image
    memory_bytes: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None
    began: Annotated[float, Meta(ge=0, lt=LATEST)]  # seconds since 1970, by the node's own clock
    finished: bool  # whether its run was completed
    # the mean time of a step in each sample, in the order in which they were measured
    step_s: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    samples_with_interference: Annotated[int, Meta(ge=0)]  # how many something from outside disturbed
    interference: str  # what disturbed most of these
    reference_kernel_s: Positive | None  # the median over the run
    reference_kernel_digest: str | None
    clock_mhz: Positive | None  # the median over the run


@dataclass(frozen=True)
class LeftOut:
    """A node whose times can't be used, and why. The subject of ``reason`` is the node."""

    name: str
    reason: Message

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return {"name": self.name, "reason": self.reason.to_json()}
