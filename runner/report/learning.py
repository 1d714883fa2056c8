"""What the samples of a run learnt, in a sentence; full trainings have that in their table."""

from __future__ import annotations

from runner.analysis.summary import Summary
from runner.bench import quality
from runner.report.parts import Row


def learnt(summary: Summary) -> list[Row]:
    """Loss and figures of the reference after a sample's steps; none where nothing was tested, or a table has it."""
    plan = summary.plan
    one = next((one for one in summary.measured if one.arm == plan.reference.name), None)
    if one is None or not one.quality or one.final_loss is None or plan.epochs or len(plan.workloads) > 1:
        return []
    steps = plan.training.warmup_steps + plan.training.steps
    text = f"after {steps} steps {one.arm} has a loss of {one.final_loss:.3f}, {quality.shown(one.quality)}"
    return [Row("learnt", text)]
