"""The runs that a folder holds: found, filtered and read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from envkit.analysis.messages import FOLDER_OF_RUNS
from envkit.analysis.result import Comparison, Result, conclude
from envkit.bench import record
from envkit.bench import run as bench_run
from envkit.bench.record import FILE_NAME
from envkit.bench.record_messages import UnusableRecord
from envkit.bench.study import Study
from envkit.common import files
from envkit.common.errors import InputError
from envkit.common.messages import OtherSchema, Unreadable
from envkit.messages import Message


@dataclass(frozen=True)
class Beginning:
    """What the first line of a record says, which is quick to read. ``started`` is in local time."""

    folder: Path
    started: datetime
    study: Study


@dataclass(frozen=True)
class RecordedRun:
    """One run and what it found. ``blocks`` are those that have a sample of each arm."""

    folder: Path
    started: datetime
    result: Result
    blocks: int

    def to_json(self) -> dict[str, object]:
        document = self.result.to_json()
        study = self.result.study
        return {
            "folder": str(self.folder),
            "started": self.started.isoformat(timespec="seconds"),
            "profiles": list(dict.fromkeys(arm.profile for arm in study.subjects)),
            "engines": engines(study),
            "workload": study.workload,
            "modes": study.options.text(),
            "scaling": study.scaling,
            "blocks": self.blocks,
            **{key: document[key] for key in ("reference", "comparisons", "ended")},
        }


@dataclass(frozen=True)
class Entry:
    """A run, or the runs of one submission's nodes, whose ``folder`` is the submission's. Of all ``nodes``, only those
    in ``runs`` were read.
    """

    folder: Path
    runs: list[RecordedRun]
    nodes: int

    def to_json(self) -> dict[str, object]:
        runs = [one.to_json() for one in self.runs]
        if self.runs[0].folder == self.folder:
            return runs[0]
        alike = ("started", "profiles", "engines", "workload")
        return {"folder": str(self.folder), **{key: runs[0][key] for key in alike}, "nodes": runs}


@dataclass(frozen=True)
class Unread:
    """A record that can't be used, and why."""

    folder: Path
    problem: Message


def folders(place: Path) -> list[Path]:
    """Return the folders of runs in ``place``, by name, or ``place`` itself if it is one. Raise InputError if neither.

    In the place of a search by ``envkit tune`` comes the run that confirmed what it found, where it got that far, and
    in that of ``envkit submit`` the runs of its nodes.
    """
    try:
        found = [place] if (place / FILE_NAME).exists() else [*place.iterdir()]
        runs = [run for inner in found for run in _runs(inner)]
        return sorted(run for run in runs if (run / FILE_NAME).exists())
    except OSError as error:
        raise InputError(Unreadable(str(place), files.reason(error), FOLDER_OF_RUNS)) from None


def _runs(folder: Path) -> list[Path]:
    """The folder of a run, or those of the runs that are inside."""
    if record.is_search(folder):
        return [folder / record.CONFIRMATION]
    return [*folder.iterdir()] if record.is_submission(folder) else [folder]


def beginnings(found: list[Path]) -> tuple[list[Beginning], list[Unread]]:
    """The beginnings of the runs in these folders, the latest first, and the records that have none."""
    begun, unread = [], []
    for folder in found:
        try:
            event = record.first(folder)
            with record.reading(folder):
                begun.append(Beginning(folder, datetime.fromtimestamp(event["time"]), Study.from_json(event["study"])))
        except InputError as error:
            unread.append(Unread(folder, reason(error)))
    return sorted(begun, key=lambda one: one.started, reverse=True), unread


def runs(begun: list[Beginning], unread: list[Unread], wanted: Callable[[RecordedRun], bool]) -> Iterator[RecordedRun]:
    """Read the runs one by one as they are asked for; a record that can't be used is added to ``unread``."""
    for one in begun:
        try:
            with record.reading(one.folder):
                measured = bench_run.read(one.folder)
                run = RecordedRun(one.folder, one.started, conclude(measured), measured.whole_blocks)
        except InputError as error:
            unread.append(Unread(one.folder, reason(error)))
            continue
        if wanted(run):
            yield run


def entries(
    begun: list[Beginning], unread: list[Unread], wanted: Callable[[RecordedRun], bool], most: int | None = None
) -> Iterator[Entry]:
    """The same with the runs of one submission together, instead of the latest; ``most`` of each are read."""
    together: dict[Path, list[Beginning]] = {}
    submitted: dict[Path, bool] = {}
    for one in begun:
        place = one.folder.parent
        if place not in submitted:
            submitted[place] = record.is_submission(place)
        together.setdefault(place if submitted[place] else one.folder, []).append(one)
    for folder, of_one in together.items():
        found = runs(sorted(of_one, key=lambda one: natural(one.folder.name)), unread, wanted)
        if read := list(itertools.islice(found, most)):
            yield Entry(folder, read, len(of_one) if most else len(read))


def natural(name: str) -> list[tuple[int, str]]:
    """Return what sorts node2 before node10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def engines(study: Study) -> list[str]:
    return list(dict.fromkeys(arm.engine for arm in study.arms))


def comparisons(run: RecordedRun, profile: str | None) -> list[Comparison]:
    """The run's comparisons, or those of ``profile``."""
    profiles = {arm.name: arm.profile for arm in run.result.study.arms}
    return [
        comparison for comparison in run.result.comparisons if profile is None or profiles[comparison.arm] == profile
    ]


def reason(error: InputError) -> Message:
    """Return why a run can't be read. Its record is named without its folder, which the reader knows."""
    message = error.message
    if isinstance(message, Unreadable | UnusableRecord | OtherSchema):
        return message.replace(file=Path(message.file).name)
    return message
