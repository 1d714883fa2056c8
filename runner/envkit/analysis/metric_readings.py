"""Findings about the numbers that a metric read from a user's command."""

from __future__ import annotations

from collections.abc import Sequence

from envkit.analysis import finding_messages as messages
from envkit.bench.events import Sample
from envkit.checks.doctor.finding import Finding, Level
from envkit.messages import Message
from envkit.worker.user_command.metric import shown


def metric_readings(own: Sequence[Sample]) -> list[Finding]:
    """Return what is doubtful about the readings in an arm's samples."""
    found = (_rank_lines(own), _unmatched_lines(own), _cover(own), _rounding(own))
    return [finding for finding in found if finding is not None]


def _rank_lines(own: Sequence[Sample]) -> Finding | None:
    """Return which rank's lines were read if a launcher marks them, or else that each rank printed each step."""
    mark, ranks = next((sample.rank_lines for sample in own if sample.rank_lines), (None, 0))
    if mark is None:
        return None
    if mark:
        return _finding("rank-lines", "note", messages.RankLines(shown(mark), ranks))
    return _finding("repeated-lines", "warn", messages.RepeatedLines(ranks))


def _unmatched_lines(own: Sequence[Sample]) -> Finding | None:
    found = [sample.unmatched_lines for sample in own if sample.unmatched_lines]
    if not found:
        return None
    seen = messages.UnmatchedLines(sum(lines for lines, _ in found), shown(found[0][1]))
    return _finding("unmatched-lines", "warn", seen)


def _cover(own: Sequence[Sample]) -> Finding | None:
    """Return that readings sum to far more or far less than the time in which they were printed."""
    found = next((sample.readings_cover for sample in own if sample.readings_cover), None)
    if found is None:
        return None
    total, elapsed, unit = found.sum_s, found.elapsed_s, found.fits or None
    if total > elapsed:
        return _finding("readings-too-long", "warn", messages.ReadingsTooLong(total, elapsed))
    seen = messages.ReadingsTooShort(total / elapsed, unit)
    return Finding("readings-too-short", "note", seen, messages.reason("readings-too-short"), messages.CheckUnit(unit))


def _rounding(own: Sequence[Sample]) -> Finding | None:
    """Return that numbers are rounded so coarsely that a difference may be lost or made by it."""
    found = [sample.readings_rounding for sample in own if sample.readings_rounding is not None]
    return _finding("readings-rounded", "warn", messages.ReadingsRounded(max(found))) if found else None


def _finding(code: str, severity: Level, seen: Message) -> Finding:
    return Finding(code, severity, seen, messages.reason(code), messages.remedy(code))
