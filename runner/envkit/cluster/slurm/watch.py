"""Look at what the nodes of a job have recorded so far, without reading anything twice."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from envkit.bench import record
from envkit.bench.events import EVENTS, Timed
from envkit.bench.study import Study
from envkit.cluster.slurm import node_status
from envkit.common import codec, documents, files
from envkit.common.errors import BAD_INPUT, FAILED, INTERRUPTED, MEASURED, MISFITS

DONE = "measured"
ENDED = {MEASURED: DONE, FAILED: "failed", BAD_INPUT: "refused", INTERRUPTED: "stopped"}


@dataclass
class Sight:
    """The state of one node: its ``samples`` and their blocks, the seconds of all workers, and how it stands."""

    state: str = "waiting"
    samples: int = 0
    blocks: set[int] = field(default_factory=set)
    spent_s: float = 0.0
    budget_s: float = 0.0
    read: int = 0  # bytes of the record


class Watch:
    """Nodes come into sight as their folders do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.nodes: dict[str, Sight] = {}

    def look(
        self, names: Collection[str], jobs: Collection[str], active: Collection[str] | None = None
    ) -> dict[str, Sight]:
        """``names`` are the nodes as far as they are known, and ``jobs`` the numbers of what they are in.

        Files are opened for the ``active`` ones only, as of thousands of nodes most may wait. Without these it is all,
        and all that have a folder.
        """
        wanted = {*names}
        if active is None:
            with contextlib.suppress(OSError):  # a file system of the cluster's that does not answer now
                wanted |= {*node_status.seen(self._folder)}
        for name in sorted(wanted):
            sight = self.nodes.setdefault(name, Sight())
            if sight.state != DONE and (active is None or name in active):
                with contextlib.suppress(OSError):
                    _update(sight, self._folder / name, jobs)
        return self.nodes


def _update(sight: Sight, place: Path, jobs: Collection[str]) -> None:
    found = node_status.read(place)
    if found is not None and (found.job in jobs or found.status == MEASURED):
        sight.state = "measuring" if found.status is None else ENDED.get(found.status, "failed")
    path = place / record.FILE_NAME
    if path.exists():
        with files.opened(path) as file:
            file.seek(sight.read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        sight.read += len(whole)
        for line in whole.splitlines():
            _count(sight, line)


def _count(sight: Sight, line: bytes) -> None:
    try:
        event = documents.parse(line)
        codec.require(event, EVENTS.get(event["event"], Timed))
        sight.spent_s += event.get("worker_seconds", 0.0)
        if event["event"] == "run":
            study = Study.from_json(event["study"])
            sight.budget_s = 0.0 if study.epochs or study.stopping.blocks else study.stopping.budget_s
        elif event["event"] == "tune":
            sight.budget_s = float(event["settings"]["budget_s"])
        elif event["event"] in ("sample", "trial"):
            sight.samples += 1
            sight.blocks.add(event["block"] if event["event"] == "sample" else event["round"])
    except MISFITS:
        return  # the report says what is wrong with a record
