"""What a report says of how a training scales over ranks."""

from __future__ import annotations

from runner.losses import loss_tolerance
from runner.scaling import Estimate, Scaled
from runner.summary import Summary
from runner.wording import CONFIDENCE, Row


def rows(summary: Summary) -> list[Row]:
    """For each arm of several ranks: how fast, how much of that is lost and to what, and whether it learns the same."""
    return [row for one in summary.scaling for row in _rows(summary, one)]


def _rows(summary: Summary, one: Scaled) -> list[Row]:
    found = [Row("scaling", f"{one.arm} on {one.ranks} ranks{_ratios(summary, one)}")]
    times = f"{one.communication_s * 1000:.2f} ms of a step, {one.communication_share:.1%} of it"
    found.append(Row("", f"A rank communicates, or waits for others, during {times}; it may compute meanwhile."))
    if losses := _losses(summary, one):
        found.append(losses)
    checks = "What it expects was observed" if summary.environments[one.arm].expect else "Its variables were observed"
    found.append(Row("", f"{checks} in each rank of every sample, each on CPUs of its own."))
    return found


def _ratios(summary: Summary, one: Scaled) -> str:
    """Nothing where no arm of one process is there to hold the ranks against."""
    if not summary.plan.alone:
        return ""
    if one.speedup is None:
        return ": not worked out, from too few blocks or before the run has ended"
    efficiency = f", efficiency {_shown(one.efficiency)}" if one.efficiency else ""
    of = summary.plan.reference.profile
    return f": {_shown(one.speedup)} times as fast as 1 process of {of} ({CONFIDENCE} interval){efficiency}"


def _losses(summary: Summary, one: Scaled) -> Row | None:
    if one.losses is None:
        return None
    plan, losses = summary.plan, one.losses
    (arm,) = (arm for arm in plan.distributed if arm.name == one.arm)
    differ = f"by {losses.largest_difference:.1e} at most over {losses.steps} steps"
    allowed = f"{loss_tolerance(plan, arm, other_ranks=True):g}"
    if losses.agree:
        return Row("", f"Losses differ from those of 1 process {differ}; {allowed} is the tolerance.")
    return Row("", f"LOSSES DIFFER from those of 1 process {differ}: the tolerance is {allowed}", "bad")


def _shown(found: Estimate) -> str:
    return f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})"
