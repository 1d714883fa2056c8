"""Sentences of details: how sure a result is, what was verified, and where it was measured."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping

from envkit.analysis import ranking
from envkit.analysis.gpu_readings import trained_on
from envkit.analysis.summary import Summary
from envkit.bench.calibration import is_calibration
from envkit.bench.measure import PRECISE
from envkit.bench.plan import Plan
from envkit.checks import effect
from envkit.checks.effect import NOT_SEEN
from envkit.messages import from_json
from envkit.rendering import duration, ratio, text
from envkit.report.judgement import noise_floor
from envkit.report.parts import Row
from envkit.stats.interval import ERROR_RATE

CONFIDENCE = f"{1 - ERROR_RATE:.0%}"
# A drift is worth a line when chance alone shows one as clear this seldom.
DRIFT_P = 0.01
# Up to so many workloads of a run are named one by one.
MOST_WORKLOADS = 4


def verdicts(summary: Summary) -> list[Row]:
    """Return a row for each comparison: its speedup and verdict."""
    rows = []
    for comparison in ranking.ranked(summary):
        found, single = comparison.speedup, comparison.single_ratio
        if found is not None:
            speedup = f"{ratio(found.ratio)}x ({CONFIDENCE} CI {ratio(found.low)} to {ratio(found.high)})"
            only = f" {comparison.load.words}" if comparison.load else ""
            said = f"{speedup}: {found.words.upper()}{only}"
            rows.append(Row(comparison.arm, said, ranking.weight_of(comparison)))
        elif single is not None:
            rows.append(Row(comparison.arm, f"{ratio(single)}x from one run each, no confidence interval"))
        else:
            rows.append(Row(comparison.arm, f"no speedup: {comparison.words}", "bad"))
    return rows


def certainty(summary: Summary) -> list[Row]:
    """Return how far to trust the verdicts: blocks, error rate, noise floor, interference, drift and warm-up."""
    rows = []
    blocks = max((found.blocks for one in summary.comparisons if (found := one.speedup)), default=0)
    if blocks:
        rows.append(Row("blocks", _blocks(summary, blocks)))
        together = ", for all comparisons together" if len(summary.comparisons) > 1 else ""
        rows.append(Row("errors", f"false-positive rate at most {ERROR_RATE:.0%}{together}"))
    if blocks and not summary.plan.across and not summary.plan.distributed:
        rows.append(Row("floor", _floor(summary, blocks)))
    if summary.comparisons and summary.samples and not summary.plan.one_run_each:
        rows += _noise(summary)
        rows += _drift(summary)
    if set(summary.warm_up) - set(summary.unsteady):
        rows.append(Row("warm-up", _warm_up(summary)))
    elif summary.design and not summary.unsteady and not summary.plan.epochs:
        rows.append(Row("warm-up", _not_looked_for(summary)))
    course = summary.course
    if course.longer is not None:
        given, takes = (duration(course.longer[name]) for name in ("budget_s", "takes_s"))
        rows.append(Row("budget", f"a verdict took {takes}; the budget was {given}"))
    step = summary.plan.step_name
    first = [f"{one.arm} {1000 * one.step_s:,.2f} ms per {step}" for one in course.first_runs or ()]
    rows += [Row("first", f"{', '.join(first)}, in one process each: no comparison")] if first else []
    return [*rows, *_surroundings(summary)]


def _surroundings(summary: Summary) -> list[Row]:
    """Return which variables came from elsewhere than the profile."""
    own = dict.fromkeys(f"{name}={text}" for one in summary.measured for name, text in one.set_by_itself.items())
    variables: dict[str, Iterable[str]] = {
        "set by the command itself": own,
        "not passed on from your environment": summary.removed_variables,
        "kept from your environment": summary.allowed_variables,
    }
    return [Row("variables", f"{what}: {', '.join(names)}") for what, names in variables.items() if names]


def _blocks(summary: Summary, blocks: int) -> str:
    why = "stopped early: precise enough" if summary.ended == PRECISE else summary.ended or "not ended"
    return f"{blocks} ({why})"


def _floor(summary: Summary, blocks: int) -> str:
    known, share = summary.calibration, noise_floor(summary, blocks)
    if share is None:
        return "unknown; measure it with: envkit calibrate"
    found = f"baseline against itself stays within {ratio(1 / (1 + share))}x to {ratio(1 + share)}x in 95% of such runs"
    if known is None or is_calibration(summary.plan):
        return f"{found}; later runs use it while this record stays in results/"
    return f"{found} (calibrated {time.strftime('%Y-%m-%d', time.gmtime(known['time']))})"


def _noise(summary: Summary) -> list[Row]:
    rows = interference(summary)
    if summary.reference_kernel_range_s is not None:
        least, most = (1000 * seconds for seconds in summary.reference_kernel_range_s)
        neighbours = "neighbours on a shared host may use its cores, caches or memory"
        rows.append(Row("pace", f"the reference kernel took {least:.0f} to {most:.0f} ms, cause unknown; {neighbours}"))
    return rows


def interference(summary: Summary) -> list[Row]:
    """Return what disturbed a run from outside, and each result without that."""
    total = len({sample.block for sample in summary.samples})
    found = summary.interference
    if not found:
        return [Row("noise", f"no interference detected in {total} block{'' if total == 1 else 's'}")]
    rows = [Row("noise", f"{len(found)} of {total} blocks disturbed, for example {found[min(found)][0]}")]
    for one in summary.comparisons:
        if (rest := one.without_interference) is not None:
            without = f"{ratio(rest.ratio)}x ({ratio(rest.low)} to {ratio(rest.high)}), {rest.words}"
            rows.append(Row("", f"{one.arm} without them: {without}"))
    return rows


def _drift(summary: Summary) -> list[Row]:
    rows = []
    found = summary.reference_drift
    if found is not None and found.p_value < DRIFT_P:
        speed = f"{summary.plan.reference.name} ended at {ratio(1 / (1 + found.change))}x of its first speed"
        rows.append(Row("drift", f"{speed}; pairing in blocks cancels this"))
    for one in summary.comparisons:
        if one.drift is not None and one.drift.p_value < DRIFT_P / len(summary.comparisons):
            drifted = f"the speedup of {one.arm} ended at {ratio(1 + one.drift.change)}x of its first value"
            rows.append(Row("drift", f"{drifted}; the report gives its average", "bad"))
    return rows


def _not_looked_for(summary: Summary) -> str:
    if summary.plan.user_command is None:
        return "not measured: a sample has fewer than 100 steps"
    left_out = summary.plan.user_command.warmup_lines
    of_optimizer = summary.plan.user_command.optimizer_steps is not None
    each, said = ("steps", "") if of_optimizer else ("readings", ", as you said")
    given = f"the first {left_out} {each} are left out{said}" if left_out else "add --warmup-lines"
    if summary.plan.user_command.is_one_step:
        return "not measured: the whole command is one step; leave out --whole-command to time its optimizer's steps"
    return f"not measured: it takes 100 {each} in each sample; {given}"


def _warm_up(summary: Summary) -> str:
    if len(summary.plan.workloads) > 1:
        each = ", ".join(f"{name} {count}" for name, count in summary.left_out.items())
        least, most = min(summary.left_out.values()), max(summary.left_out.values())
        several = f"{least}" if least == most else f"{least} to {most}"
        shown = each if len(summary.left_out) <= MOST_WORKLOADS else several
        return f"steps left out at the start of each sample: {shown}"
    longest = max((steps for arm, steps in summary.warm_up.items() if arm not in summary.unsteady), default=0)
    left_out = summary.plan.training.warmup_steps + summary.skipped_steps
    steady = f"after {longest} step{'' if longest == 1 else 's'}" if longest else "from the first step on"
    return f"steady {steady}; the first {left_out} of each sample are left out"


def design(summary: Summary) -> str:
    """Return when interim analyses were planned, and by which rule the run could end there."""
    fixed = summary.design
    if fixed is None:
        return "no interim analyses"
    looks = ", ".join(str(look) for look in fixed.looks)
    spending = f"group-sequential at {ERROR_RATE:.0%} (O'Brien-Fleming spending)"
    shared = f", shared by {fixed.comparisons} comparisons" if fixed.comparisons > 1 else ""
    return f"{fixed.planned} blocks planned, analyses after {looks}: {spending}{shared}"


def what_was_run(summary: Summary) -> str:
    """``workload cnn``, or the user's own command."""
    own = summary.plan.user_command
    if own is None:
        return f"workload {trained(summary.plan)}"
    command = shlex.join(own.argv)
    named = "" if command.startswith(summary.plan.workload.rstrip("…")) else f"{summary.plan.workload}: "
    return f"command {named}{command}"


