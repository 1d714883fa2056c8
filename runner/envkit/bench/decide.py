"""Decide what a run does next, from its record alone: fix how many blocks there are, take longer, drop arms, or end.

A decision is an event of the record, or the reason why the run ends. A run that is resumed decides as it would have.
"""

from __future__ import annotations

from envkit.bench import room
from envkit.bench.arms import Arm
from envkit.bench.events import Dropped, FixedDesign, Longer, Resume
from envkit.bench.memory_limit import is_clearly_over, over_in_race, over_memory
from envkit.bench.record_messages import BLOCKS_MEASURED, BUDGET_TOO_SHORT, BUDGET_USED_UP, WORKER_FAILED
from envkit.bench.record_messages import NOT_IN_EFFECT as WAS_NOT_IN_EFFECT
from envkit.bench.room import DESIGN_BLOCKS, LATEST, OVERSHOOT, block_s, reading_s, readings_s, wants_reading
from envkit.bench.run import Run
from envkit.stats.selection import is_close, is_faster, is_slower, leader, slower_half, standings, with_best
from envkit.stats.sequential import Design, at_look, design, may_stop, stretched

# Why a run ended; the reasons that mean it was completed.
PRECISE, BUDGET, PLANNED, COMPLETE = "precise enough", BUDGET_USED_UP, BLOCKS_MEASURED, "complete"
ENDED = (PRECISE, BUDGET, PLANNED, COMPLETE)
FAILED, NOT_IN_EFFECT, INTERRUPTED = WORKER_FAILED, WAS_NOT_IN_EFFECT, "interrupted"
TOO_SHORT = BUDGET_TOO_SHORT
# An event to record, after which the run decides again; the reason to end; None to go on.
Decision = Longer | FixedDesign | Dropped | str | None


def after_blocks(run: Run, blocks: int) -> Decision:
    """Return what a run decides after so many complete ``blocks``, 1 or more."""
    study, rule, fixed = run.study, run.study.stopping, run.design
    if study.is_race or study.one_run_each:
        return in_race(run, blocks) if study.is_race else COMPLETE
    if run.first(FixedDesign) is None:
        if (longer := on_budget(run)) is not None:
            return longer
        if blocks >= (LATEST if rule.blocks else DESIGN_BLOCKS):
            return _design(run, blocks)
    early = _early(run, fixed, blocks) if fixed is not None else None
    if early is not None:
        return early
    if rule.blocks:
        return COMPLETE if blocks >= rule.blocks else None
    return PLANNED if fixed is not None and blocks >= fixed.planned else _over_budget(run, blocks)


def _early(run: Run, fixed: Design, blocks: int) -> Dropped | str | None:
    """Return whether arms are dropped before the last block, for their memory or at a look, or a look ends the run."""
    if blocks < fixed.planned and (over := _over_memory(run)):
        return _dropped(run, fixed, blocks, over, over_memory=True)
    return _at_look(run, fixed, blocks) if blocks in fixed.looks[:-1] else None


def _over_memory(run: Run) -> dict[str, str]:
    """Return the arms to drop for their peak memory, each with its reference.

    If all are above the limit, the fastest stays: of those whose losses match, if there are any. Memory tells nothing
    of times, so that this is no look at the ratios.
    """
    left = _left(run) if run.study.drops_arms else []
    over = {arm.name: run.study.reference.name for arm in left if is_clearly_over(run, arm)}
    if over and len(over) == len(left):
        matching = [arm for arm in left if not run.losses_differ(arm)]
        del over[leader({arm.name: run.block_ratios(arm) for arm in matching or left})]
    return over


def in_race(run: Run, blocks: int) -> Dropped | str | None:
    """Return which arms leave a race after so many complete ``blocks``, or why it ends.

    The slower half leaves after each of the rule's ``halvings``, those above the limit on memory first. A race ends
    early if one arm is left. After the first halving it also ends if it takes longer than its budget.
    """
    rule, racing = run.study.stopping, run.racing
    if len(racing) < 2:
        return COMPLETE if racing else FAILED
    ratios = race_ratios(run)
    if blocks in rule.halvings and all(event.block != blocks for event in run.all(Dropped)):
        slower = slower_half(ratios, over_in_race(run))
        arms = dict.fromkeys(slower, next(name for name in standings(ratios) if name not in slower))
        return Dropped(block=blocks, arms=arms, planned_blocks=max(rule.halvings), looks=[*rule.halvings])
    if blocks >= max(rule.halvings):
        return COMPLETE
    most_s = (1 + OVERSHOOT) * rule.budget_s
    return BUDGET if blocks >= min(rule.halvings) and run.spent_s + block_s(run, blocks, 1) > most_s else None


