"""Findings about complaints that libraries printed and that are about no setting of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envkit.bench.events import SampleEvent
from envkit.checks import sample_effect
from envkit.checks.complaints import complaints
from envkit.checks.doctor.finding import Finding
from envkit.profiles.environment import Environment


class Printed(NamedTuple):
    """The samples of an arm, and the environment that they ran in."""

    environment: Environment
    samples: Sequence[SampleEvent]


def unrelated_complaints(arms: Sequence[Printed]) -> list[Finding]:
    """Return a finding if libraries complained of something that no profile sets, as those of other commands do."""
    each = [(one.environment, sample) for one in arms for sample in one.samples]
    printed = dict.fromkeys(line for _, sample in each for line in complaints(sample.get("stderr") or ""))
    for environment, sample in each:
        related = {*complaints(sample.get("stderr") or "")} - {*sample_effect.unrelated_complaints(environment, sample)}
        printed = {line: None for line in printed if line not in related}
    if not printed:
        return []
    first, *more = printed
    alike = f", and {len(more)} more" if more else ""
    return [
        Finding(
            "unrelated-complaint", "note", f'a library printed "{first}"{alike}',
            "it is about no setting of a profile, so the result stands",
            "correct what it names, if another command needs that",
        )
    ]  # fmt: skip
