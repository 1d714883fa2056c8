"""Findings about complaints that libraries printed and that are about no setting of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envkit.analysis import finding_messages as messages
from envkit.checks import sample_effect
from envkit.checks.complaints import complaints
from envkit.checks.doctor.finding import Finding
from envkit.engines.measurement import Measurement
from envkit.profiles.environment import Environment

CODE = "unrelated-complaint"


class Printed(NamedTuple):
    """The samples of an arm, and the environment that they ran in."""

    environment: Environment
    samples: Sequence[Measurement]


def unrelated_complaints(arms: Sequence[Printed]) -> list[Finding]:
    """Return a finding if libraries complained of something that no profile sets, as those of other commands do."""
    each = [(one.environment, sample) for one in arms for sample in one.samples]
    printed = dict.fromkeys(line for _, sample in each for line in complaints(sample.stderr))
    for environment, sample in each:
        related = {*complaints(sample.stderr)} - {*sample_effect.unrelated_complaints(environment, sample)}
        printed = {line: None for line in printed if line not in related}
    if not printed:
        return []
    first, *more = printed
    seen = messages.UnrelatedComplaint(first, len(more) or None)
    return [Finding(CODE, "note", seen, messages.reason(CODE), messages.remedy(CODE))]
