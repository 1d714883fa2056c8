"""Collect what each node of a submission measured, or why it did not, from the files that the nodes left."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from envkit.analysis.recorded_runs import natural
from envkit.analysis.result import Result, conclude
from envkit.bench import record
from envkit.bench.decide import NOT_IN_EFFECT
from envkit.bench.messages import NotInEffect
from envkit.bench.problems import problem_of
from envkit.bench.run import read
from envkit.cluster import type_verdict
from envkit.cluster.slurm import node_preflight, node_status
from envkit.cluster.slurm.follow import LATE, Followed
from envkit.cluster.slurm.messages import (
    MEANINGS,
    NOT_BEGUN,
    NOT_CONFIRMED,
    NOT_ENDED,
    JobEnded,
    JobEndedAs,
    JobForgotten,
    LeftNothing,
    NotDone,
    OutOfService,
    PartFailed,
    WorkerFailed,
)
from envkit.cluster.slurm.node_preflight import RollCall
from envkit.cluster.slurm.node_status import Outcome
from envkit.cluster.slurm.settings import TOGETHER, Settings
from envkit.cluster.type_verdict import TypeVerdict
from envkit.common.errors import BAD_INPUT, FAILED, INTERRUPTED, MEASURED, InputError
from envkit.common.messages import Clauses
from envkit.engines.slurm.client import UNKNOWN, Job
from envkit.messages import Message
from envkit.report import learning
from envkit.stats.verdict import Verdict

# How a node's part ended.
DONE, REFUSED, WORKER_FAILED, STOPPED, LOST, ABSENT = "measured", "refused", "failed", "stopped", "lost", "absent"
NOT_SHARED, NOT_REACHED = "not shared", str(Verdict.NOT_REACHED)
# The states of jobs that have run, and came to an end of their own.
RAN = ("COMPLETED", "FAILED", "TIMEOUT")


@dataclass(frozen=True)
class NodeResult:
    """``problem`` is without the node's name, and a text if the node wrote it; ``result`` is there where anything was
    recorded.

    It is never there for a node of a fleet, whose report reads the records itself, and keeps less of them.
    """

    name: str
    state: str
    problem: Message | None = None
    result: Result | None = None

    @property
    def settled(self) -> bool:
        """Return whether going on would add nothing."""
        return self.state in (DONE, NOT_IN_EFFECT, NOT_REACHED)

    @property
    def samples(self) -> int:
        return len(self.result.samples) if self.result else 0

    def to_json(self) -> dict[str, object]:
        result = self.result.to_json() if self.result else None
        problem = self.problem and self.problem.to_json()
        return {"node": self.name, "state": self.state, "problem": problem, "result": result}


def collect(
    folder: Path, settings: Settings, followed: Followed | None, down: Mapping[str, str] | None = None
) -> list[NodeResult]:
    """Return a result for each node that has a record in ``folder``, and for those of the jobs that were ``followed``.

    ``down`` has Slurm's words for nodes that are out of service, which may have had no job. Without jobs the result is
    of all nodes that have begun.
    """
    rolls: dict[str, RollCall] = {}
    nodes: dict[str, Job] = {}
    for job in followed.jobs if followed else ():
        if (called := node_preflight.read(folder, job.number)) is not None:
            rolls[job.number] = called
            nodes |= dict.fromkeys(called.times, job)
    nodes |= followed.nodes if followed else {}
    if settings.joint and followed:
        nodes = _joint(folder, settings, nodes, rolls, followed.jobs[0])
    begun = node_status.begun(folder)
    if settings.joint and TOGETHER in begun and followed is None:
        begun = [TOGETHER]  # what single nodes said to earlier jobs is over
    heard_of = {*rolls, *(outcome.job for name in begun if (outcome := node_status.read(folder / name)))}
    # a node of a fleet that has refused is no other's trouble; one of a job may have been of an earlier job
    started = [name for name in begun if followed is None or settings.fleet or record.is_begun(folder / name)]
    results = []
    for name in sorted({*nodes, *started, *(down or {})}, key=natural):
        node_job = nodes.get(name)
        if node_job and node_job.state in RAN and node_job.number not in heard_of:
            results.append(
                NodeResult(name, NOT_SHARED, LeftNothing(node_job.number, node_preflight.not_shared(folder)))
            )
        else:
            called = rolls.get(node_job.number) if node_job else None
            results.append(_result(folder, name, settings, node_job, called, (down or {}).get(name)))
    return results


def _joint(
    folder: Path, settings: Settings, nodes: Mapping[str, Job], rolls: Mapping[str, RollCall], job: Job
) -> dict[str, Job]:
    """Return the nodes that refused to take part, or else all of them together."""
    called = rolls.get(job.number)
    refusing = {}
    for name in nodes:
        outcome = node_status.read(folder / name)
        if (outcome and outcome.job == job.number) or (called and called.problem(name, settings, folder)):
            refusing[name] = job
    return refusing or {TOGETHER: job}


def _result(
    folder: Path, name: str, settings: Settings, job: Job | None, called: RollCall | None, down: str | None
) -> NodeResult:
    place = folder / name
    run = settings.run_in(place)
    begun = record.is_begun(run)
    ended = node_status.ended(run)
    result: Result | None = None
    try:
        if begun and not settings.fleet:
            with record.reading(run):
                result = conclude(read(run))
    except InputError as error:
        return NodeResult(name, WORKER_FAILED, error.message)
    if ended is not None:
        return NodeResult(name, *_measured(settings, ended, result), result)
    outcome = node_status.read(place)
    if outcome is not None and (job is None or outcome.job == job.number):
        return NodeResult(name, *_ended(folder, place, outcome, result, job, down), result)
    absent = called.problem(name, settings, folder) if called else None
    if absent:
        return NodeResult(name, REFUSED, absent, result)
    return NodeResult(name, LOST if begun else ABSENT, NotDone(NOT_BEGUN, _why(folder, job, down)), result)


def _measured(settings: Settings, ended: str, result: Result | None) -> tuple[str, Message | None]:
    """Return what came of a run that has come to its end, and what is wrong with it, if anything is."""
    missed = [missing.arm for missing in result.not_in_effect] if result else []
    if ended == NOT_IN_EFFECT or missed:
        compared = [arm.name for arm in settings.study.arms[1:]]
        return NOT_IN_EFFECT, NotInEffect(tuple(missed or compared))
    if result is not None and result.not_reached:
        return NOT_REACHED, Clauses(
            tuple(learning.never(arm, str(result.study.until), result.study.epochs) for arm in result.not_reached)
        )
    return DONE, None


def _ended(
    folder: Path, place: Path, outcome: Outcome, result: Result | None, job: Job | None, down: str | None
) -> tuple[str, Message]:
    """Return how a node's part ended that has not come to the end of its run, and why."""
    if outcome.status is None:
        cause = _why(folder, job, down)
        return LOST, NotDone(NOT_CONFIRMED if outcome.searched else NOT_ENDED, cause)
    if outcome.status == FAILED:
        return WORKER_FAILED, _failure(result, place)
    states = {BAD_INPUT: REFUSED, INTERRUPTED: STOPPED}
    problem = outcome.problem or PartFailed(str(place / node_status.LOG), outcome.status)
    return states.get(outcome.status, WORKER_FAILED), problem


