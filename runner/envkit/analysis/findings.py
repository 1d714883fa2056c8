"""Findings about the processes of a run, and about what its commands printed."""

from __future__ import annotations

from envkit.advice.symptoms import of_sample
from envkit.analysis.metric_readings import metric_readings
from envkit.analysis.unrelated_complaints import Printed, unrelated_complaints
from envkit.bench.run import Run
from envkit.checks.doctor import diagnose_process
from envkit.checks.doctor.cpu_use_findings import in_all_arms, trainer_of
from envkit.checks.doctor.finding import Finding, Situation
from envkit.profiles.environment import Environment
from envkit.profiles.resolve import of_rank


def findings(run: Run, environments: dict[str, Environment]) -> list[Finding]:
    """Return what the samples of each arm show to be wrong."""
    study = run.study
    found: list[tuple[str, Finding]] = []
    printed: list[Printed] = []
    for arm in study.arms:
        own = run.samples(arm)
        if own:
            printed.append(Printed(environments[arm.name], own))
            inside = of_rank(run.beginning.inspection(arm.target), study.parts_of(arm))
            middle = sorted(own, key=lambda sample: sample.usage.minor_faults)[len(own) // 2]
            symptoms = of_sample(middle)
            # a profile is there to take reasons away, and a command's usage has its start and end in it
            seen = arm in study.references and study.user_command is None and symptoms.is_long_enough
            situation = Situation(
                inside["facts"], inside["fingerprint"], environments[arm.name], trainer_of(own[0]),
                symptoms=symptoms if seen else None,
            )  # fmt: skip
            wrong = [*diagnose_process(situation), *metric_readings(own)]
            found += [(arm.name, one) for one in wrong]
    return in_all_arms(found, len(printed)) + unrelated_complaints(printed)
