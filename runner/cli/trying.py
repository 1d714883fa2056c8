"""Try arms before a run begins: one of many that fails, or is not in effect, would end all of it."""

from __future__ import annotations

from runner.bench import private_values
from runner.bench.job import Job
from runner.bench.parse_sample import parse_sample
from runner.bench.plan import Arm
from runner.checks.sample_effect import check_sample
from runner.common.progress import Progress
from runner.report import wording


def problems(job: Job, quiet: bool) -> dict[str, str]:
    """Why arms can't be measured, by their names; each one's worker trains for one step, a user's command to its end.

    Where the reference can't, none of the others is to blame: the run will end with that.
    """
    found: dict[str, str] = {}
    with Progress(0.0, quiet=quiet) as progress:
        for arm in job.plan.arms:
            progress.start("trying once", arm.name, 0.0)
            reason = _problem(job, arm)
            if reason is None:
                continue
            if arm == job.plan.reference:
                return {}
            found[arm.name] = reason
    return found


def _problem(job: Job, arm: Arm) -> str | None:
    """Why an arm can't be measured, by its shortest worker."""
    found = _found(job, arm)
    return found and str(private_values.hidden({"reason": found}, job.kept, job.inherited)["reason"])


def _found(job: Job, arm: Arm) -> str | None:
    outcome = job.engines[arm.engine].run(job.task(arm, job.plan.first_arguments(arm)))
    document, problem = parse_sample(outcome, (), job.plan.options)
    if document is None:
        printed = outcome.stderr_tail.strip().splitlines()[-1:]
        return ": ".join([f"its worker {problem}", *(line for line in printed if line not in str(problem))])
    checks = check_sample(job.environments[arm.name], {**document, "stderr": outcome.stderr_tail}, job.kept)
    missed = next((one for one in checks if not one.holds), None)
    if missed is None:
        return None
    return f"it is not in effect: {missed.key}: expected {wording.shown(missed.expected)}, {wording.seen(missed.seen)}"
