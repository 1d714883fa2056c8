"""The specification of a tuning, as plain data: nodes of a cluster read it from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from envkit.bench.plan import Plan


@dataclass(frozen=True)
class TuningSpecification:
    """The space of a search, and the training of a trial. Files in it have whole names."""

    specification: Plan  # with the baseline as its only arm
    space: str  # a file
    budget_s: float  # seconds of workers, on each node where several search; 0 with blocks
    numerics: str  # same or any
    space_only: bool  # no shipped profile competes
    blocks: int  # above 0: every candidate is measured so often
    profile: str  # the file to write
    space_sha256: str | None = None  # of that file, where other machines read a copy of it

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "specification": self.specification.to_json()}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> TuningSpecification:
        """Raises ValueError, TypeError or KeyError for what is none."""
        own = {**document, "specification": Plan.from_json(document["specification"])}
        return TuningSpecification(**own)
