"""What a submission measures, as its nodes and a later ``--resume`` read it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from envkit.bench.plan import MARGIN, REFERENCE_PROFILE, Arm
from envkit.bench.record import CONFIRMATION
from envkit.bench.specification import Specification
from envkit.common import atomic
from envkit.common.errors import InputError
from envkit.engines.base import EngineOptions
from envkit.tuning.specification import TuningSpecification

FILE_NAME = "submit.json"
# What `envkit bench --specification` reads: the same that FILE_NAME has, as a file of its own.
SPECIFICATION = "specification.json"
# In a node's place, where all train together: the name of the one run's folder.
TOGETHER = "all-nodes"
# Fields that may change from one job of a submission to the next.
OF_THE_QUEUE = ("partition", "minutes", "options")


@dataclass(frozen=True)
class Settings:
    """A submission: what is measured, and the job or jobs that measure it."""

    id: str  # by which a node knows that it sees the same folder
    specification: Specification  # profiles and files in it have names that hold on every node
    python: str
    project: str
    digest: str | None  # of the image's file, as it was seen when the job was submitted
    nodes: int
    nodelist: tuple[str, ...]
    partition: str | None
    minutes: int | None  # the time limit; None: the partition's own
    options: tuple[str, ...]  # go to sbatch as they are
    fleet: bool = False  # each node of nodelist has a job of its own, which starts when it is free; else one has all
    joint: bool = False  # one run, on the job's first node, whose workers train on all nodes; else each has its own
    profiles: tuple[str, ...] = ()  # of these each node measures all that apply there; else the specification's arms
    tuning: TuningSpecification | None = None  # what the nodes search together, before each confirms what was found

    @property
    def runs(self) -> int:
        """How many runs, each with a record of its own, it takes."""
        return 1 if self.joint else self.nodes

    @property
    def by(self) -> str:
        """The command that submitted it, and that goes on with it."""
        if self.tuning:
            return "tune"
        return "matrix" if self.profiles else "fleet" if self.fleet else "submit"

    def run_in(self, place: Path) -> Path:
        """The folder of a node's run, which is in the folder of its search where there is one."""
        return place / CONFIRMATION if self.tuning else place

    @property
    def image_file(self) -> str | None:
        return self.specification.engine_options.image_file

    @property
    def folder(self) -> str | None:
        """Where a user's command runs."""
        command = self.specification.user_command
        return command.folder if command else None

    def to_json(self) -> dict[str, Any]:
        tuning = self.tuning.to_json() if self.tuning else None
        return {**asdict(self), "specification": self.specification.to_json(), "tuning": tuning}

    @property
    def sha256(self) -> str:
        """The digest of all but the fields of the queue. A node checks it before it measures."""
        what = {name: value for name, value in self.to_json().items() if name not in OF_THE_QUEUE}
        return hashlib.sha256(json.dumps(what, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Settings:
        """Raises ValueError, TypeError or KeyError for what is none."""
        if "specification" not in document:
            document = _with_specification(document)
        if not re.fullmatch(r"[0-9a-f]{8}", str(document.get("id"))):  # a part of the job's name
            raise ValueError(f"its id is {document.get('id')!r}")
        lists = {name: tuple(document.get(name, ())) for name in ("nodelist", "options", "profiles")}
        tuning = document.get("tuning")
        return Settings(**{
            **document, **lists, "specification": Specification.from_json(document["specification"]),
            "tuning": TuningSpecification.from_json(tuning) if tuning else None,
        })  # fmt: skip

    def write(self, folder: Path) -> None:
        document = self.to_json()
        for name, part in ((FILE_NAME, document), (SPECIFICATION, document["specification"])):
            atomic.write(folder / name, (json.dumps(part, indent=1) + "\n").encode(), private=True)

    @staticmethod
    def read(folder: Path) -> Settings:
        """Raises InputError where the folder holds no submission."""
        path = folder / FILE_NAME
        try:
            return Settings.from_json(json.loads(path.read_bytes()))
        except OSError as error:
            raise InputError(f"{path}: can't be read: {error.strerror}; give the folder of a submission") from None
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{path}: is not that of a submission ({error}); submit again") from None

    def command(self, folder: str, place: str) -> list[str]:
        """What measures the same as a node's run, whose record is in ``place`` of the submission's ``folder``.

        Of a tuning, what goes on with all of it: a node's part is of no use alone.
        """
        if self.tuning:
            return ["envkit", "tune", f"--resume={folder}"]
        if self.profiles:
            return ["envkit", "matrix", *self.profiles, f"--output={folder}/{place}"]
        return ["envkit", "bench", f"--specification={folder}/{SPECIFICATION}", f"--output={folder}/{place}"]


def _with_specification(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a version before specifications (2026-11) wrote, with as much of one as a report needs."""
    arms = [Arm(Path(name).stem, name, document["engine"]) for name in (REFERENCE_PROFILE, *document["profiles"])]
    margins = [word.partition("=")[2] for word in document["bench"] if word.startswith("--margin=")]
    asked = Specification(
        title=document["title"], arms=tuple(arms), budget_s=0.0, nproc=document.get("ranks", 1),
        margin=float(margins[-1]) if margins else MARGIN, engine_options=EngineOptions(sif=document["sif"]),
    )  # fmt: skip
    names = {one.name for one in fields(Settings)} - {"specification"}
    return {**{name: document[name] for name in names & document.keys()}, "specification": asked.to_json()}
