"""What a report says of the losses that a user's own command prints."""

from __future__ import annotations

from envkit.analysis.losses import OWN_LOSS_TOLERANCE
from envkit.analysis.summary import Comparison, Summary
from envkit.report.parts import Row

NOT_COMPARED = (
    "Losses were not compared: give --loss-metric, or compare those that your training prints before you use it."
)


def rows(summary: Summary, comparison: Comparison, differ: bool) -> list[Row]:
    """How those of one profile compare with its reference's; ``differ``: where they should not."""
    losses = comparison.losses
    if losses is None:
        return [Row("", NOT_COMPARED)] if comparison.speedup and not _are_read(summary) else []
    name = summary.plan.reference_of(summary.plan.arm(comparison.arm)).name
    most, own = losses.largest_difference, losses.own_difference or 0.0
    repeats = own <= OWN_LOSS_TOLERANCE
    if differ:
        single = f"{name}'s own samples by {_share(own)}"
        single = single if repeats else f"single samples by {_share(own)} from their own"
        by = f"by up to {_share(most)} from {name}'s, as means over samples, and {single}"
        return [Row("", f"LOSSES DIFFER {by}: it changes what is learnt", "bad")]
    each = f"{losses.steps} in each sample"
    if most == own == 0:
        return [Row("", f"Losses agree within the last digit that is printed ({each}).")]
    near = f"Losses are within {_share(most)} of {name}'s, as means over samples ({each})"
    if repeats:
        return [Row("", f"{near}; {name}'s own samples are within {_share(own)}.")]
    single = f"single samples are within {_share(own)} of their own"
    return [Row("", f"{near}; {single}. With a fixed seed a smaller change would be seen.")]


def _are_read(summary: Summary) -> bool:
    return summary.plan.user_command is not None and summary.plan.user_command.loss_metric is not None


def _share(part: float) -> str:
    """``3.4%``; below a thousandth ``3.0e-05``."""
    return f"{part:.1%}" if part >= 0.001 else f"{part:.1e}" if part else "0"
