"""Several trainings at once: the lines of a report."""

from __future__ import annotations

from envkit.analysis.result import Result
from envkit.report.messages import trainings as messages
from envkit.report.parts import Row


def rows(result: Result) -> list[Row]:
    """Return the throughput of each arm of several at once over that of one process under the same profile."""
    found: list[Row] = []
    for one in result.instances:
        if (own := one.over_one_process) is not None:
            profile = result.study.arm(one.arm).profile
            said = messages.InstancesOverOwn(one.instances, profile, own.ratio, own.low, own.high)
            found.append(Row("" if found else "At once", said))
    return found
