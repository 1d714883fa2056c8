"""Find what spoils training or a measurement of it: each check is a function from a Situation to a Finding or None.

``preflight`` stops a run before it starts if its result would be worthless.
"""

from __future__ import annotations

from collections.abc import Sequence

from envkit.checks.doctor.cpu_use_findings import CPU_USE_CHECKS
from envkit.checks.doctor.finding import Finder, Finding, Situation
from envkit.checks.doctor.machine_findings import MACHINE_CHECKS
from envkit.checks.doctor.process_findings import PROCESS_CHECKS, ignored_values, of_reasons
from envkit.checks.doctor.profile_findings import PROFILE_CHECKS
from envkit.checks.messages import Spoils, Worthless
from envkit.common.errors import InputError
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection

SEVERITIES = ("stop", "warn", "note")


def diagnose(situation: Situation) -> list[Finding]:
    """Return all findings, the costliest first."""
    return _sorted(situation, (*PROFILE_CHECKS, *PROCESS_CHECKS, *CPU_USE_CHECKS, *MACHINE_CHECKS))


def diagnose_process(situation: Situation) -> list[Finding]:
    """Return the findings in a worker's evidence alone, the costliest first."""
    return _sorted(situation, (*PROCESS_CHECKS, *CPU_USE_CHECKS))


def preflight(environments: Sequence[tuple[Environment, Inspection]], force: bool) -> list[dict[str, object]]:
    """Return the findings, as plain data, for each Environment and the inspection of the image that it is for.

    Other load of the machine is not checked here: each sample tells what others used while it was measured.

    Raises InputError for the first finding that makes the measurement worthless, unless ``force``.
    """
    findings: dict[tuple[str, Message], Finding] = {}
    for environment, inspection in environments:
        situation = Situation(
            inspection["facts"], inspection["fingerprint"], environment, libraries=inspection["libraries"],
            accelerator=inspection.get("accelerator", {}), cores_measured="cores_measured" in inspection,
            kernel_cores=inspection.get("kernel_cores"),
        )  # fmt: skip
        for finding in diagnose(situation):
            if finding.severity == "stop" and not force:
                raise InputError(Worthless(environment.profile, Spoils(finding.seen, finding.why), finding.fix))
            findings[finding.code, finding.seen] = finding
    return [finding.to_json() for finding in findings.values()]


def _sorted(situation: Situation, checks: Sequence[Finder]) -> list[Finding]:
    findings = [finding for check in checks if (finding := check(situation)) is not None]
    findings += [*ignored_values(situation), *of_reasons(situation)]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
