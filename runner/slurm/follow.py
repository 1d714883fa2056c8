"""Wait for a job, and tell how it goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runner.errors import InputError
from runner.slurm import client
from runner.slurm.client import Job, NoAnswer, Refused
from runner.slurm.view import View
from runner.slurm.watch import Watch

# Slurm's controller serves the whole cluster: it is asked ever less often.
SHORTEST_S, LONGEST_S, SHARE = 1.0, 15.0, 0.1
# A job in one of these states may be about to be requeued.
DOUBTFUL = ("PREEMPTED", "NODE_FAIL", "FAILED", "UNKNOWN")
SILENCE = "Slurm does not answer now; the job goes on, and this waits"


@dataclass(frozen=True)
class Followed:
    """A job that has ended, and all nodes that it had at any time."""

    job: Job
    nodes: list[str]


class NotStarted(Exception):
    """The job was given so long to start, and waits still."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.why)
        self.job = job


def follow(
    number: str,
    folder: Path,
    view: View,
    start_within_s: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Followed:
    """Return when the job has ended. Raises NotStarted, with the job still waiting."""
    watch = Watch(folder, number)
    nodes: list[str] = []
    began = time.monotonic()
    started = silent = False
    before = short = ""
    while True:
        try:
            job = client.job(number)
            if job.nodes != short:
                short = job.nodes
                nodes += [name for name in _names(job) if name not in nodes]
        except NoAnswer:
            if not silent:
                view.say(SILENCE)
            silent = True
            sleep(LONGEST_S)
            continue
        silent = False
        started = started or not job.waits
        view.show(job, watch.look(nodes))
        if job.ended and (job.state not in DOUBTFUL or job.state == before):
            return Followed(job, nodes)
        before = job.state
        passed_s = time.monotonic() - began
        if not started and start_within_s is not None and passed_s >= start_within_s:
            raise NotStarted(job)
        sleep(min(LONGEST_S, max(SHORTEST_S, SHARE * passed_s)))


def _names(job: Job) -> list[str]:
    try:
        return client.hosts(job.nodes)
    except (Refused, InputError):
        return []
