"""Decide what a run does next, from its record alone: fix how many blocks there will be, take longer, or end.

A decision is an event of the record, or the reason why the run ends. A run that is resumed decides as it would have.
"""

from __future__ import annotations

from envkit.bench import room
from envkit.bench.events import FixedDesign, Longer, Resume
from envkit.bench.record_messages import BLOCKS_MEASURED, BUDGET_TOO_SHORT, BUDGET_USED_UP, WORKER_FAILED
from envkit.bench.record_messages import NOT_IN_EFFECT as WAS_NOT_IN_EFFECT
from envkit.bench.room import DESIGN_BLOCKS, LATEST, OVERSHOOT, block_s, reading_s, readings_s, wants_reading
from envkit.bench.run import Run
from envkit.stats.sequential import Design, design, may_stop

# Why a run ended; the reasons that mean it was completed.
PRECISE, BUDGET, PLANNED, COMPLETE = "precise enough", BUDGET_USED_UP, BLOCKS_MEASURED, "complete"
ENDED = (PRECISE, BUDGET, PLANNED, COMPLETE)
FAILED, NOT_IN_EFFECT, INTERRUPTED = WORKER_FAILED, WAS_NOT_IN_EFFECT, "interrupted"
TOO_SHORT = BUDGET_TOO_SHORT
# An event to record, after which the run decides again; the reason to end; None to go on.
Decision = Longer | FixedDesign | str | None


def after_blocks(run: Run, blocks: int) -> Decision:
    """Return what a run decides after so many complete ``blocks``, 1 or more."""
    study, rule, fixed = run.study, run.study.stopping, run.design
    if study.one_run_each:
        return COMPLETE
    if run.first(FixedDesign) is None:
        if (longer := on_budget(run)) is not None:
            return longer
        if blocks >= (LATEST if rule.blocks else DESIGN_BLOCKS):
            return _design(run, blocks)
    if fixed is not None and blocks in fixed.looks[:-1] and precise_enough(run, fixed):
        return PRECISE
    if rule.blocks:
        return COMPLETE if blocks >= rule.blocks else None
    return PLANNED if fixed is not None and blocks >= fixed.planned else _over_budget(run, blocks)


def on_budget(run: Run, share: float = 1.0) -> Longer | str | None:
    """Return whether a run takes longer than its budget, once, or ends as a verdict takes far longer.

    The answer follows from how long workers took, and from no ratio: blocks take ``share`` of what was seen. A run is
    refused before its second block or not at all, and never where it was resumed: its user knows what it takes.
    """
    study, need = run.study, room.need(run)
    if need is None or not room.is_short(need, study, share) or run.first(Longer):
        return None
    if need.blocks <= 1 and not run.first(Resume) and room.is_refused(need, study):
        # where it is not sure yet the first block tells
        return TOO_SHORT if room.is_refused(need, study, share) else None
    return Longer(budget_s=study.stopping.budget_s, takes_s=round(need.total_s(), 3), blocks=need.fewest)


def precise_enough(run: Run, fixed: Design) -> bool:
    """Return whether all comparisons are decided, each by an interval that is narrow enough."""
    study, rule = run.study, run.study.stopping
    ratios = [run.block_ratios(arm, reference=other) for arm, other in study.pairs]
    return all(may_stop(fixed, of_arm, rule.margin, rule.precision) for of_arm in ratios)


def _over_budget(run: Run, blocks: int) -> str | None:
    """Return why to end before all planned blocks are there: the machine became so much slower. It has an interval."""
    study = run.study
    if study.contrasts and blocks < study.fewest_blocks:
        return None  # a budget that had far too little room was refused
    reads = wants_reading(run, blocks)
    next_s = block_s(run, blocks, 1) + (reading_s(run) if reads else 0.0)
    return BUDGET if run.spent_s + next_s > (1 + OVERSHOOT) * study.stopping.budget_s else None


def _design(run: Run, blocks: int) -> FixedDesign:
    """Return, before any look, how many blocks there will be: as many as the budget has room for."""
    study = run.study
    if study.stopping.blocks:
        fixed = Design(study.stopping.blocks, (study.stopping.blocks,), study.sharing)
    else:
        one_s = block_s(run, blocks, DESIGN_BLOCKS)
        planned = blocks + int(max(0.0, run.left_s - readings_s(run, blocks)) / one_s)
        fixed = design(max(planned, study.fewest_blocks), study.sharing)
    return FixedDesign(planned_blocks=fixed.planned, looks=[*fixed.looks])
