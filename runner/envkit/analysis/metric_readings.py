"""Findings about the numbers that a metric read from a user's command."""

from __future__ import annotations

from collections.abc import Sequence

from envkit.bench.events import SampleEvent
from envkit.checks.doctor.finding import Finding
from envkit.rendering import text
from envkit.worker.messages.metrics import UnmatchedLines
from envkit.worker.user_command.metric import shown


def metric_readings(own: Sequence[SampleEvent]) -> list[Finding]:
    """Return what is doubtful about the readings in an arm's samples."""
    found = (_unmatched_lines(own), _cover(own), _rounding(own))
    return [finding for finding in found if finding is not None]


def _unmatched_lines(own: Sequence[SampleEvent]) -> Finding | None:
    found = [event["unmatched_lines"] for event in own if "unmatched_lines" in event]
    if not found:
        return None
    count, line = sum(lines for lines, _ in found), found[0][1]
    return Finding(
        "unmatched-lines", "warn", f"the metric passed over {text(UnmatchedLines(count, shown(line)))}",
        "steps that end in such a line are left out of all times",
        "if they are steps, match them too; if not, match more of the others",
    )  # fmt: skip


def _cover(own: Sequence[SampleEvent]) -> Finding | None:
    """Return that readings sum to far more or far less than the time in which they were printed."""
    found = next((event["readings_cover"] for event in own if "readings_cover" in event), None)
    if found is None:
        return None
    total, elapsed = found["sum_s"], found["elapsed_s"]
    if total > elapsed:
        return Finding(
            "readings-too-long", "warn",
            f"the readings sum to {total:.3g} s, and the command printed them within {elapsed:.3g} s",
            "several ranks may print each step, or the times are not of this run",
            "match the lines of one rank, or the times that this run takes",
        )  # fmt: skip
    unit = f"; in {found['fits']} they would be as long as it" if found["fits"] else ""
    return Finding(
        "readings-too-short", "note",
        f"the readings cover {total / elapsed:.1%} of the time in which the command printed them{unit}",
        "the rest is not compared; it is in a log of every hundredth step, and with a wrong unit",
        f"check --unit{', and give --unit ' + found['fits'] + ' if that is right' if found['fits'] else ''}",
    )  # fmt: skip


def _rounding(own: Sequence[SampleEvent]) -> Finding | None:
    """Return that numbers are rounded so coarsely that a difference may be lost or made by it."""
    found = [event["readings_rounding"] for event in own if "readings_rounding" in event]
    if not found:
        return None
    return Finding(
        "readings-rounded", "warn",
        f"the last digits of the readings stand for {max(found):.0%} of their times",
        "a difference below that may be lost, or made, by rounding",
        "let the command print more digits, or time its lines with a metric that has no group",
    )  # fmt: skip
