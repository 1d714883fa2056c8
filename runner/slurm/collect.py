"""What each node of a submission measured, or why it did not: from the files that the nodes have left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner import record
from runner.errors import BAD_INPUT, FAILED, INTERRUPTED, MEASURED, InputError
from runner.measure import NOT_IN_EFFECT
from runner.slurm import outcome, roll_call
from runner.slurm.client import UNKNOWN, Job
from runner.slurm.outcome import Outcome
from runner.slurm.settings import Settings
from runner.summary import Summary, summarise

# How a node's part ended.
DONE, REFUSED, WORKER_FAILED, STOPPED, LOST, ABSENT = "measured", "refused", "failed", "stopped", "lost", "absent"
# What a job's state means for a node that did not say how it ended.
MEANINGS = {
    "TIMEOUT": "the job's time limit ended it",
    "NODE_FAIL": "the node died",
    "CANCELLED": "the job was cancelled",
    "PREEMPTED": "another job took its place",
    "OUT_OF_MEMORY": "the job used more memory than it had",
    "BOOT_FAIL": "the node did not come up",
    "DEADLINE": "the job's deadline ended it",
}


@dataclass(frozen=True)
class NodeResult:
    """``problem`` is one line, without the node's name; ``summary`` is there where anything was recorded."""

    name: str
    state: str
    problem: str | None = None
    summary: Summary | None = None

    @property
    def settled(self) -> bool:
        """Whether going on would add nothing."""
        return self.state in (DONE, NOT_IN_EFFECT)

    @property
    def samples(self) -> int:
        return len(self.summary.samples) if self.summary else 0

    def to_json(self) -> dict[str, Any]:
        summary = self.summary.to_json() if self.summary else None
        return {"node": self.name, "state": self.state, "problem": self.problem, "summary": summary}


def collect(
    folder: Path, settings: Settings, job: Job | None, names: Iterable[str] = (), down: dict[str, str] | None = None
) -> list[NodeResult]:
    """A result for each node that has a record in ``folder``, and for those of the ``job`` in ``names``.

    ``down`` says what Slurm says of nodes that are out of service. Without a job it is all nodes that have begun.
    """
    called = roll_call.read(folder, job.number) if job else None
    in_job = {*names, *(called.times if called else ())}
    seen = [name for name in nodes_seen(folder) if job is None or outcome.is_begun(folder / name)]
    known = sorted({*in_job, *seen}, key=_natural)
    return [
        _result(folder, name, settings, job if name in in_job else None, called, (down or {}).get(name))
        for name in known
    ]


def nodes_seen(folder: Path) -> list[str]:
    """The nodes that have begun there at any time."""
    return [path.name for path in folder.iterdir() if (path / outcome.NAME).exists()]


def _natural(name: str) -> list[tuple[int, str]]:
    """node2 before node10."""
    words: list[tuple[int, str]] = []
    for letter in name:
        if letter.isdigit() and words and words[-1][1] == "":
            words[-1] = (words[-1][0] * 10 + int(letter), "")
        else:
            words.append((int(letter), "") if letter.isdigit() else (0, letter))
    return words


def _result(
    folder: Path, name: str, settings: Settings, job: Job | None, called: roll_call.RollCall | None, down: str | None
) -> NodeResult:
    place = folder / name
    try:
        summary = _summary(place)
    except InputError as error:
        return NodeResult(name, WORKER_FAILED, str(error))
    if outcome.is_settled(place) and summary is not None:
        if summary.ended == NOT_IN_EFFECT or summary.not_in_effect:
            return NodeResult(name, NOT_IN_EFFECT, _not_in_effect(summary), summary)
        return NodeResult(name, DONE, None, summary)
    found = outcome.read(place)
    if found is not None and (job is None or found.job == job.number):
        return NodeResult(name, *_ended(folder, place, found, summary, job, down), summary)
    absent = called.problem(name, settings, folder) if called else None
    if absent:
        return NodeResult(name, REFUSED, absent, summary)
    return NodeResult(name, LOST if summary else ABSENT, f"did not begin: {_why(folder, job, down)}", summary)


def _ended(
    folder: Path, place: Path, found: Outcome, summary: Summary | None, job: Job | None, down: str | None
) -> tuple[str, str]:
    """How the node's part ended that has not come to the end of its run, and why."""
    if found.status is None:
        return LOST, f"did not end by itself: {_why(folder, job, down)}"
    if found.status == FAILED:
        return WORKER_FAILED, _failure(summary, place)
    states = {BAD_INPUT: REFUSED, INTERRUPTED: STOPPED}
    problem = found.problem or f"ended with exit status {found.status}; see {place / outcome.LOG}"
    return states.get(found.status, WORKER_FAILED), problem


def _summary(place: Path) -> Summary | None:
    """Raises InputError for a record that can't be used."""
    if not outcome.is_begun(place):
        return None
    events = record.read(place)
    with record.understood(place):
        return summarise(events)


def _not_in_effect(summary: Summary) -> str:
    return f"not in effect: {', '.join(one.arm for one in summary.not_in_effect)}"


def _failure(summary: Summary | None, place: Path) -> str:
    if summary is None or not summary.failures:
        return f"failed; see {place / outcome.LOG}"
    last = summary.failures[-1]
    said = (last["stderr"].strip().splitlines() or [""])[-1]
    return f"block {last['block'] + 1}, {last['arm']}: the worker {last['problem']}{f': {said}' if said else ''}"


def _why(folder: Path, job: Job | None, down: str | None) -> str:
    if down:
        return f"Slurm says that the node is {down}"
    if job is None or job.state == UNKNOWN:
        return "its job has ended, and Slurm remembers no more of it"
    reason = f" ({job.reason})" if job.reason not in ("", "None") else ""
    if job.state in MEANINGS:
        return f"{MEANINGS[job.state]}{reason}"
    return f"its job {job.number} ended as {job.state}{reason}; see {folder}/slurm-{job.number}.out"


def not_shared(results: Sequence[NodeResult], called: roll_call.RollCall | None, job: Job) -> bool:
    """Whether the job ran, and nothing of it came back to the folder."""
    ran = job.state in ("COMPLETED", "FAILED", "TIMEOUT")
    return ran and called is None and all(one.state in (ABSENT, LOST) for one in results)


def status(results: Sequence[NodeResult], wanted: int) -> int:
    """The exit status: 0 where ``wanted`` nodes measured, 2 where one refused what it was given, else 1."""
    if sum(one.state == DONE for one in results) >= wanted:
        return MEASURED
    return BAD_INPUT if any(one.state == REFUSED for one in results) else FAILED
