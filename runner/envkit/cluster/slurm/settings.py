"""The settings of a submission, as its nodes and a later ``--resume`` read them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from envkit.bench.record import CONFIRMATION
from envkit.bench.study import Study, require_workloads
from envkit.cluster.slurm.messages import GIVE_SUBMISSION, InvalidSubmission
from envkit.common import atomic, codec, documents, files
from envkit.common.errors import InputError
from envkit.common.file_messages import OtherType
from envkit.common.messages import OtherSchema
from envkit.messages import message_of
from envkit.tuning.study import TuningStudy

FILE_NAME = "submit.json"
SCHEMA = 2
# The digest of the file's keys and their types (tests/cli/test_other_schema.py). It changes with the number.
SHAPE = "745bcc2a18bf07b8"
# In a node's place, where all train together: the name of the one run's folder.
TOGETHER = "all-nodes"
# Fields that may change from one job of a submission to the next.
OF_THE_QUEUE = ("partition", "minutes", "options")


@dataclass(frozen=True)
class Settings:
    """A submission: what is measured, and the job or jobs that measure it."""

    id: str  # by which a node knows that it sees the same folder
    study: Study  # profiles and files in it have names that hold on every node
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
    profiles: tuple[str, ...] = ()  # of these each node measures all that apply there; else the study's arms
    tuning: TuningStudy | None = None  # what the nodes search together, before each confirms what was found

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
        return self.study.engine_options.image_file

    @property
    def folder(self) -> str | None:
        """Where a user's command runs."""
        command = self.study.user_command
        return command.folder if command else None

    def to_json(self) -> dict[str, object]:
        tuning = self.tuning.to_json() if self.tuning else None
        return {**asdict(self), "study": self.study.to_json(), "tuning": tuning}

    @property
    def sha256(self) -> str:
        """The digest of all but the fields of the queue. A node checks it before it measures."""
        kept_fields = {name: value for name, value in self.to_json().items() if name not in OF_THE_QUEUE}
        return hashlib.sha256(json.dumps(kept_fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @staticmethod
    def from_json(document: Mapping[str, object]) -> Settings:
        """Parse a document. Raise ValueError, TypeError or KeyError if it is invalid."""
        if not re.fullmatch(r"[0-9a-f]{8}", str(document.get("id"))):  # a part of the job's name
            raise ValueError(f"id={document.get('id')!r}")
        names = {field.name for field in fields(Settings)}
        if unknown := document.keys() ^ names:
            raise codec.Misfit(OtherType(min(unknown)))
        study, tuning = document["study"], document["tuning"]
        if not isinstance(study, Mapping) or not isinstance(tuning, Mapping | None):
            raise codec.Misfit(OtherType("tuning" if isinstance(study, Mapping) else "study"))
        parsed = Study.from_json(study)
        require_workloads(parsed)
        typed = {"study": parsed, "tuning": TuningStudy.from_json(tuning) if tuning else None}
        return codec.parse({**document, **typed}, Settings)

    def write(self, folder: Path) -> None:
        """Write the file that the nodes read."""
        document = {"schema": SCHEMA, **self.to_json()}
        atomic.write(folder / FILE_NAME, (json.dumps(document, indent=1) + "\n").encode(), private=True)

    @staticmethod
    def read(folder: Path) -> Settings:
        """Read the file of the submission in ``folder``. Raise InputError if it is missing, or of another schema."""
        path = folder / FILE_NAME
        try:
            document = documents.parse_strictly(files.content(path, fix=GIVE_SUBMISSION))
            schema = document.pop("schema")
            if type(schema) is int and schema != SCHEMA:
                raise InputError(OtherSchema.of(str(path), "submission", schema, SCHEMA))
            return Settings.from_json(document)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(InvalidSubmission(str(path), message_of(error))) from None

    def command(self, folder: str, place: str) -> list[str]:
        """Return the command that a node's record names. The record is in ``place`` of the submission's ``folder``.

        A matrix can be measured again on one node. Otherwise the command goes on with the whole submission.
        """
        if self.profiles:
            return ["envkit", "matrix", *self.profiles, f"--output={folder}/{place}"]
        return ["envkit", self.by, f"--resume={folder}"]
