"""Find what spoils training or a measurement of it: each check is a function from a Situation to a Finding or None."""

from __future__ import annotations

from runner.doctor.finding import Finding, Situation
from runner.doctor.machine import MACHINE_CHECKS
from runner.doctor.process import PROCESS_CHECKS
from runner.doctor.profile import PROFILE_CHECKS

SEVERITIES = ("stop", "warn", "note")


def diagnose(situation: Situation) -> list[Finding]:
    """All findings, the costliest first."""
    checks = (*PROFILE_CHECKS, *PROCESS_CHECKS, *MACHINE_CHECKS)
    found = [finding for check in checks if (finding := check(situation)) is not None]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