def trained(plan: Plan) -> str:
    """``cnn``, or ``cnn, translation (bf16-autocast)``: what is trained and in which modes; a command by its name."""
    names, modes = plan.workloads, plan.how
    what = ", ".join(names) if len(names) <= MOST_WORKLOADS else f"{plan.workload}, {len(names)} settings"
    return f"{what} ({modes})" if modes else what


def machine(summary: Summary) -> str:
    """The machine, engines and workload in one sentence."""
    host = summary.inspection(summary.plan.reference)
    facts, seen = host["facts"], host["fingerprint"]
    if summary.plan.user_command:  # it may run in another Python, with another torch
        used, gpu = ", ".join(summary.engines), ""
    else:
        torch = {name: of["inspection"]["packages"]["torch"] for name, of in summary.engines.items()}
        used, gpu = ", ".join(f"{name} (torch {version})" for name, version in torch.items()), trained_on(host)
    return f"{seen['cpu_model']}, {facts['usable_cpus']} usable CPUs{gpu}; {used}; {what_was_run(summary)}"


def together(reasons: Mapping[str, str]) -> dict[str, str]:
    """Turn what each thing's reason is into one entry for each reason: its things, joined by commas."""
    whats: dict[str, list[str]] = {}
    for what, reason in reasons.items():
        whats.setdefault(reason, []).append(what)
    return {", ".join(alike): reason for reason, alike in whats.items()}


