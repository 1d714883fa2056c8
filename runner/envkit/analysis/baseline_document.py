"""The document of a baseline's file: its keys, its digest, and its validation.

``schemas/baseline.schema.json`` is the published form. Keys that it does not name are allowed and ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from envkit.analysis.baseline_messages import DamagedBaseline, DanglingReference, OtherLength
from envkit.common import schema
from envkit.common.errors import InputError
from envkit.profiles.inspection import Surroundings

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

SCHEMA = 1
_SCHEMA_FILE = Path(__file__).resolve().parent / "schemas/baseline.schema.json"


class BaselineArm(TypedDict):
    """An arm by its names."""

    name: str
    profile: str
    engine: str


class BaselineStudy(TypedDict):
    """The study that was measured, as far as later sessions repeat it. The first arm is the reference."""

    arms: list[BaselineArm]
    engine_options: dict[str, str]
    workload: str
    warmup_steps: int
    steps: int
    data: str
    timeout_s: float
    options: dict[str, object]
    user_command: dict[str, object] | None


class BaselineKernel(TypedDict):
    """The reference kernel: the digest of its code, and its time in each block, in seconds."""

    digest: str
    seconds: list[float]


class BaselineEnvironment(TypedDict):
    """The environment of an arm's workers."""

    variables: dict[str, str]
    preload: dict[str, str]
    prefix: list[str]
    expect: dict[str, object]


class BaselineTimes(TypedDict):
    """The measurement of an arm: its mean time per step in each block, in seconds."""

    environment: BaselineEnvironment
    step_s: list[float]
    final_loss: float | None


class BaselineDocument(TypedDict):
    """The content of a file. ``created`` and ``measured`` are times in UTC."""

    schema: int
    name: str
    created: str
    measured: str
    digest: str
    record_sha256: str
    kit_version: str
    study: BaselineStudy
    engines: dict[str, Surroundings]
    allowed_variables: list[str]
    skipped_steps: int
    blocks_with_interference: int
    digests: dict[str, str]
    reference_kernel: BaselineKernel
    arms: dict[str, BaselineTimes]


def digest(document: Mapping[str, object]) -> str:
    """Return the SHA-256 of everything but the digest itself, as JSON with sorted keys, no blanks, and only ASCII."""
    content = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def validated(path: Path, document: object) -> BaselineDocument:
    """Return the content of the file ``path`` as a baseline.

    Raise InputError for the first thing that the published schema, or its references among themselves, forbid.
    """
    error = next(iter(sorted(_validator().iter_errors(document), key=lambda error: list(map(str, error.path)))), None)
    if error is not None:
        raise InputError(DamagedBaseline(str(path), schema.violation(error)[1]))
    baseline = cast(BaselineDocument, document)  # the schema says so
    blocks = len(baseline["reference_kernel"]["seconds"])
    for index, arm in enumerate(baseline["study"]["arms"]):
        if arm["name"] not in baseline["arms"]:
            raise InputError(DamagedBaseline(str(path), DanglingReference(index, "name", arm["name"])))
        if arm["engine"] not in baseline["engines"]:
            raise InputError(DamagedBaseline(str(path), DanglingReference(index, "engine", arm["engine"])))
        if len(baseline["arms"][arm["name"]]["step_s"]) != blocks:
            raise InputError(DamagedBaseline(str(path), OtherLength(_short(arm["name"]), blocks)))
    return baseline


@cache
def _validator() -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # takes as long to import as all else together

    return Draft202012Validator(json.loads(_SCHEMA_FILE.read_text()))


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= 120 else f"{line[:60]} … {line[-55:]}"