def race_ratios(run: Run) -> dict[str, list[float]]:
    """Return the log ratios of each arm that is left in a race beside the first of these, in the blocks of all."""
    racing = run.racing
    ratios = {arm.name: run.block_ratios(arm, reference=racing[0]) for arm in racing}
    blocks = min(map(len, ratios.values()), default=0)  # the last block may have begun
    return {name: of_arm[:blocks] for name, of_arm in ratios.items()}


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


def _at_look(run: Run, fixed: Design, blocks: int) -> Dropped | str | None:
    """Return whether a look before the last ends the run, or drops arms."""
    if precise_enough(run, fixed):
        return PRECISE
    slower = slower_arms(run, fixed) if run.study.drops_arms else None
    return _dropped(run, fixed, blocks, slower) if slower else None


def precise_enough(run: Run, fixed: Design) -> bool:
    """Return whether all comparisons are decided, each with an interval that is narrow enough.

    Where arms can be dropped, the question is which is the fastest. Arms that were dropped don't count. If the leader
    is faster than the reference, its comparison alone has to be decided. No other arm may be faster than the leader by
    a relevant share.
    """
    study, rule = run.study, run.study.stopping
    leaders, usable = (_leaders(run), _usable(run)) if study.drops_arms else ({}, [])
    looks = {first: at_look(fixed, run.block_ratios(first), rule.margin) for first in leaders.values() if first}
    are_faster = bool(looks) and all(map(is_faster, looks.values()))
    pairs = [(arm, other) for arm, other in study.pairs if arm.name not in run.dropped]
    decisive = [(arm, other) for arm, other in pairs if arm in looks] if are_faster else pairs
    ratios = (run.block_ratios(arm, reference=other) for arm, other in decisive)
    if not all(may_stop(fixed, of_arm, rule.margin, rule.precision) for of_arm in ratios):
        return False
    shared = with_best(fixed, len(study.compared))
    against = (
        (at_look(shared, run.block_ratios(arm, reference=first), rule.margin), looks[first])
        for arm, first in leaders.items()
        if first is not None and arm != first and arm in usable
    )
    return all(is_close(interval, of_leader, rule.precision) for interval, of_leader in against)


def _leaders(run: Run) -> dict[Arm, Arm | None]:
    """Return, for each arm that was not dropped, the leader that it is compared with; a leader's is itself.

    The leader is the arm of the highest speedup among those that a report could recommend, or None without one. Arms
    that leave results and vendors' checks alone have their own leader, as reports recommend the fastest of them first.
    So it stays if another arm is faster.
    """
    usable = _usable(run)
    supported = [arm for arm in usable if run.is_supported(arm)]
    of_all, of_supported = (
        run.study.arm(leader({arm.name: run.block_ratios(arm) for arm in arms})) if arms else None
        for arms in (usable, supported)
    )
    return {arm: of_supported if arm in supported else of_all for arm in _left(run)}


def _usable(run: Run) -> list[Arm]:
    """Return the arms left that may lead: within the limit on memory, unless none is, and with matching losses.

    An arm with other losses is no answer, however fast it is. It makes no other arm leave, and ends no run.
    """
    left = _left(run)
    within = [arm for arm in left if over_memory(run, arm) is None]
    return [arm for arm in within or left if not run.losses_differ(arm)]


def _left(run: Run) -> list[Arm]:
    return [arm for arm in run.study.compared if arm.name not in run.dropped]


def slower_arms(run: Run, fixed: Design) -> dict[str, str]:
    """Return the arms that are slower than their leader or the reference at this look, each with that arm's name.

    An arm that has no interval yet stays, as it has no verdict.
    """
    study, margin = run.study, run.study.stopping.margin
    shared, slower = with_best(fixed, len(study.compared)), dict[str, str]()
    for arm, first in _leaders(run).items():
        beside_reference = at_look(fixed, run.block_ratios(arm), margin)
        if arm == first or beside_reference is None:
            continue
        if first is not None and is_slower(at_look(shared, run.block_ratios(arm, reference=first), margin)):
            slower[arm.name] = first.name
        elif is_slower(beside_reference):
            slower[arm.name] = study.reference.name
    return slower


def _dropped(run: Run, fixed: Design, blocks: int, arms: dict[str, str], over_memory: bool = False) -> Dropped:
    """Return that ``arms`` are dropped; the others get as many blocks as there is time for, at least those planned."""
    left_s = max(0.0, run.left_s - readings_s(run, blocks))
    one_s = block_s(run, blocks, DESIGN_BLOCKS, without=arms)
    goes_on = stretched(fixed, blocks, max(fixed.planned, blocks + int(left_s / one_s)))
    planned, looks = goes_on.planned, [*goes_on.looks]
    return Dropped(block=blocks, arms=arms, planned_blocks=planned, looks=looks, over_memory=over_memory)


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
