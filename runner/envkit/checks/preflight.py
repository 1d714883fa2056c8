"""Look for what would spoil a run before it starts, and stop it if its result would be worthless."""

from __future__ import annotations

from collections.abc import Sequence

from envkit.checks.doctor import diagnose
from envkit.checks.doctor.finding import Finding, Situation
from envkit.checks.messages import Spoils, Worthless
from envkit.common.errors import InputError
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection


def preflight(environments: Sequence[tuple[Environment, Inspection]], force: bool) -> list[dict[str, object]]:
    """Return the findings, as plain data, for each Environment and the inspection of the image that it is for.

    Other load of the machine is not checked here: each sample tells what others used while it was measured.

    Raises InputError for the first finding that makes the measurement worthless, unless ``force``.
    """
    findings: dict[tuple[str, Message], Finding] = {}
    for environment, inspection in environments:
        situation = Situation(
            inspection["facts"], inspection["fingerprint"], environment, libraries=inspection["libraries"],
            accelerator=inspection.get("accelerator", {}),
        )  # fmt: skip
        for finding in diagnose(situation):
            if finding.severity == "stop" and not force:
                raise InputError(Worthless(environment.profile, Spoils(finding.seen, finding.why), finding.fix))
            findings[finding.code, finding.seen] = finding
    return [finding.to_json() for finding in findings.values()]
