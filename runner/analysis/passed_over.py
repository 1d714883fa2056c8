"""Lines of a user's command that its metric does not match, amid lines that it does."""

from __future__ import annotations

from collections.abc import Sequence

from runner.bench.events import SampleEvent
from runner.checks.doctor.finding import Finding
from runner.worker.user_command.metric import said_of


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
