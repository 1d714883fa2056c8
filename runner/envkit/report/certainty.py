"""The statistics behind the verdicts: blocks, error rate, noise floor, interference, drift and warm-up."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from envkit.analysis.ranking import many
from envkit.analysis.result import Comparison, Measured, Result
from envkit.bench.arms import View
from envkit.bench.decide import PRECISE
from envkit.bench.study import MOST_WORKLOADS
from envkit.messages import Message
from envkit.report.cautions import DRIFT_P
from envkit.report.judgement import noise_floor
from envkit.report.messages import cautions as warned
from envkit.report.messages import certainty as messages
from envkit.report.messages import lines
from envkit.report.messages.headings import NOT_ENDED
from envkit.report.parts import Row, labelled_once
from envkit.stats.drift import Drift
from envkit.stats.interval import ERROR_RATE
from envkit.stats.power import blocks_past_extremes
from envkit.stats.sequential import Design
from envkit.worker.request import UserCommand

CONFIDENCE = f"{1 - ERROR_RATE:.0%}"


def rows(result: Result) -> list[Row]:
    """Return how far to trust the verdicts, and which variables came from elsewhere than the profile."""
    study, comparisons = result.study, result.comparisons
    rows = []
    blocks = max((comparison.speedup.blocks for comparison in comparisons if comparison.speedup), default=0)
    if blocks:
        several = len(comparisons) if len(comparisons) > 1 else None
        rows += [Row("blocks", _blocks(result.ended, blocks)), Row("errors", messages.ErrorRate(ERROR_RATE, several))]
        if any(comparison.spans_blocks and not comparison.dropped for comparison in comparisons):
            rows.append(Row("", messages.SpansBlocks(blocks_past_extremes(study.sharing))))
        rows += _total_times(comparisons)
    if blocks and study.view is not View.WORKLOADS and not study.distributed:
        rows.append(Row("floor", floor(result, blocks)))
    if comparisons and result.samples and not study.one_run_each:
        measured = len({sample.block for sample in result.samples})
        rows += [*interference(result.interference, measured, comparisons), *_pace(result.reference_kernel_range_s)]
        rows += _drift(study.reference.name, result.reference_drift, comparisons)
    if steady := [steps for arm, steps in result.lengths.warm_up.items() if arm not in result.lengths.unsteady]:
        left_out = study.training.warmup_steps + result.lengths.skipped_steps
        several_counts = _several_left_out(result.left_out) if len(study.workloads) > 1 else None
        rows.append(Row("warm-up", several_counts or messages.SteadyFrom(max(steady) + 1, left_out)))
    elif result.design and not result.lengths.unsteady and not study.epochs:
        rows.append(Row("warm-up", _no_warm_up(study.user_command)))
    if (longer := result.course.longer) is not None:
        rows.append(Row("budget", messages.OverBudget(longer["takes_s"], longer["budget_s"])))
    runs = result.course.first_runs or ()
    first = tuple(messages.FirstTime(run.arm, 1000 * run.step_s, study.step_name) for run in runs)
    rows += [Row("first", messages.FirstRuns(first))] if first else []
    sources: Sequence[tuple[str, Iterable[str]]] = (
        (messages.SET_BY_COMMAND, _set_by_command(result.measured)),
        (messages.NOT_PASSED_ON, result.removed_variables),
        (messages.KEPT, result.allowed_variables),
    )
    rows += [Row("variables", messages.Variables(source, tuple(names))) for source, names in sources if names]
    return rows


def _set_by_command(measured: Sequence[Measured]) -> list[str]:
    """Return the performance variables that processes had set by themselves, as ``NAME=value``."""
    return [*dict.fromkeys(f"{name}={value}" for arm in measured for name, value in arm.set_by_itself.items())]


def _blocks(ended: str | None, blocks: int) -> Message:
    return messages.BlocksMeasured(blocks, messages.PRECISE_ENOUGH if ended == PRECISE else ended or NOT_ENDED)


def floor(result: Result, blocks: int) -> Message:
    """Return by how much the baseline differs from itself in so many blocks, or how to measure that."""
    known, share = result.calibration, noise_floor(result, blocks)
    if share is None:
        return messages.NoNoiseFloor()
    ends = (1 / (1 + share), 1 + share)
    if known is None or result.study.view is View.CALIBRATION:
        return messages.OwnNoiseFloor(*ends)
    return messages.NoiseFloor(*ends, time.strftime("%Y-%m-%d", time.gmtime(known["time"])))


def _total_times(comparisons: Sequence[Comparison]) -> list[Row]:
    """Return the ratios of the total times; of many arms, those that lie outside of the interval."""
    totals = list[Message]()
    for comparison in comparisons:
        if comparison.speedup is None or comparison.total_ratio is None:
            continue
        arm = comparison.arm if len(comparisons) > 1 else None
        if not comparison.speedup.low <= comparison.total_ratio <= comparison.speedup.high:
            totals.append(messages.OtherTotalTime(comparison.total_ratio, arm))
        elif not many(comparisons):
            totals.append(messages.TotalTime(comparison.total_ratio, arm))
    return labelled_once(Row("total", message) for message in totals)


def _pace(kernel_range_s: tuple[float, float] | None) -> list[Row]:
    if kernel_range_s is None:
        return []
    least, most = (1000 * seconds for seconds in kernel_range_s)
    return [Row("pace", messages.KernelTimes(least, most))]


def interference(
    by_block: Mapping[int, Sequence[Message]], blocks: int, comparisons: Sequence[Comparison]
) -> list[Row]:
    """Return what disturbed a run of so many blocks from outside, by block, and each result without that."""
    if not by_block:
        return [Row("noise", lines.Undisturbed(blocks))]
    first = Row("noise", lines.Disturbed(len(by_block), blocks, by_block[min(by_block)][0]))
    return [first, *(Row("", message) for message in map(_without, comparisons) if message is not None)]


def _without(comparison: Comparison) -> Message | None:
    quiet = comparison.without_interference
    if quiet is None:
        return None
    return lines.WithoutDisturbed(quiet.ratio, quiet.low, quiet.high, quiet.words, comparison.arm)


def _drift(reference: str, drift: Drift | None, comparisons: Sequence[Comparison]) -> list[Row]:
    """Return how the reference's own time drifted, and the speedups that did."""
    rows = []
    if drift is not None and drift.p_value < DRIFT_P:
        rows.append(Row("drift", messages.ReferenceDrifted(reference, 1 / (1 + drift.change))))
    for comparison in comparisons:
        if comparison.drift is not None and comparison.drift.p_value < DRIFT_P / len(comparisons):
            rows.append(Row("drift", warned.SpeedupDrifted(1 + comparison.drift.change, comparison.arm), "bad"))
    return rows


def _no_warm_up(command: UserCommand | None) -> Message:
    """Return why the warm-up was not measured."""
    if command is None:
        return messages.SampleTooShort("steps")
    if command.is_one_step:
        return messages.CommandIsOneStep()
    unit = "readings" if command.optimizer_steps is None else "steps"
    left_out = command.warmup_lines or None
    return messages.SampleTooShort(unit, left_out, None if left_out else "--warmup-lines")


def _several_left_out(counts: Mapping[str, int]) -> Message:
    """Return how many steps of each workload don't count, or the least and the most of many."""
    if len(counts) <= MOST_WORKLOADS:
        return messages.StepsLeftOut(tuple(messages.Numbered(name, count) for name, count in counts.items()))
    least, most = min(counts.values()), max(counts.values())
    return messages.StepsLeftOut(least=least, most=None if least == most else most)


def interim_analyses(fixed: Design | None) -> Message:
    """Return the planned interim analyses and their stopping rule."""
    if fixed is None:
        return messages.NoInterimAnalyses()
    several = fixed.comparisons if fixed.comparisons > 1 else None
    return messages.InterimAnalyses(fixed.planned, tuple(fixed.looks), ERROR_RATE, several)
