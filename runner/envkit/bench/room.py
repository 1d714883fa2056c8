"""How long blocks and a verdict take, and what a run does whose budget has no room for one.

A verdict needs a fewest number of blocks (``Study.fewest_blocks``). Only the times of workers decide whether a run goes
on until then. Ratios do not, so that intervals keep their error rate (docs/statistics.md).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from envkit.bench import pace
from envkit.bench.events import ReferenceKernel, ReferenceKernelFailure, Resume, WarmUp
from envkit.bench.messages import BudgetBelowLeast, BudgetTooShort, GoingOn
from envkit.bench.run import Run
from envkit.bench.study import Study
from envkit.common.errors import InputError

# A run may take so much more than its budget to complete the blocks that were planned.
OVERSHOOT = 0.15
# A run goes on until a verdict, for up to so many times its budget; beyond that it is refused.
LONGEST = 3.0
# The share of its first estimate that a block may take: the first workers read files that were not in memory yet.
UNSURE = 0.5
# The least that a worker takes (seconds): it imports torch, or only starts a command of the user's.
LEAST_WORKER_S, LEAST_COMMAND_S = 0.5, 0.05
# Shorter times are told in seconds, and longer ones in minutes.
IN_SECONDS = 90.0
# Slurm's time (seconds since 1970) at which the job ends that this process runs in (sbatch(1), since Slurm 22.05).
JOB_END = "SLURM_JOB_END_TIME"
# After so many blocks it is known how many fit into the budget; and what the latest took tells what the next will take.
DESIGN_BLOCKS, LATEST = 4, 2
# The reference kernel is read no more often than so many times in a budget: to read it takes seconds.
READINGS = 8


class TooShort(InputError):
    """The budget has no room for a verdict."""

    def __init__(
        self, message: BudgetTooShort | BudgetBelowLeast, document: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message, document)
        self.too_short = message


@dataclass(frozen=True)
class Need:
    """The blocks and seconds that a verdict takes. Times are in seconds of workers."""

    blocks: int  # complete ones, so far
    fewest: int
    spent_s: float
    block_s: float  # of the next block, by what was seen
    before_s: float = 0.0  # first workers that are still to be started before it

    def total_s(self, share: float = 1.0) -> float:
        """Return what the whole run takes where a block takes ``share`` of ``block_s``."""
        return self.spent_s + self.before_s + max(0, self.fewest - self.blocks) * share * self.block_s

    @property
    def more_s(self) -> float:
        return self.total_s() - self.spent_s


def need(run: Run) -> Need | None:
    """Return what a verdict takes by the times of the workers so far.

    None where nothing is compared, where each arm has one run, or before the first worker ended.
    """
    study, lengths = run.study, run.lengths
    if not study.contrasts or study.one_run_each:
        return None
    first = {event.arm: event for event in run.all(WarmUp)}
    blocks = run.whole_blocks
    missing, before_s = [arm for arm in study.arms if arm.name not in first], 0.0
    if blocks:
        one_block_s = block_s(run, blocks)
    elif first and (missing or lengths is None):
        each = sum(event.worker_seconds for event in first.values()) / len(first)
        one_block_s, before_s = each * len(study.arms), each * len(missing)
    elif first:
        one_block_s = pace.block_s(study, {name: pace.pace_of(event) for name, event in first.items()})
    else:
        return None
    return Need(blocks, study.fewest_blocks, run.spent_s, one_block_s, before_s)


def length(seconds: float) -> str:
    """Return ``15 s``, rounded up to 5 seconds, and from 90 seconds on ``2.5 minutes``, rounded up to half of one."""
    return f"{_fives(seconds)} s" if seconds < IN_SECONDS else f"{_halves(seconds):g} minutes"


def budget(seconds: float) -> str:
    """Return the value of --budget for so many seconds, rounded up as in ``length``."""
    return f"{_fives(seconds)}s" if seconds < IN_SECONDS else f"{_halves(seconds):g}m"


def _fives(seconds: float) -> int:
    return 5 * max(1, math.ceil(seconds / 5))


def _halves(seconds: float) -> float:
    return math.ceil(seconds / 30) / 2


def is_short(need: Need, study: Study, share: float = 1.0) -> bool:
    """Return whether the budget has no room for a verdict where a block takes ``share`` of what was seen."""
    return not study.stopping.blocks and need.total_s(share) > (1 + OVERSHOOT) * study.stopping.budget_s


def is_refused(need: Need, study: Study, share: float = 1.0) -> bool:
    """Return whether a verdict takes so much longer than the budget that the run ends at once.

    A run to which nobody gave a budget never does.
    """
    return (
        not study.stopping.open_ended and is_short(need, study, share) and need.total_s(share) > _longest_s(study, need)
    )


def _longest_s(study: Study, need: Need) -> float:
    """Return how long the run may take (seconds of workers): in a job of Slurm's no longer than that."""
    longest_s, end = LONGEST * study.stopping.budget_s, _job_end()
    return longest_s if end is None else min(longest_s, need.spent_s + max(0.0, end - time.time()))


