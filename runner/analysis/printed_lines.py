"""What commands printed that a reader should know of: lines that a metric does not match, and libraries' complaints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runner.bench.events import SampleEvent
from runner.checks.complaints import complaints
from runner.checks.doctor.finding import Finding
from runner.checks.sample_effect import unrelated_complaints
from runner.profiles.environment import Environment
from runner.worker.user_command.metric import said_of


class Printed(NamedTuple):
    """The samples of an arm, and the environment that they ran in."""

    environment: Environment
    samples: Sequence[SampleEvent]


def of_others(arms: Sequence[Printed]) -> list[Finding]:
    """A finding where libraries complained of something that no profile sets, as those of other commands do."""
    each = [(one.environment, sample) for one in arms for sample in one.samples]
    printed = dict.fromkeys(line for _, sample in each for line in complaints(sample.get("stderr") or ""))
    for environment, sample in each:
        related = {*complaints(sample.get("stderr") or "")} - {*unrelated_complaints(environment, sample)}
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


def passed_over(own: Sequence[SampleEvent]) -> list[Finding]:
    """A finding where an arm's samples have some; earlier records do not say."""
    found = [event["passed_over"] for event in own if "passed_over" in event]
    if not found:
        return []
    count, line = sum(lines for lines, _ in found), found[0][1]
    return [
        Finding(
            "lines-passed-over", "warn", f"the metric passed over {said_of((count, line))}",
            "steps that end in such a line are left out of all times",
            "if they are steps, match them too; if not, match more of the others",
        )
    ]  # fmt: skip
