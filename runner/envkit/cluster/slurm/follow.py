"""Wait for the jobs of a submission, and show how they go.

``Watch`` looks at what the nodes have recorded so far, without reading anything twice. ``View`` shows it on stderr: a
table of nodes on a terminal, plain lines elsewhere.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from envkit.bench import record
from envkit.bench.events import EVENTS, Timed
from envkit.bench.study import Study
from envkit.cluster.slurm import node_status
from envkit.cluster.slurm.messages import (
    CancellingLate,
    InState,
    JobIs,
    JobsAre,
    JobWaits,
    NotCancelled,
    SlurmSilent,
)
from envkit.cluster.slurm.settings import TOGETHER
from envkit.common import codec, documents, files
from envkit.common.errors import BAD_INPUT, FAILED, INTERRUPTED, MEASURED, MISFITS, InputError
from envkit.common.live_view import LiveView, minutes
from envkit.common.plain_table import plain_table
from envkit.engines.slurm import client
from envkit.engines.slurm.client import Job, NoAnswer, Refused
from envkit.messages import Message
from envkit.rendering import text

# Slurm's controller serves the whole cluster: it is asked ever less often.
SHORTEST_S, LONGEST_S, SHARE = 1.0, 15.0, 0.1
# A job in one of these states may be about to be requeued.
DOUBTFUL = ("PREEMPTED", "NODE_FAIL", "FAILED", "UNKNOWN")
# The state of a fleet's job that was cancelled because it had not started in time. Slurm has none for it.
LATE = "LATE"
# The state of a node whose part is done, and of those whose part ended, by its exit status.
DONE = "measured"
ENDED = {MEASURED: DONE, FAILED: "failed", BAD_INPUT: "refused", INTERRUPTED: "stopped"}
# So many nodes fit on a screen; of more there are numbers.
MOST_NODES = 20


@dataclass(frozen=True)
class Followed:
    """Jobs that have ended, one or that of each node of a fleet; by each node that they had at any time, its own."""

    jobs: tuple[Job, ...]
    nodes: dict[str, Job] = field(default_factory=dict)

    @property
    def states(self) -> str:
        return ", ".join(sorted({job.state for job in self.jobs}))


class NotStarted(Exception):
    """Jobs were given so long to start, and all of them wait still."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.why)
        self.job = job


