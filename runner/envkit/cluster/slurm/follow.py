"""Wait for the jobs of a submission, and tell how they go."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from envkit.cluster.slurm.messages import CancellingLate, NotCancelled, SlurmSilent
from envkit.cluster.slurm.settings import TOGETHER
from envkit.cluster.slurm.view import View
from envkit.cluster.slurm.watch import Watch
from envkit.common.errors import InputError
from envkit.engines.slurm import client
from envkit.engines.slurm.client import Job, NoAnswer, Refused

# Slurm's controller serves the whole cluster: it is asked ever less often.
SHORTEST_S, LONGEST_S, SHARE = 1.0, 15.0, 0.1
# A job in one of these states may be about to be requeued.
DOUBTFUL = ("PREEMPTED", "NODE_FAIL", "FAILED", "UNKNOWN")
# The state of a fleet's job that was cancelled because it had not started in time. Slurm has none for it.
LATE = "LATE"


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
    seen: dict[str, Job] = {}
    places: dict[str, str] = {}  # the job's number by node
    started: set[str] = set()
    late: dict[str, Job] = {}
    began = time.monotonic()
    silent = False
    while True:
        try:
            found = {job.number: job for job in client.jobs(numbers, fleet)}
        except NoAnswer:
            if not silent:
                view.say(SlurmSilent())
            silent = True
            sleep(LONGEST_S)
            continue
        silent = False
        for job in found.values():
            if job.nodes != (seen[job.number].nodes if job.number in seen else ""):
                places |= dict.fromkeys(_names(job), job.number)
        before, seen = seen, {**{number: _forgotten(job) for number, job in seen.items()}, **found}
        started |= {job.number for job in found.values() if not job.waits}
        active = {name for name, number in places.items() if not seen[number].waits} if fleet else None
        view.show([*seen.values()], watch.look([TOGETHER] if joint and places else places, seen, active))
        if all(_is_over(job, before) for job in seen.values()):
            over = {number: _explained(job, late) for number, job in seen.items()}
            return Followed(tuple(over.values()), {name: over[number] for name, number in places.items()})
        passed_s = time.monotonic() - began
        if start_within_s is not None and passed_s >= start_within_s:
            waiting = {number: job for number, job in seen.items() if number not in started and job.waits}
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
