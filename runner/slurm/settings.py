"""What a submission measures, as its nodes and a later ``--resume`` read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner import atomic
from runner.errors import InputError

FILE_NAME = "submit.json"
# In a node's place, where all train together: the name of the one run's folder.
TOGETHER = "all-nodes"


@dataclass(frozen=True)
class Settings:
    """``bench`` are the options of ``runner bench``; profiles and files in it have names that hold on every node.

    ``id`` is the submission's own, by which a node knows that it sees the same folder. ``digest`` is that of the SIF
    as it was seen when the job was submitted. ``folder`` is where a command of the user's own runs. ``minutes`` is the
    time limit, None for the partition's own. ``options`` go to sbatch as they are. In a ``fleet`` each node of
    ``nodelist`` has a job of its own, which starts when that node is free; else all are in one job. With ``joint``
    there is one run, on the job's first node, whose workers train on all nodes together; else each has its own run.
    ``ranks`` train on each node.
    """

    id: str
    title: str
    profiles: tuple[str, ...]
    engine: str
    bench: tuple[str, ...]
    python: str
    project: str
    folder: str | None
    sif: str | None
    digest: str | None
    force: bool
    nodes: int
    nodelist: tuple[str, ...]
    partition: str | None
    minutes: int | None
    options: tuple[str, ...]
    fleet: bool = False
    joint: bool = False
    ranks: int = 1

    @property
    def runs(self) -> int:
        """How many runs, each with a record of its own, it takes."""
        return 1 if self.joint else self.nodes

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Settings:
        lists = {name: tuple(document[name]) for name in ("profiles", "bench", "nodelist", "options")}
        return Settings(**{**document, **lists})

    def write(self, folder: Path) -> None:
        atomic.write(folder / FILE_NAME, (json.dumps(self.to_json(), indent=1) + "\n").encode())

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

    def command(self, output: str) -> list[str]:
        """What a node's run is started with, after ``runner``."""
        together = [f"--nodes={self.nodes}"] if self.joint else []
        return ["bench", *self.profiles, f"--engine={self.engine}", *together, *self.bench, f"--output={output}"]
