"""Baselines: one session's measurement as a small JSON file, to be committed and compared with later sessions.

``schemas/baseline.schema.json`` says what a file has. Keys that it does not name are allowed and ignored.
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import cast

from envkit import __version__
from envkit.analysis.baseline_document import SCHEMA, BaselineDocument, BaselineStudy, digest, validated
from envkit.analysis.baseline_messages import (  # fmt: skip
    COMPARES_IMAGES,
    FULL_TRAINING,
    NO_KERNEL,
    OTHER_KERNEL,
    SEVERAL_INSTANCES,
    SEVERAL_RANKS,
    SEVERAL_WORKLOADS,
    WORKER_FAILED,
    BadBaselineName,
    BaselineExists,
    BaselinesThere,
    DamagedBaseline,
    EditedBaseline,
    FewBlocks,
    InvalidJson,
    MoreBlocks,
    NoBaselines,
    NoFitRun,
    NoRun,
    NoSuchFile,
    NotABaseline,
    Resume,
    TakesApart,
    Unfit,
    UnknownBaseline,
    WasNotInEffect,
)
from envkit.analysis.messages import NoReadings
from envkit.analysis.result import Result, conclude
from envkit.bench import decide, record
from envkit.bench.arms import View
from envkit.bench.events import ReferenceKernel, ReferenceKernelFailure, Sample
from envkit.bench.problems import problem_of
from envkit.bench.record import FILE_NAME
from envkit.bench.run import Run
from envkit.bench.run import read as read_run
from envkit.bench.study import Study
from envkit.common import atomic, documents, files
from envkit.common.codec import finite
from envkit.common.errors import InputError
from envkit.common.messages import OtherSchema
from envkit.common.running_messages import NotMade
from envkit.common.suggestion import nearest
from envkit.messages import Message
from envkit.profiles.inspection import Surroundings
from envkit.stats.interval import MIN_BLOCKS
from envkit.worker.request import UserCommand

FOLDER = Path("baselines")
# With so many of its blocks disturbed from outside, a session says more about the disturbance than about a profile.
NEARLY_ALL = 0.8
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_INSPECTED = (
    "facts", "fingerprint", "python", "packages", "unverified_packages", "libraries", "providers", "accelerator",
)  # fmt: skip


@dataclass(frozen=True)
class Baseline:
    """``document`` is what the file holds, and ``source`` (a file, or a run's folder) what messages call it."""

    document: BaselineDocument
    source: str

    @property
    def name(self) -> str:
        return str(self.document["name"])

    @property
    def study(self) -> BaselineStudy:
        return self.document["study"]

    @property
    def user_command(self) -> UserCommand | None:
        """The user's command that was measured, if it was one."""
        return UserCommand.from_json(self.study["user_command"])

    @property
    def blocks(self) -> int:
        return len(self.reference_kernel_s)

    @property
    def disturbed(self) -> int:
        """Return how many blocks were disturbed from outside."""
        return int(self.document["blocks_with_interference"])

    @property
    def is_under_load(self) -> bool:
        """Return whether nearly all blocks were disturbed, so that the times hold only beside that load."""
        return self.disturbed >= NEARLY_ALL * self.blocks

    @property
    def skipped_steps(self) -> int:
        """How many timed steps at the start of each sample were left out."""
        return int(self.document["skipped_steps"])

    @property
    def reference_kernel_s(self) -> list[float]:
        """One time per block, in seconds."""
        return list(self.document["reference_kernel"]["seconds"])

    def step_s(self, arm: str) -> list[float]:
        """The mean time per step in each block, in seconds."""
        return list(self.document["arms"][arm]["step_s"])

    @property
    def reference(self) -> str:
        return str(self.document["study"]["arms"][0]["name"])

    @property
    def arms(self) -> list[str]:
        """The names of the arms, the reference first."""
        return [arm["name"] for arm in self.document["study"]["arms"]]

    def engine(self, arm: str) -> Surroundings:
        """Return the engine and the inspection of the image that ``arm`` ran in."""
        name = next(one["engine"] for one in self.document["study"]["arms"] if one["name"] == arm)
        return self.document["engines"][name]


def from_record(folder: Path, name: str) -> Baseline:
    """The baseline that the record in ``folder`` makes, of its blocks with a sample of each arm.

    Raises InputError for a run that failed or was not in effect, with too few blocks, or without the reference
    kernel, and for a record that lacks what every run records.
    """
    with record.reading(folder):
        return _from_record(folder, name)


def latest(results: Path, name: str) -> Baseline:
    """The baseline that the latest run in the folder ``results`` makes, of those that can make one.

    Raises InputError if it is missing.
    """
    begun = []
    for path in results.glob(f"*/{FILE_NAME}"):
        with contextlib.suppress(InputError), record.reading(path.parent):  # another run's affair
            begun.append((float(record.first(path.parent)["time"]), path.parent))
    for _, folder in sorted(begun, reverse=True):
        with contextlib.suppress(InputError):
            return from_record(folder, name)
    raise InputError(NoFitRun(len(begun), str(results)) if begun else NoRun(str(results)))


def _from_record(folder: Path, name: str) -> Baseline:
    run = read_run(folder)
    result = conclude(run)
    if (unfit := _unfit(str(folder), result)) is not None:
        raise InputError(unfit)
    arms = result.study.arms
    blocks = _complete_blocks(folder, run, [arm.name for arm in arms])
    samples = {arm.name: [of_block[arm.name] for of_block, _ in blocks] for arm in arms}
    readings = [reading for _, reading in blocks]
    first = samples[result.study.reference.name][0]
    began = run.beginning
    document = {
        "schema": SCHEMA,
        "name": name,
        "created": _utc(datetime.now(timezone.utc).timestamp()),
        "measured": _utc(began.time),
        "record_sha256": record.digest(folder),
        "kit_version": __version__,
        "study": _planned(result.study),
        "engines": {
            engine: {
                "engine": seen["engine"],
                "inspection": {key: value for key, value in began.inspection(engine).items() if key in _INSPECTED},
            }
            for engine, seen in began.engines.items()
        },
        "allowed_variables": sorted(began.allowed_variables),
        "skipped_steps": run.skipped_steps,
        "blocks_with_interference": len(
            result.interference.keys() & {sample.block for sample in samples[arms[0].name]}
        ),
        "digests": first.digests,
        "reference_kernel": {"digest": readings[0].digest, "seconds": [one.seconds for one in readings]},
        "arms": {
            arm.name: {
                "environment": began.environments[arm.name],
                "step_s": [
                    round(statistics.fmean(sample.step_s[run.skipped_steps :]), 9) for sample in samples[arm.name]
                ],
                "final_loss": finite(losses[-1]) if (losses := samples[arm.name][0].losses) else None,
            }
            for arm in arms
        },
    }
    return Baseline(cast(BaselineDocument, {**document, "digest": digest(document)}), str(folder))


def _unfit(folder: str, result: Result) -> Message | None:
    """Return why a run can't become a baseline, whatever its blocks are; None if it can."""
    study = result.study
    if result.ended == decide.FAILED:
        return Unfit(folder, WORKER_FAILED)
    if result.not_in_effect:
        return WasNotInEffect(folder, result.not_in_effect[0].arm)
    if study.view is View.SETTINGS:
        return TakesApart(folder, study.whole.profile)
    reasons = {
        COMPARES_IMAGES: study.view is View.IMAGES,
        FULL_TRAINING: bool(study.epochs),
        SEVERAL_WORKLOADS: len(study.workloads) > 1,
        SEVERAL_RANKS: study.distributed,
        SEVERAL_INSTANCES: bool(study.at_once),
    }
    return next((Unfit(folder, reason) for reason, found in reasons.items() if found), None)


def _complete_blocks(folder: Path, run: Run, arms: Sequence[str]) -> list[tuple[dict[str, Sample], ReferenceKernel]]:
    """For each complete block its samples by arm, and the reading of the reference kernel that holds for it."""
    read = {reading.block: reading for reading in run.all(ReferenceKernel)}
    blocks: dict[int, dict[str, Sample]] = {block: {} for block in read}
    for sample in run.samples():
        blocks.setdefault(sample.block, {})[sample.arm] = sample
    failure = run.first(ReferenceKernelFailure)
    if failure is not None and len(read) < len(blocks):
        raise InputError(NoReadings(str(folder), len(blocks) - len(read), len(blocks), problem_of(failure)))
    if blocks and not read:
        raise InputError(Unfit(str(folder), NO_KERNEL))
    if len({reading.digest for reading in read.values()}) > 1:
        raise InputError(Unfit(str(folder), OTHER_KERNEL))
    complete = []
    latest = next(iter(read.values()), None)  # it is not read in every block: the latest holds
    for block, of_block in sorted(blocks.items()):
        latest = read.get(block, latest)
        if latest is not None and of_block.keys() == {*arms}:
            complete.append((of_block, latest))
    if len(complete) < MIN_BLOCKS:
        resume = Resume(("envkit", "bench", "--resume", str(folder)))
        way_on = MoreBlocks() if run.ended in decide.ENDED else resume
        raise InputError(FewBlocks(str(folder), len(complete), MIN_BLOCKS, way_on))
    return complete


def _planned(study: Study) -> dict[str, object]:
    """Return what was measured, as the file has it."""
    return {
        "arms": [{"name": arm.name, "profile": arm.profile, "engine": arm.engine} for arm in study.arms],
        "engine_options": study.engine_options.to_json(),
        "workload": study.workload,
        **asdict(study.training),
        "data": study.data_of(study.reference),
        "timeout_s": study.stopping.timeout_s,
        "options": asdict(study.options),
        "user_command": study.user_command and asdict(study.user_command),
    }


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def names(folder: Path) -> list[str]:
    """The names of all baselines in ``folder``, sorted."""
    return sorted(path.stem for path in folder.glob("*.json"))


def path_of(name: str, folder: Path) -> Path:
    """Return where the baseline ``name`` is kept. Raise InputError if it can't be a file's name on every system."""
    if not _NAME.fullmatch(name):
        raise InputError(BadBaselineName(name))
    return folder / f"{name}.json"


def load(name: str, folder: Path) -> Baseline:
    """The baseline ``name`` in ``folder``, or that in the file ``name`` where it looks like a path.

    Raise InputError if the file is missing, damaged, edited, or has another schema.
    """
    if "/" in name or name.endswith(".json"):
        path = Path(name)
        if not path.is_file():
            raise InputError(NoSuchFile(str(path)))
    else:
        path = path_of(name, folder)
        if not path.is_file():
            known = names(folder)
            there = BaselinesThere(tuple(known)) if known else NoBaselines()
            raise InputError(UnknownBaseline(name, str(folder), there, nearest(name, known)))
    return read(path)


def read(path: Path) -> Baseline:
    """Return the baseline in the file ``path``. Raise InputError as ``load`` does."""
    try:
        document = documents.parse_strictly(files.content(path))
    except documents.BadDocument as error:
        raise InputError(DamagedBaseline(str(path), InvalidJson(error.message))) from None
    if not isinstance(document, dict) or type(document.get("schema")) is not int:
        raise InputError(NotABaseline(str(path)))
    if document["schema"] != SCHEMA:
        raise InputError(OtherSchema.of(str(path), "baseline", document["schema"], SCHEMA))
    baseline = validated(path, document)
    if baseline["digest"] != digest(document):
        raise InputError(DamagedBaseline(str(path), EditedBaseline()))
    return Baseline(baseline, str(path))


def write(baseline: Baseline, path: Path, replace: bool) -> None:
    """Write the whole file or nothing. Raise InputError if it is there and not to be replaced, or can't be written."""
    if path.exists() and not replace:
        raise InputError(BaselineExists(str(path)))
    text = json.dumps(baseline.document, indent=1) + "\n"
    # lists of numbers on one line each: short to look at, and one line of a diff
    text = re.sub(r"\[\n([-+.\de,\s]+)\n *\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    try:
        atomic.make_folder(path.parent)
    except OSError as error:
        raise InputError(NotMade(str(path.parent), str(error.strerror), "--folder")) from None
    atomic.write(path, text.encode())
