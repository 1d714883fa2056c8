"""What a run says that has too few blocks for a verdict, or took longer than its budget for one."""

from __future__ import annotations

from envkit.analysis.course import FirstRun
from envkit.analysis.summary import Summary
from envkit.bench.room import length
from envkit.report import wording
from envkit.report.parts import Row


def rows(summary: Summary) -> list[Row]:
    """Say what a verdict takes, and of arms without a sample what their first workers showed."""
    found, course = list[Row](), summary.course
    if (one := course.unfinished) is not None:
        there = f"there {'is' if one.blocks == 1 else 'are'} {one.blocks or 'none'}"
        more = f"about {length(one.more_s)} more, with --resume"
        found.append(Row("sure", f"no verdict yet: it needs {one.fewest} blocks, and {there}; {more}"))
    elif course.longer is not None:
        given, takes = (length(course.longer[name]) for name in ("budget_s", "takes_s"))
        found.append(Row("budget", f"too short for a verdict, which takes about {takes}; {given} were given"))
    first = course.first_runs or []
    if first:
        step = summary.plan.step_name
        times = ", ".join(f"{one.arm} {1000 * one.step_s:,.2f} ms per {step}" for one in first)
        found.append(Row("first", f"{times}; in one process each, which is no comparison"))
    return [*found, *(row for one in first for row in _settings(one))]


def _settings(one: FirstRun) -> list[Row]:
    """Say whether the settings of an arm were in effect in its first worker."""
    missed = [check for check in one.checks if not check.holds]
    if missed:
        seen = [f"{each.key}: expected {wording.shown(each.expected)}, {wording.seen(each.seen)}" for each in missed]
        return [Row("effect", f"{one.arm} was NOT IN EFFECT: {'; '.join(seen)}", "bad")]
    verified = sum(check.verified for check in one.checks)
    if not verified:
        return []
    count = f"({verified} of {len(one.checks)})"
    return [Row("effect", f"{one.arm}: what it expects was observed in its first process {count}")]
