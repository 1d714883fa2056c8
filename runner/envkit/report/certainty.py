"""The statistics behind the verdicts: blocks, error rate, noise floor, interference, drift and warm-up."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from envkit.analysis.result import Comparison, Result
from envkit.bench.arms import View
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


def rows(result: Result) -> list[Row]:
    """Return how far to trust the verdicts, and which variables came from elsewhere than the profile."""
    found = []
    blocks = max((comparison.speedup.blocks for comparison in result.comparisons if comparison.speedup), default=0)
    if blocks:
        several = len(result.comparisons) if len(result.comparisons) > 1 else None
        found += [Row("blocks", _blocks(result, blocks)), Row("errors", messages.ErrorRate(ERROR_RATE, several))]
    if blocks and result.study.view is not View.WORKLOADS and not result.study.distributed:
        found.append(Row("floor", floor(result, blocks)))
    if result.comparisons and result.samples and not result.study.one_run_each:
        found += [*interference(result), *_pace(result), *_drift(result)]
    if set(result.warm_up) - set(result.unsteady):
        found.append(Row("warm-up", _warm_up(result)))
    elif result.design and not result.unsteady and not result.study.epochs:
        found.append(Row("warm-up", _no_warm_up(result)))
    if (longer := result.course.longer) is not None:
        found.append(Row("budget", messages.OverBudget(longer["takes_s"], longer["budget_s"])))
    step = result.study.step_name
    first = tuple(messages.FirstTime(one.arm, 1000 * one.step_s, step) for one in result.course.first_runs or ())
    found += [Row("first", messages.FirstRuns(first))] if first else []
    return [*found, *_variables(result)]


def _variables(result: Result) -> list[Row]:
    own = dict.fromkeys(
        f"{name}={value}" for measured in result.measured for name, value in measured.set_by_itself.items()
    )
    sources: Sequence[tuple[str, Iterable[str]]] = (
        (messages.SET_BY_COMMAND, own),
        (messages.NOT_PASSED_ON, result.removed_variables),
        (messages.KEPT, result.allowed_variables),
    )
    return [Row("variables", messages.Variables(source, tuple(names))) for source, names in sources if names]


def _blocks(result: Result, blocks: int) -> Message:
    if result.ended == PRECISE:
        return messages.BlocksMeasured(blocks, messages.PRECISE_ENOUGH)
    return messages.BlocksMeasured(blocks, result.ended or NOT_ENDED)


def floor(result: Result, blocks: int) -> Message:
    """Return by how much the baseline differs from itself in so many blocks, or how to measure that."""
    known, share = result.calibration, noise_floor(result, blocks)
    if share is None:
        return messages.NoNoiseFloor()
    ends = (1 / (1 + share), 1 + share)
    if known is None or result.study.view is View.CALIBRATION:
        return messages.OwnNoiseFloor(*ends)
    return messages.NoiseFloor(*ends, time.strftime("%Y-%m-%d", time.gmtime(known["time"])))


def _pace(result: Result) -> list[Row]:
    if result.reference_kernel_range_s is None:
        return []
    least, most = (1000 * seconds for seconds in result.reference_kernel_range_s)
    return [Row("pace", messages.KernelTimes(least, most))]


def interference(result: Result) -> list[Row]:
    """Return what disturbed a run from outside, and each result without that."""
    blocks, found = len({sample.block for sample in result.samples}), result.interference
    if not found:
        return [Row("noise", lines.Undisturbed(blocks))]
    first = Row("noise", lines.Disturbed(len(found), blocks, found[min(found)][0]))
    return [first, *(Row("", one) for one in map(_without, result.comparisons) if one is not None)]


def _without(comparison: Comparison) -> Message | None:
    rest = comparison.without_interference
    return None if rest is None else lines.WithoutDisturbed(rest.ratio, rest.low, rest.high, rest.words, comparison.arm)


def _drift(result: Result) -> list[Row]:
    found, drift = [], result.reference_drift
    if drift is not None and drift.p_value < DRIFT_P:
        reference = result.study.reference.name
        found.append(Row("drift", messages.ReferenceDrifted(reference, 1 / (1 + drift.change))))
    for comparison in result.comparisons:
        if comparison.drift is not None and comparison.drift.p_value < DRIFT_P / len(result.comparisons):
            found.append(Row("drift", warned.SpeedupDrifted(1 + comparison.drift.change, comparison.arm), "bad"))
    return found


def _no_warm_up(result: Result) -> Message:
    """Return why the warm-up was not measured."""
    own = result.study.user_command
    if own is None:
        return messages.SampleTooShort("steps")
    if own.is_one_step:
        return messages.CommandIsOneStep()
    unit = "readings" if own.optimizer_steps is None else "steps"
    left_out = own.warmup_lines or None
    return messages.SampleTooShort(unit, left_out, None if left_out else "--warmup-lines")


def _warm_up(result: Result) -> Message:
    if len(result.study.workloads) > 1:
        return _several_left_out(result)
    longest = max((steps for arm, steps in result.warm_up.items() if arm not in result.unsteady), default=0)
    left_out = result.study.training.warmup_steps + result.skipped_steps
    return messages.SteadyFrom(longest + 1, left_out)


def _several_left_out(result: Result) -> Message:
    counts = result.left_out
    if len(counts) <= MOST_WORKLOADS:
        return messages.StepsLeftOut(tuple(messages.Numbered(name, count) for name, count in counts.items()))
    least, most = min(counts.values()), max(counts.values())
    return messages.StepsLeftOut(least=least, most=None if least == most else most)


def design(result: Result) -> Message:
    """Return the planned interim analyses and their stopping rule."""
    fixed = result.design
    if fixed is None:
        return messages.NoInterimAnalyses()
    several = fixed.comparisons if fixed.comparisons > 1 else None
    return messages.InterimAnalyses(fixed.planned, tuple(fixed.looks), ERROR_RATE, several)
