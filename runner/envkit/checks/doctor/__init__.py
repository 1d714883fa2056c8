"""Find what spoils training or a measurement of it: each check is a function from a Situation to a Finding or None."""

from __future__ import annotations

from collections.abc import Sequence

from envkit.checks.doctor.cpu_use_findings import CPU_USE_CHECKS
from envkit.checks.doctor.finding import Finder, Finding, Situation
from envkit.checks.doctor.machine_findings import MACHINE_CHECKS
from envkit.checks.doctor.process_findings import PROCESS_CHECKS, ignored_values, of_reasons
from envkit.checks.doctor.profile_findings import PROFILE_CHECKS

SEVERITIES = ("stop", "warn", "note")


def diagnose(situation: Situation) -> list[Finding]:
    """Return all findings, the costliest first."""
    return _sorted(situation, (*PROFILE_CHECKS, *PROCESS_CHECKS, *CPU_USE_CHECKS, *MACHINE_CHECKS))


def diagnose_process(situation: Situation) -> list[Finding]:
    """Return the findings in a worker's evidence alone, the costliest first."""
    return _sorted(situation, (*PROCESS_CHECKS, *CPU_USE_CHECKS))


def _sorted(situation: Situation, checks: Sequence[Finder]) -> list[Finding]:
    found = [finding for check in checks if (finding := check(situation)) is not None]
    found += [*ignored_values(situation), *of_reasons(situation)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
