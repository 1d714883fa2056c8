"""The study of a tuning, as plain data: nodes of a cluster read it from a file, and its settings for one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from envkit.bench.study import Study
from envkit.common import codec
from envkit.common.file_messages import OtherType
from envkit.worker.workloads import get

# The share of a sample's usual steps that a trial has.
TRIAL_STEPS = 0.3


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a search, as its record has them."""

    budget_s: float  # seconds of workers, on each node where several search; 0 with blocks
    numerics: str  # same or any
    blocks: int  # above 0: every candidate is measured so often, and nothing is searched
    profile: str  # the file to write


@dataclass(frozen=True)
class TuningStudy:
    """The space of a search, and the training of a trial. Files in it have whole names."""

    study: Study  # with the baseline as its only arm
    settings: SearchSettings
    space: str  # a file
    space_only: bool  # no shipped profile competes
    space_sha256: str | None = None  # of that file, where other machines read a copy of it

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "study": self.study.to_json()}

    @staticmethod
    def from_json(document: Mapping[str, object]) -> TuningStudy:
        """Parse a document. Raise ValueError, TypeError or KeyError if it is invalid."""
        study = document["study"]
        if not isinstance(study, Mapping):
            raise codec.Misfit(OtherType("study"))
        return codec.parse({**document, "study": Study.from_json(study)}, TuningStudy)


def lengths(study: Study) -> tuple[Study, int]:
    """The study, with the usual lengths where none were given, and the number of timed steps of a trial."""
    if study.user_command:
        return study, max(1, study.training.steps)
    name, training = study.workload, study.training
    usual = get(name)
    study = study.sized({name: training.steps or usual.steps}, {name: training.warmup_steps or usual.warmup_steps})
    return study, training.steps or max(1, round(usual.steps * TRIAL_STEPS))
