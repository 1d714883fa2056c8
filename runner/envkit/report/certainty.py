"""The statistics behind the verdicts: blocks, error rate, noise floor, interference, drift and warm-up."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from envkit.analysis.summary import Comparison, Summary
from envkit.bench.calibration import is_calibration
from envkit.bench.measure import PRECISE
from envkit.messages import Message
from envkit.report.judgement import noise_floor
from envkit.report.messages import cautions as warned
from envkit.report.messages import certainty as messages
from envkit.report.messages import lines
from envkit.report.messages.headings import NOT_ENDED
from envkit.report.parts import Row
from envkit.stats.interval import ERROR_RATE

CONFIDENCE = f"{1 - ERROR_RATE:.0%}"
# A drift is worth a line if chance alone shows one as clear this seldom.
DRIFT_P = 0.01
# Up to so many workloads of a run are named one by one.
MOST_WORKLOADS = 4


def rows(summary: Summary) -> list[Row]:
    """Return how far to trust the verdicts, and which variables came from elsewhere than the profile."""
    found = []
    blocks = max((one.speedup.blocks for one in summary.comparisons if one.speedup), default=0)
    if blocks:
        several = len(summary.comparisons) if len(summary.comparisons) > 1 else None
        found += [Row("blocks", _blocks(summary, blocks)), Row("errors", messages.ErrorRate(ERROR_RATE, several))]
    if blocks and not summary.plan.across and not summary.plan.distributed:
        found.append(Row("floor", floor(summary, blocks)))
    if summary.comparisons and summary.samples and not summary.plan.one_run_each:
        found += [*interference(summary), *_pace(summary), *_drift(summary)]
    if set(summary.warm_up) - set(summary.unsteady):
        found.append(Row("warm-up", _warm_up(summary)))
    elif summary.design and not summary.unsteady and not summary.plan.epochs:
        found.append(Row("warm-up", _no_warm_up(summary)))
    if (longer := summary.course.longer) is not None:
        found.append(Row("budget", messages.OverBudget(longer["takes_s"], longer["budget_s"])))
    step = summary.plan.step_name
    first = tuple(messages.FirstTime(one.arm, 1000 * one.step_s, step) for one in summary.course.first_runs or ())
    found += [Row("first", messages.FirstRuns(first))] if first else []
    return [*found, *_variables(summary)]


def _variables(summary: Summary) -> list[Row]:
    own = dict.fromkeys(f"{name}={value}" for one in summary.measured for name, value in one.set_by_itself.items())
    sources: Sequence[tuple[str, Iterable[str]]] = (
        (messages.SET_BY_COMMAND, own),
        (messages.NOT_PASSED_ON, summary.removed_variables),
        (messages.KEPT, summary.allowed_variables),
    )
    return [Row("variables", messages.Variables(source, tuple(names))) for source, names in sources if names]


def _blocks(summary: Summary, blocks: int) -> Message:
    if summary.ended == PRECISE:
        return messages.BlocksMeasured(blocks, messages.PRECISE_ENOUGH)
    return messages.BlocksMeasured(blocks, summary.ended or NOT_ENDED)


def floor(summary: Summary, blocks: int) -> Message:
    """Return by how much the baseline differs from itself in so many blocks, or how to measure that."""
    known, share = summary.calibration, noise_floor(summary, blocks)
    if share is None:
        return messages.NoNoiseFloor()
    ends = (1 / (1 + share), 1 + share)
    if known is None or is_calibration(summary.plan):
        return messages.OwnNoiseFloor(*ends)
    return messages.NoiseFloor(*ends, time.strftime("%Y-%m-%d", time.gmtime(known["time"])))


def _pace(summary: Summary) -> list[Row]:
    if summary.reference_kernel_range_s is None:
        return []
    least, most = (1000 * seconds for seconds in summary.reference_kernel_range_s)
    return [Row("pace", messages.KernelTimes(least, most))]


def interference(summary: Summary) -> list[Row]:
    """Return what disturbed a run from outside, and each result without that."""
    blocks, found = len({sample.block for sample in summary.samples}), summary.interference
    if not found:
        return [Row("noise", lines.Undisturbed(blocks))]
    first = Row("noise", lines.Disturbed(len(found), blocks, found[min(found)][0]))
    return [first, *(Row("", one) for one in map(_without, summary.comparisons) if one is not None)]


def _without(one: Comparison) -> Message | None:
    rest = one.without_interference
    return None if rest is None else lines.WithoutDisturbed(rest.ratio, rest.low, rest.high, rest.words, one.arm)


def _drift(summary: Summary) -> list[Row]:
    found, drift = [], summary.reference_drift
    if drift is not None and drift.p_value < DRIFT_P:
        reference = summary.plan.reference.name
        found.append(Row("drift", messages.ReferenceDrifted(reference, 1 / (1 + drift.change))))
    for one in summary.comparisons:
        if one.drift is not None and one.drift.p_value < DRIFT_P / len(summary.comparisons):
            found.append(Row("drift", warned.SpeedupDrifted(1 + one.drift.change, one.arm), "bad"))
    return found


def _no_warm_up(summary: Summary) -> Message:
    """Return why the warm-up was not measured."""
    own = summary.plan.user_command
    if own is None:
        return messages.SampleTooShort("steps")
    if own.is_one_step:
        return messages.CommandIsOneStep()
    unit = "readings" if own.optimizer_steps is None else "steps"
    left_out = own.warmup_lines or None
    return messages.SampleTooShort(unit, left_out, None if left_out else "--warmup-lines")


def _warm_up(summary: Summary) -> Message:
    if len(summary.plan.workloads) > 1:
        return _several_left_out(summary)
    longest = max((steps for arm, steps in summary.warm_up.items() if arm not in summary.unsteady), default=0)
    left_out = summary.plan.training.warmup_steps + summary.skipped_steps
    return messages.SteadyFrom(longest + 1, left_out)


def _several_left_out(summary: Summary) -> Message:
    counts = summary.left_out
    if len(counts) <= MOST_WORKLOADS:
        return messages.StepsLeftOut(tuple(messages.Numbered(name, count) for name, count in counts.items()))
    least, most = min(counts.values()), max(counts.values())
    return messages.StepsLeftOut(least=least, most=None if least == most else most)


def design(summary: Summary) -> Message:
    """Return the planned interim analyses and their stopping rule."""
    fixed = summary.design
    if fixed is None:
        return messages.NoInterimAnalyses()
    several = fixed.comparisons if fixed.comparisons > 1 else None
    return messages.InterimAnalyses(fixed.planned, tuple(fixed.looks), ERROR_RATE, several)
