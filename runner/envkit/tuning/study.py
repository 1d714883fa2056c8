"""The study of a tuning, as plain data: nodes of a cluster read it from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from envkit.bench.study import Study


@dataclass(frozen=True)
class TuningStudy:
    """The space of a search, and the training of a trial. Files in it have whole names."""

    study: Study  # with the baseline as its only arm
    space: str  # a file
    budget_s: float  # seconds of workers, on each node where several search; 0 with blocks
    numerics: str  # same or any
    space_only: bool  # no shipped profile competes
    blocks: int  # above 0: every candidate is measured so often
    profile: str  # the file to write
    space_sha256: str | None = None  # of that file, where other machines read a copy of it

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "study": self.study.to_json()}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> TuningStudy:
        """Parse a document. Raise ValueError, TypeError or KeyError if it is invalid."""
        own = {**document, "study": Study.from_json(document["study"])}
        return TuningStudy(**own)