def evidence(summary: Summary) -> list[Row]:
    """Return what was not measured, and of each arm how many of its settings were verified."""
    rows = [Row("left out", f"{names}: {why}") for names, why in together(summary.not_measured).items()]
    for one in summary.measured:
        number = len(one.checks) - len(one.unverified)
        if not one.in_effect:
            missed = [f"{check.key}: expected {shown(check.expected)}, {seen(check.seen)}" for check in one.checks
                      if not check.holds]  # fmt: skip
            rows.append(Row("settings", f"{one.arm} is NOT IN EFFECT: {'; '.join(missed)}", "bad"))
        elif number:
            rows.append(Row("settings", f"{one.arm}: {number} of {len(one.checks)} verified in every process"))
        rows += [Row("", f"{one.arm}: {check.key} not verified: {shown(check.seen)}") for check in one.unverified]
        rows += [Row("", f"{one.arm}: {text(from_json(one.not_observed))}")] if one.not_observed else []
    for first in summary.course.first_runs or ():
        missed = [f"{check.key}: expected {shown(check.expected)}, {seen(check.seen)}" for check in first.checks
                  if not check.holds]  # fmt: skip
        verified = f"{len(first.checks)} verified in its first process"
        state = f"NOT IN EFFECT: {'; '.join(missed)}" if missed else verified
        rows += [Row("settings", f"{first.arm}: {state}", "bad" if missed else "plain")] if first.checks else []
    return rows


def seen(value: object) -> str:
    """``seen gnu``; or that nothing could be."""
    return NOT_SEEN if value == NOT_SEEN else f"seen {shown(value)}"


def shown(value: object) -> str:
    return "nothing" if value is None else text(effect.shown(value))
