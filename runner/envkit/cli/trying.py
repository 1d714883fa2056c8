"""Try arms before a run begins: one of many that fails, or is not in effect, would end all of it."""

from __future__ import annotations

from envkit.bench import private_values, requests, room
from envkit.bench.arms import Arm
from envkit.bench.job import Job
from envkit.bench.parse_sample import parse_sample, worker_problem
from envkit.checks.sample_effect import check_sample
from envkit.cli.workload_messages import TrialFailed, TrialNotInEffect
from envkit.common.progress import Progress
from envkit.messages import Message
from envkit.report import observed


def problems(job: Job, quiet: bool) -> dict[str, Message]:
    """Return why arms can't be measured, by their names. Each worker trains for one step, a user's command to its end.

    If the reference fails, none of the others is to blame, and nothing is returned: the run will end with that. Raise
    TooShort as soon as it is known that the budget has far too little room for those that are left.
    """
    room.require(job.study)
    reasons: dict[str, Message] = {}
    took_s: list[float] = []
    with Progress(0.0, quiet=quiet) as progress:
        for arm in job.study.arms:
            progress.start("trying once", arm.name, 0.0)
            reason, seconds = _problem(job, arm)
            took_s.append(seconds)
            if reason is not None and arm == job.study.reference:
                return {}
            if reason is not None:
                reasons[arm.name] = reason
            if len(took_s) > 1:
                room.require(job.study, took_s, len(job.study.arms) - len(reasons))
    return reasons


def _problem(job: Job, arm: Arm) -> tuple[Message | None, float]:
    """Return why an arm can't be measured, by its shortest worker, and how long that took (seconds)."""
    reason, seconds = _worker_problem(job, arm)
    kept, inherited = job.context.kept, job.context.inherited
    return None if reason is None else private_values.of_message(reason, kept, inherited), seconds


def _worker_problem(job: Job, arm: Arm) -> tuple[Message | None, float]:
    outcome = job.context.engines[arm.engine].run(job.launch(arm, requests.of_first(job.study, arm)))
    document, problem = parse_sample(outcome, (), job.study.options)
    if document is None:
        assert problem is not None, "there is a sample or a problem"
        printed = next(iter(outcome.stderr_tail.strip().splitlines()[-1:]), None)
        failed = worker_problem(outcome)
        is_quoted = printed is not None and failed is not None and _quotes(failed, printed)
        return TrialFailed(job.explained(problem), None if is_quoted else printed), outcome.seconds
    checks = check_sample(job.environments[arm.name], {**document, "stderr": outcome.stderr_tail}, job.given)
    missed = next((setting for setting in checks if not setting.holds), None)
    if missed is None:
        return None, outcome.seconds
    expected, observed_value = observed.shown(missed.expected), observed.seen(missed.seen)
    return TrialNotInEffect(missed.key, expected, observed_value), outcome.seconds


def _quotes(message: Message, line: str) -> bool:
    """Return whether a field of ``message``, or of a message in it, holds ``line``."""
    return any(
        _quotes(value, line) if isinstance(value, Message) else isinstance(value, str) and line in value
        for value in message.values().values()
    )
