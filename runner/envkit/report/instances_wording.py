"""What a report says of several trainings at once."""

from __future__ import annotations

from envkit.analysis.at_once import AtOnce
from envkit.analysis.summary import Summary
from envkit.bench.plan import Arm
from envkit.report import scaling_wording
from envkit.report.parts import Row
from envkit.report.wording import CONFIDENCE


def rows(summary: Summary) -> list[Row]:
    """For each arm of several at once: what they do in a second, and whether the profile was in effect in each."""
    return [row for one in summary.instances for row in _rows(summary, one)]


def headline(summary: Summary, arm: Arm) -> str | None:
    """What is found of several at once, in a sentence; None where nothing is."""
    one = next((one for one in summary.instances if one.arm == arm.name), None)
    if one is None or one.over_reference is None:
        return None
    found = one.over_reference
    interval = f"{found.ratio:.2f} ({CONFIDENCE} interval {found.low:.2f} to {found.high:.2f})"
    beside_own = ""
    if (own := one.over_one_process) is not None:
        beside_own = f", and {own.ratio:.2f} ({own.low:.2f} to {own.high:.2f}) times those of one under {arm.profile}"
    return f"{_who(summary, one)} do {interval} times the {_items(summary, one)} of {_reference(summary)}{beside_own}"


def _rows(summary: Summary, one: AtOnce) -> list[Row]:
    over, own = one.over_reference, one.over_one_process
    observed = Row("", scaling_wording.observed(summary, one.arm, "instance"))
    if over is None:
        found = "it is not known what they do, from too few blocks or before the run has ended"
        return [Row("instances", f"{_who(summary, one)}: {found}."), observed]
    times = f"{scaling_wording.shown(over)} times the {_items(summary, one)} of {_reference(summary)}"
    rows = [Row("instances", f"{_who(summary, one)} do {times} ({CONFIDENCE} interval).")]
    if own is not None:
        profile = summary.plan.arm(one.arm).profile
        rows.append(Row("", f"They do {scaling_wording.shown(own)} times those of one process under {profile}."))
    return [*rows, observed]


def _who(summary: Summary, one: AtOnce) -> str:
    return f"{one.instances} at once under {summary.plan.arm(one.arm).profile}"


def _items(summary: Summary, one: AtOnce) -> str:
    """``images per second``."""
    unit = next((measured.unit for measured in summary.measured if measured.arm == one.arm), "items")
    return f"{unit} per second"


def _reference(summary: Summary) -> str:
    return f"one {summary.plan.reference.name} process"