def follow(
    numbers: str,
    folder: Path,
    view: View,
    joint: bool = False,
    fleet: bool = False,
    start_within_s: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Followed:
    """Return when all jobs have ended. Raises NotStarted, with all of them still waiting.

    Where some jobs of a ``fleet`` have started in time, those that have not are cancelled. ``numbers`` is what
    ``client.submit`` or ``client.submit_each`` returned. In a ``joint`` training there is one run only.
    """
    watch = Watch(folder)
    latest: dict[str, Job] = {}
    places: dict[str, str] = {}  # the job's number by node
    started: set[str] = set()
    late: dict[str, Job] = {}
    began = time.monotonic()
    silent = False
    while True:
        try:
            answered = {job.number: job for job in client.jobs(numbers, fleet)}
        except NoAnswer:
            if not silent:
                view.say(SlurmSilent())
            silent = True
            sleep(LONGEST_S)
            continue
        silent = False
        for job in answered.values():
            if job.nodes != (latest[job.number].nodes if job.number in latest else ""):
                places |= dict.fromkeys(_names(job), job.number)
        before, latest = latest, {**{number: _forgotten(job) for number, job in latest.items()}, **answered}
        started |= {job.number for job in answered.values() if not job.waits}
        active = {name for name, number in places.items() if not latest[number].waits} if fleet else None
        view.show([*latest.values()], watch.look([TOGETHER] if joint and places else places, latest, active))
        if all(_is_over(job, before) for job in latest.values()):
            over = {number: _explained(job, late) for number, job in latest.items()}
            return Followed(tuple(over.values()), {name: over[number] for name, number in places.items()})
        passed_s = time.monotonic() - began
        if start_within_s is not None and passed_s >= start_within_s:
            waiting = {number: job for number, job in latest.items() if number not in started and job.waits}
            if waiting and not started:
                raise NotStarted(next(iter(waiting.values())))
            if new := waiting.keys() - late.keys():
                view.say(CancellingLate(len(new)))
            late = {**waiting, **late}
            _give_up(waiting, view)
        sleep(min(LONGEST_S, max(SHORTEST_S, SHARE * passed_s)))


def _is_over(job: Job, before: dict[str, Job]) -> bool:
    earlier = before.get(job.number)
    return job.ended and (job.state not in DOUBTFUL or (earlier is not None and earlier.state == job.state))


def _forgotten(job: Job) -> Job:
    """A job that Slurm tells nothing more of, which it does some minutes after its end."""
    return job if job.ended else replace(job, state=client.UNKNOWN, reason="")


def _give_up(waiting: dict[str, Job], view: View) -> None:
    """Cancel these jobs. The caller cancels those again that go on waiting."""
    try:
        if waiting:
            client.cancel(",".join(waiting))
    except (Refused, NoAnswer) as error:
        view.say(NotCancelled(error.message))


def _explained(job: Job, late: dict[str, Job]) -> Job:
    """With why it did not start, where it was cancelled for that."""
    if job.number in late and job.state == "CANCELLED":
        return replace(job, state=LATE, reason=late[job.number].why)
    return job


def _names(job: Job) -> Sequence[str]:
    try:
        return client.hosts(job.nodes)
    except (Refused, InputError):
        return []


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
                wanted |= {*node_status.begun(self._folder)}
        for name in sorted(wanted):
            sight = self.nodes.setdefault(name, Sight())
            if sight.state != DONE and (active is None or name in active):
                with contextlib.suppress(OSError):
                    _update(sight, self._folder / name, jobs)
        return self.nodes


def _update(sight: Sight, place: Path, jobs: Collection[str]) -> None:
    outcome = node_status.read(place)
    if outcome is not None and (outcome.job in jobs or outcome.status == MEASURED):
        sight.state = "measuring" if outcome.status is None else ENDED.get(outcome.status, "failed")
    path = place / record.FILE_NAME
    if path.exists():
        with files.opened(path) as file:
            file.seek(sight.read)
            new = file.read()
        complete_lines = new[: new.rfind(b"\n") + 1]
        sight.read += len(complete_lines)
        for line in complete_lines.splitlines():
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


class View(LiveView):
    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._said: set[str] = set()
        self._job_said = ""

    def show(self, jobs: Sequence[Job], nodes: Mapping[str, Sight]) -> None:
        if self.quiet:
            return
        line = text(of_jobs(jobs))
        if self.live:
            self.live.update(Group(Text(line), *_table(nodes)), refresh=True)
            return
        if line != self._job_said:
            self._job_said = line
            print(line, file=sys.stderr, flush=True)
        if len(nodes) > MOST_NODES:  # the line has how many are in which state
            return
        for name, sight in nodes.items():
            node_line = of_node(name, sight)
            if sight.state != "waiting" and node_line not in self._said:
                self._said.add(node_line)
                print(node_line, file=sys.stderr, flush=True)

    def say(self, message: Message) -> None:
        """Print a line that stays."""
        if self.live:
            self.live.console.print(Text(text(message)))
        elif not self.quiet:
            print(text(message), file=sys.stderr, flush=True)


def of_jobs(jobs: Sequence[Job]) -> Message:
    """Return how a job goes, or how many jobs of a fleet are in which state."""
    if len(jobs) == 1:
        return of_job(jobs[0])
    states = Counter(_state(job) for job in jobs)
    reasons = Counter(job.why for job in jobs if job.waits).most_common(1)
    counts = tuple(InState(count, state) for state, count in states.items())
    return JobsAre(len(jobs), counts, reasons[0][0] if reasons else None)


def of_job(job: Job) -> Message:
    """Return why a job waits, or its state."""
    return JobWaits(job.number, job.why) if job.waits else JobIs(job.number, _state(job), job.nodes)


def _state(job: Job) -> str:
    return job.state.lower().replace("_", " ")


def of_node(name: str, sight: Sight) -> str:
    """A node that measures is only counted: its blocks come too often for lines."""
    if sight.state == "measuring":
        return f"{name}: measuring"
    return f"{name}: {sight.state} ({sight.samples} samples)"


def _table(nodes: Mapping[str, Sight]) -> list[Table | Text]:
    if not nodes:
        return []
    if len(nodes) > MOST_NODES:
        states = [sight.state for sight in nodes.values()]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        samples = sum(sight.samples for sight in nodes.values())
        return [Text(f"{len(nodes)} nodes: {counts}; {samples:,} samples")]
    figures = ("blocks", "samples", "spent")
    table = plain_table(("node", "state", *figures), right=figures)
    for name, sight in nodes.items():
        budget = f" of {minutes(sight.budget_s)}" if sight.budget_s else ""
        spent = f"{minutes(sight.spent_s)}{budget}"
        table.add_row(name, sight.state, str(len(sight.blocks)), str(sight.samples), spent)
    return [table]
