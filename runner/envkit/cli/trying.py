"""Try arms before a run begins: one of many that fails, or is not in effect, would end all of it."""

from __future__ import annotations

from envkit.bench import private_values, room
from envkit.bench.job import Job
from envkit.bench.parse_sample import parse_sample
from envkit.bench.plan import Arm
from envkit.checks.sample_effect import check_sample
from envkit.common.progress import Progress
from envkit.rendering import text
from envkit.report import wording


def problems(job: Job, quiet: bool) -> dict[str, str]:
    """Why arms can't be measured, by their names; each one's worker trains for one step, a user's command to its end.

    Where the reference can't, none of the others is to blame: the run will end with that. Raises TooShort as soon as
    it is known that the budget has far too little room for those that are left.
    """
    room.require(job.plan)
    found: dict[str, str] = {}
    took_s: list[float] = []
    with Progress(0.0, quiet=quiet) as progress:
        for arm in job.plan.arms:
            progress.start("trying once", arm.name, 0.0)
            reason, seconds = _problem(job, arm)
            took_s.append(seconds)
            if reason is not None and arm == job.plan.reference:
                return {}
            if reason is not None:
                found[arm.name] = reason
            if len(took_s) > 1:
                room.require(job.plan, took_s, len(job.plan.arms) - len(found))
    return found


def _problem(job: Job, arm: Arm) -> tuple[str | None, float]:
    """Return why an arm can't be measured, by its shortest worker, and how long that took (seconds)."""
    found, seconds = _found(job, arm)
    return found and str(private_values.hidden({"reason": found}, job.kept, job.inherited)["reason"]), seconds


def _found(job: Job, arm: Arm) -> tuple[str | None, float]:
    outcome = job.engines[arm.engine].run(job.task(arm, job.plan.first_arguments(arm)))
    document, problem = parse_sample(outcome, (), job.plan.options)
    if document is None:
        printed = outcome.stderr_tail.strip().splitlines()[-1:]
        said = text(problem) if problem else ""
        wrong = ": ".join([f"its worker {said}", *(line for line in printed if line not in said)])
        return wrong, outcome.seconds
    checks = check_sample(job.environments[arm.name], {**document, "stderr": outcome.stderr_tail}, job.kept)
    missed = next((one for one in checks if not one.holds), None)
    if missed is None:
        return None, outcome.seconds
    expected = f"expected {wording.shown(missed.expected)}, {wording.seen(missed.seen)}"
    return f"it is not in effect: {missed.key}: {expected}", outcome.seconds