def _job_end() -> float | None:
    try:
        return float(os.environ[JOB_END])
    except (KeyError, ValueError):
        return None


def refusal(need: Need, study: Study, again: str | None = None) -> BudgetTooShort:
    """Return how much a verdict takes, and the budget to give. ``again`` is the command that goes on with the run."""
    budget_s, total_s = study.stopping.budget_s, need.total_s()
    job = None if total_s > LONGEST * budget_s else "Slurm"
    return BudgetTooShort("--budget", budget_s, need.fewest, length(total_s), budget(total_s), job, again)


def going_on(need: Need) -> GoingOn:
    """Return the message that the run takes longer than its budget."""
    return GoingOn(need.block_s, need.fewest, length(need.total_s()))


def require(study: Study, worker_s: Sequence[float] = (), arms: int | None = None) -> None:
    """Raise TooShort where no machine could give a verdict within LONGEST times the budget that was given.

    ``worker_s`` has what workers took already (seconds), of which later ones take at least UNSURE. So many ``arms`` are
    left of the study's; None: all.
    """
    stopping = study.stopping
    if stopping.open_ended or stopping.blocks or study.one_run_each or not study.contrasts:
        return
    if worker_s:
        block_s = sum(worker_s) / len(worker_s) * (len(study.arms) if arms is None else arms)
        need = Need(0, study.fewest_blocks, 0.0, block_s, UNSURE * block_s)
        if need.total_s(UNSURE) > LONGEST * stopping.budget_s:
            raise TooShort(refusal(need, study))
        return
    least_s = LEAST_COMMAND_S if study.user_command else LEAST_WORKER_S
    lengths = (
        pace.first_length(study.user_command, study.workload_spec(arm), study.ranks_of(arm)) for arm in study.arms
    )
    first_s = sum(least_s + seconds for _, seconds in lengths)
    found = Need(0, study.fewest_blocks, 0.0, least_s * len(study.arms), first_s)
    if found.total_s() > LONGEST * stopping.budget_s:
        what = "worker" if study.user_command is None else "command"
        give = f"{math.ceil(found.total_s())}s"
        raise TooShort(BudgetBelowLeast("--budget", stopping.budget_s, found.fewest, what, least_s, give))


def block_s(run: Run, blocks: int, latest: int = LATEST, without: Collection[str] = ()) -> float:
    """Return the median seconds of the latest blocks, without the reference kernel.

    Arms that were dropped don't count, nor do the arms ``without`` which the run goes on.
    """
    dropped = {*run.dropped, *without}
    took = dict.fromkeys(range(max(0, blocks - latest), blocks), 0.0)
    for sample in run.samples():
        if sample.block in took and sample.arm not in dropped:  # a worker that failed was tried again
            took[sample.block] += sample.worker_seconds
    return median(took.values())


def wants_reading(run: Run, block: int) -> bool:
    """Return whether it is time to read the reference kernel again, before ``block``."""
    study, read = run.study, run.all(ReferenceKernel)
    if study.epochs or study.is_race or run.first(ReferenceKernelFailure):
        return False
    if any(reading.block == block for reading in read):
        return False
    if not read or study.stopping.blocks:
        return True
    since = run.events[run.events.index(read[-1]) :]
    resumed = any(isinstance(event, Resume) for event in since)  # which may be hours later
    return resumed or sum(event.worker_seconds for event in since) > study.stopping.budget_s / READINGS


def reading_s(run: Run) -> float:
    """The longest that a reading of the reference kernel took so far."""
    return max((reading.worker_seconds for reading in run.all(ReferenceKernel)), default=0.0)


def readings_s(run: Run, blocks: int) -> float:
    """Return what the readings of the reference kernel will take that are still to come after ``blocks`` blocks."""
    study, fixed = run.study, run.design
    if study.epochs or run.first(ReferenceKernelFailure):
        return 0.0
    read = len(run.all(ReferenceKernel))
    planned = fixed.planned if fixed else study.stopping.blocks
    to_come = study.stopping.blocks - read if study.stopping.blocks else READINGS - read
    return float(max(0, min(to_come, planned - blocks) if planned else to_come)) * reading_s(run)
