"""The specification of a run: plain, immutable data, made once from options, that goes to JSON and back.

``Plan`` (``envkit.bench.plan``) is what follows from it on one machine: with the data, and the ranks of profiles, that
are found there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from envkit.bench.plan import MARGIN, Ablated, Arm
from envkit.bench.specification_messages import (
    InvalidValue,
    StepsBesideMetric,
    TargetWithoutEpochs,
    UnknownArm,
    UnknownSpecificationKey,
    UnusableText,
)
from envkit.common.messages import UnknownWord
from envkit.engines.base import EngineOptions
from envkit.messages import Message, MessageError
from envkit.worker.measure.quality_target import TargetError
from envkit.worker.measure.quality_target import parse as parse_target
from envkit.worker.modes import USUAL, Options
from envkit.worker.request import UserCommand
from envkit.worker.user_command.losses import parse_losses
from envkit.worker.user_command.metric import MetricError, parse
from envkit.worker.workloads import DEFAULT, WORKLOADS, find

# In the place of a workload's name: each of those that `envkit bench` measures together.
EVERY = "all"
PRECISION = 0.04
TIMEOUT_S = 300.0
FULL_TIMEOUT_S = 7200.0
SCHEMA_FILE = Path(__file__).resolve().parent / "schemas/specification.schema.json"


class SpecificationError(MessageError, ValueError):
    """A document is no specification."""


@dataclass(frozen=True)
class Specification:
    """Times are in seconds; ``precision``, ``margin`` and the rest that ``Plan`` has too mean the same there."""

    title: str  # a part of the name of the record's folder
    arms: tuple[Arm, ...]  # the first is the reference
    budget_s: float
    workload: str = DEFAULT  # a workload's name, EVERY, or a name for the user's command
    user_command: UserCommand | None = None
    options: Options = USUAL
    engine_options: EngineOptions = field(default_factory=EngineOptions)
    nproc: int = 1  # processes that train together on each node
    nodes: int = 1
    data: str | None = None  # a folder, or what stands for one; None: what is found
    warmup_steps: int = 0  # 0: by the machine's pace
    steps: int = 0  # 0: by the machine's pace
    epochs: int = 0  # above 0: full trainings of so many
    until: str | None = None  # what such a training ends at, as accuracy=0.85, or after all epochs
    open_ended: bool = True  # whether nobody gave the budget
    blocks: int = 0
    precision: float = PRECISION
    margin: float = MARGIN
    timeout_s: float = TIMEOUT_S
    seed: int | None = None  # None: random
    keep_env: tuple[str, ...] = ()
    force: bool = False
    allow_unknown: bool = False
    ablated: tuple[Ablated, ...] = ()  # where a profile is taken apart: its settings; the second arm is all of it
    weak: bool = False  # weak scaling: the batch grows with the ranks

    @property
    def workloads(self) -> list[str]:
        """The kit's own workloads that are trained; none where a user's command is measured."""
        return [] if self.user_command else list(dict.fromkeys(arm.workload or self.workload for arm in self.arms))

    @property
    def instances(self) -> int:
        """The most that an arm has at once, each a training of its own."""
        return max(arm.instances or 1 for arm in self.arms)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "engine_options": self.engine_options.to_json()}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Specification:
        """Parse a document. Raise SpecificationError if it is invalid, TypeError or KeyError if it is no mapping."""
        unknown = document.keys() - {one.name for one in fields(Specification)}
        if unknown:
            raise SpecificationError(UnknownSpecificationKey(min(unknown)))
        _validate(document)
        found = Specification(
            **{
                **document,
                "arms": tuple(Arm(**arm) for arm in document["arms"]),
                "user_command": UserCommand.from_json(document["user_command"]),
                "options": Options(**document["options"]),
                "engine_options": EngineOptions(**document["engine_options"]),
                "keep_env": tuple(document["keep_env"]),
                "ablated": tuple(Ablated(**one) for one in document["ablated"]),
            }
        )
        for name in found.workloads:
            if name != EVERY and find(name) is None:
                raise SpecificationError(UnknownWord("workload", name, tuple(WORKLOADS)))
        if found.user_command is not None:
            _require_metrics(found.user_command)
        if found.until is not None:
            _require_target(found)
        _require_arms(found)
        return found

    def anywhere(self) -> Specification:
        """The same with files named in full, to be measured from another folder."""
        arms = tuple(
            replace(arm, profile=str(Path(arm.profile).absolute())) if arm.profile.endswith((".yaml", ".yml")) else arm
            for arm in self.arms
        )
        data = str(Path(self.data).absolute()) if self.data and Path(self.data).is_dir() else self.data
        return replace(self, arms=arms, data=data)


def _require_metrics(own: UserCommand) -> None:
    """Raise SpecificationError for an invalid metric, with which each worker would fail."""
    for name, text, read in (("metric", own.metric, parse), ("loss_metric", own.loss_metric, parse_losses)):
        if text is not None:
            try:
                read(text)
            except MetricError as error:
                raise SpecificationError(UnusableText(f"user_command.{name}", text, _problem(error))) from None
    if own.metric is not None and own.optimizer_steps is not None:
        raise SpecificationError(StepsBesideMetric())


def _problem(error: MetricError | TargetError) -> Message:
    return error.message if isinstance(error, MessageError) else str(error)


def _require_target(asked: Specification) -> None:
    """Raise SpecificationError for an invalid target, or one that no training reaches."""
    try:
        parse_target(asked.until or "")
    except TargetError as error:
        raise SpecificationError(UnusableText("until", str(asked.until), _problem(error))) from None
    if not asked.epochs:
        raise SpecificationError(TargetWithoutEpochs())


def _require_arms(asked: Specification) -> None:
    """Raise SpecificationError if a setting names an arm that is not there."""
    there = {None, *(arm.name for arm in asked.arms)}
    for one in asked.ablated:
        missing = [name for name in (one.alone, one.beside, one.without) if name not in there]
        if missing:
            raise SpecificationError(UnknownArm(one.setting, str(missing[0])))


def _validate(document: Mapping[str, Any]) -> None:
    """Raise SpecificationError for a value that breaks the schema."""
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_bytes()))
    error = min(validator.iter_errors(document), key=lambda one: [*map(str, one.absolute_path)], default=None)
    if error is not None:
        where = ".".join(map(str, error.absolute_path))
        raise SpecificationError(InvalidValue(where, error.message))