def _failure(result: Result | None, place: Path) -> Message:
    if result is None or not result.failures:
        return PartFailed(str(place / node_status.LOG))
    last = result.failures[-1]
    printed = last.stderr.strip().splitlines()
    return WorkerFailed(last.block + 1, last.arm, problem_of(last), printed[-1] if printed else None)


def _why(folder: Path, job: Job | None, down: str | None) -> Message:
    """Return what Slurm knows of the end of a node's job."""
    if down:
        return OutOfService(down)
    if job is None or job.state == UNKNOWN:
        return JobForgotten()
    reason = job.reason if job.reason not in ("", "None") else None
    if job.state in MEANINGS:
        return JobEnded(MEANINGS[job.state], reason)
    return JobEndedAs(job.number, job.state, str(folder / f"slurm-{job.number}.out"), reason)


def may_come(results: Sequence[NodeResult], followed: Followed) -> bool:
    """Return whether a job has run on a node of which nothing is in sight: its files may need some time yet."""
    of_all = {TOGETHER: followed.jobs[0], **followed.nodes}
    absent = [of_all.get(result.name) for result in results if result.state in (ABSENT, NOT_SHARED)]
    return any(job is None or job.state not in ("CANCELLED", "DEADLINE", LATE) for job in absent)


def in_doubt(results: Sequence[NodeResult]) -> Collection[str]:
    """The nodes that have not said how they ended: they may be down."""
    return {result.name for result in results if result.state in (ABSENT, LOST, NOT_SHARED)}


def status(results: Sequence[NodeResult], wanted: int) -> int:
    """The exit status: 0 where ``wanted`` nodes measured, 2 where one refused what it was given, else 1."""
    if sum(result.state == DONE for result in results) >= wanted:
        return MEASURED
    return BAD_INPUT if any(result.state in (REFUSED, NOT_SHARED) for result in results) else FAILED


def verdict(folder: Path, settings: Settings, results: Sequence[NodeResult]) -> TypeVerdict | None:
    """Return the verdict of the runs of several nodes, or of a matrix; None if there are too few blocks."""
    places = {result.name: settings.run_in(folder / result.name) for result in results if result.result}
    if not places or settings.joint or (settings.runs == 1 and not settings.profiles):
        return None
    return type_verdict.find(places, settings.study.stopping.margin)


def document(
    folder: Path, settings: Settings, followed: Followed | None, results: Sequence[NodeResult]
) -> dict[str, object]:
    """Return what was found, for scripts."""
    return {
        "record": str(folder),
        "jobs": [asdict(job) for job in followed.jobs] if followed else [],
        "settings": settings.to_json(),
        "nodes": [result.to_json() for result in results],
        "verdict": conclusion.to_json() if (conclusion := verdict(folder, settings, results)) else None,
    }
