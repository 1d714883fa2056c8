"""What a summary says, in sentences: what was found and how sure it is."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterable, Mapping

from envkit.analysis import ranking
from envkit.analysis.gpu_readings import trained_on
from envkit.analysis.noise import interference_with
from envkit.analysis.summary import Comparison, Summary
from envkit.bench.calibration import is_calibration
from envkit.bench.measure import PRECISE
from envkit.bench.plan import Arm, Plan
from envkit.checks.effect import NOT_SEEN
from envkit.report import learning_wording, own_losses_wording
from envkit.report.parts import Row
from envkit.stats.interval import ERROR_RATE, Speedup
from envkit.stats.sequential import fewest_blocks
from envkit.stats.verdict import Verdict

CONFIDENCE = f"{1 - ERROR_RATE:.0%}"
# A drift is worth a line when chance alone shows one as clear this seldom.
DRIFT_P = 0.01
# How long a quota may hold a profile back (in seconds, over all samples) before the report says so.
NOTABLE_S = 0.1
# Up to so many workloads of a run are named one by one.
MOST_WORKLOADS = 4
# When a command of a user's own leaves evidence.


def verdicts(summary: Summary) -> list[Row]:
    """For each profile that was compared, what was found and what it means."""
    rows = []
    for comparison in ranking.ranked(summary):
        arm, found = comparison.arm, comparison.speedup
        if found is not None:
            interval = f"({CONFIDENCE} interval {found.low:.3f} to {found.high:.3f})"
            only = f" {comparison.load.words}" if comparison.load else ""
            said = f"{found.ratio:.3f} {interval}: {found.words.upper()}{only}"
            rows.append(Row(arm, said, ranking.weight_of(comparison)))
            reference = summary.plan.reference_of(summary.plan.arm(arm)).name
            rows += [] if summary.plan.arm(arm).instances else [Row("", _meaning(arm, found, reference))]
        elif comparison.single_ratio is not None:
            rows.append(Row(arm, f"{comparison.single_ratio:.3f}, from one run each: no interval, no verdict"))
        else:
            why = no_result(summary, comparison)
            rows.append(Row(arm, f"not worked out{why}", "bad" if why == f": {comparison.words}" else "plain"))
        rows += _losses(summary, comparison)
    return rows


def no_result(summary: Summary, comparison: Comparison) -> str:
    """Why there is no speedup: what follows ``no result``, with the colon where it takes one."""
    if comparison.verdict == Verdict.TOO_FEW_SAMPLES:
        return f": {_needed(summary)}"
    if comparison.verdict == Verdict.NOT_REACHED:
        return f": {learning_wording.no_target(summary, comparison)}"
    if comparison.verdict == Verdict.NOT_ENDED and summary.not_in_effect:
        culprit = summary.not_in_effect[0].arm
        return f": the run ended as {culprit} was not in effect; measure without it"
    if comparison.verdict == Verdict.NOT_ENDED:
        return " before the run has ended: go on with --resume"
    other = len(summary.plan.compared) > 1 and _culprit(summary) not in (None, comparison.arm)
    return f": {_failed(summary) if other and comparison.verdict == Verdict.FAILED else comparison.words}"


def _culprit(summary: Summary) -> str | None:
    """The arm whose worker failed last, which ends a run."""
    return summary.failures[-1]["arm"] if summary.failures else None


def _failed(summary: Summary) -> str:
    culprit = _culprit(summary)
    without = ", or measure without that" if culprit in [arm.name for arm in summary.plan.compared] else ""
    return f"the run ended as a worker of {culprit} failed: go on with --resume{without}"


def of_many(summary: Summary) -> list[Row]:
    """What stands below the table of many profiles, or of several workloads."""
    rows = []
    if any(one.verdict == Verdict.TOO_FEW_SAMPLES for one in summary.comparisons):
        rows.append(Row("note", f"no speedups: {_needed(summary)}"))
    if any(one.verdict == Verdict.FAILED for one in summary.comparisons) and _culprit(summary):
        rows.append(Row("note", f"no speedups: {_failed(summary)}"))
    if summary.ended is None:
        rows.append(Row("note", "no speedups before the run has ended: go on with --resume"))
    for comparison in summary.comparisons:
        if learns_otherwise(summary, comparison):
            rows += [Row("losses", f"of {comparison.arm}: {row.text}", "bad") for row in _losses(summary, comparison)]
    if not summary.plan.across:
        return [*rows, *(Row("losses", text) for text in ranking.losses(summary))]
    if any(summary.environments[arm.name].numerics != "same" for arm in summary.plan.compared):
        rows.append(Row("note", "a profile with * may change numerics: its losses may differ"))
    return rows  # a column of their table has the losses


def _needed(summary: Summary) -> str:
    """How many blocks an interval takes."""
    fewest = fewest_blocks(summary.plan.sharing)
    fix = f"raise {'--blocks' if summary.plan.stopping.blocks else '--budget'}"
    return f"an interval needs {fewest} complete blocks ({fix})"


def _meaning(arm: str, found: Speedup, reference: str) -> str:
    small = f", which is less than the {found.margin * 100:g}% that matter" if found.within_margin else ""
    if found.verdict == Verdict.FASTER:
        return f"{arm} takes {1 - 1 / found.ratio:.1%} less time than {reference} here{small}."
    if found.verdict == Verdict.SLOWER:
        return f"{arm} takes {1 / found.ratio - 1:.1%} more time than {reference} here{small}."
    between = f"Its time is within {1 / found.high - 1:+.1%} to {1 / found.low - 1:+.1%} of {reference}'s"
    return f"{between}, and may be equal." if found.verdict == Verdict.NOT_FOUND else f"{between}."


def learns_otherwise(summary: Summary, comparison: Comparison) -> bool:
    """Whether losses differ that should not. A profile that may change results must still have numbers for losses."""
    losses = comparison.losses
    may_differ = summary.environments[comparison.arm].numerics != "same"
    return losses is not None and not losses.agree and not (may_differ and math.isfinite(losses.largest_difference))


def other_workload(summary: Summary, arm: Arm) -> str | None:
    """What ``arm`` trains, where the reference trains something else."""
    name = summary.plan.workload_of(arm)
    return None if name == summary.plan.workload_of(summary.plan.reference_of(arm)) else name


def _losses(summary: Summary, comparison: Comparison) -> list[Row]:
    losses = comparison.losses
    arm = summary.plan.arm(comparison.arm)
    if other := other_workload(summary, arm):
        time = "whole trainings" if summary.plan.epochs else "times per image"
        return [Row("", f"It trains something else ({other}): {time} are compared, losses are not.")]
    if summary.plan.user_command is not None:
        return own_losses_wording.rows(summary, comparison, learns_otherwise(summary, comparison))
    if losses is None:
        return []
    if learns_otherwise(summary, comparison):
        by = f"by more than rounding (up to {losses.largest_difference:.1e})"
        return [Row("", f"LOSSES DIFFER {by}: it changes what is learnt", "bad")]
    near = f"differ by {losses.largest_difference:.1e} of their value at most,"
    return [Row("", f"Losses {near if losses.largest_difference else 'are equal to the last bit'} over {losses.steps} "
                    "steps.")]  # fmt: skip


def certainty(summary: Summary) -> list[Row]:
    """How far to trust the verdicts: blocks and error rate, noise floor, interference, drift, warm-up."""
    rows = []
    blocks = max((found.blocks for one in summary.comparisons if (found := one.speedup)), default=0)
    if blocks:
        rows.append(Row("sure", _sure(summary, blocks)))
    if blocks and not summary.plan.across and not summary.plan.distributed:
        rows.append(Row("floor", _floor(summary, blocks)))
    if summary.comparisons and summary.samples and not summary.plan.one_run_each:
        rows += _noise(summary)
        rows += _drift(summary)
    if set(summary.warm_up) - set(summary.unsteady):
        rows.append(Row("warm-up", _warm_up(summary)))
    elif summary.design and not summary.unsteady and not summary.plan.epochs:
        rows.append(Row("warm-up", _not_looked_for(summary)))
    rows += [Row("note", text, "bad") for text in unverified(summary)]
    for name in summary.unsteady:
        more = "--warmup-lines" if summary.plan.user_command else "--warmup-steps"
        rows.append(Row("warm-up", f"{name} was not steady within half of a sample: give more {more}", "bad"))
    return [*rows, *_surroundings(summary)]


def unverified(summary: Summary) -> list[str]:
    """Packages that were installed without being verified."""
    said = [seen["inspection"]["unverified_packages"] for seen in summary.engines.values()]
    return [f"UNVERIFIED package: {what}" for what in said if what]


def _surroundings(summary: Summary) -> list[Row]:
    """What held workers back, and which variables came from elsewhere than the profile."""
    rows = [Row("note", f"{one.arm} was held back by its CPU quota for {one.throttled_s:.1f} s, summed over CPUs")
            for one in summary.measured if one.throttled_s > NOTABLE_S]  # fmt: skip
    own = dict.fromkeys(f"{name}={text}" for one in summary.measured for name, text in one.set_by_itself.items())
    variables: dict[str, Iterable[str]] = {
        "set by the command itself": own,
        "not passed on from your environment": summary.removed_variables,
        "kept from your environment": summary.allowed_variables,
    }
    return [*rows, *(Row("note", f"{what}: {', '.join(names)}") for what, names in variables.items() if names)]


def _sure(summary: Summary, blocks: int) -> str:
    why = "stopped early, as it was precise enough" if summary.ended == PRECISE else summary.ended or "not ended"
    together = " for all of them together; so do the intervals hold" if len(summary.comparisons) > 1 else ""
    claimed = f"Where there is no difference, one is claimed in at most {ERROR_RATE:.0%} of such runs"
    return f"{blocks} blocks ({why}). {claimed}{together}."


def noise_floor(summary: Summary, blocks: int) -> float | None:
    """The share by which the baseline differs from itself here in so many ``blocks``; None where not calibrated.

    A calibration itself gives its own.
    """
    if is_calibration(summary.plan):
        deviation, seen = summary.comparisons[0].deviation, blocks
    elif summary.calibration:
        deviation, seen = summary.calibration["sd"], summary.calibration["blocks"]
    else:
        return None
    if deviation is None:
        return None
    from scipy.special import stdtrit

    farthest = float(stdtrit(seen - 1, 1 - ERROR_RATE / 2))  # Student's t
    return math.expm1(farthest * deviation / math.sqrt(blocks))


def _floor(summary: Summary, blocks: int) -> str:
    known, share = summary.calibration, noise_floor(summary, blocks)
    if share is None:
        return "how well baseline agrees with itself here is not known; measure it with: envkit calibrate"
    found = f"baseline against itself differs by less than {share:.1%} in 95% of runs of so many blocks here"
    if known is None or is_calibration(summary.plan):
        return f"{found}; later runs show it next to their speedups, if this record stays in results/"
    return f"{found} (calibrated {time.strftime('%Y-%m-%d', time.gmtime(known['time']))})"


def _noise(summary: Summary) -> list[Row]:
    rows = interference(summary)
    if summary.reference_kernel_range_s is not None:
        least, most = summary.reference_kernel_range_s
        took = f"the same fixed work took {least * 1000:.0f} ms in one block and {most * 1000:.0f} ms in another"
        changed = f"the machine's own pace changed, though no counter shows why: {took}"
        rows.append(Row("", f"{changed}. Others may share its cores, caches or memory unseen: more blocks narrow the "
                            "interval, a machine of one's own does more"))  # fmt: skip
    return rows


def interference(summary: Summary) -> list[Row]:
    """What disturbed a run from outside, and what of its verdicts changes without that."""
    total = len({sample.block for sample in summary.samples})
    found = summary.interference
    if not found:
        return [Row("noise", f"none of {total} blocks was disturbed from outside, as far as can be seen")]
    rows = [Row("noise", f"{len(found)} of {total} blocks disturbed from outside, for example {found[min(found)][0]}")]
    if ranking.many(summary):
        return [*rows, Row("", _without_interference(summary))]
    for one in summary.comparisons:
        whose = f"{one.arm} " if len(summary.comparisons) > 1 else ""
        if (rest := one.without_interference) is not None:
            text = f"{rest.ratio:.3f} ({rest.low:.3f} to {rest.high:.3f}), {rest.words}"
            rows.append(Row("", f"{whose}without them: {text}"))
        elif one.speedup is not None and _was_hit(summary, one):
            rows.append(Row("", f"{whose}without them: too few blocks are left for an interval"))
    return rows


def _was_hit(summary: Summary, comparison: Comparison) -> bool:
    arm = summary.plan.arm(comparison.arm)
    return bool(interference_with((summary.plan.reference_of(arm), arm), summary.interference))


def _without_interference(summary: Summary) -> str:
    """Name, of many profiles, those whose verdict changes without the disturbed blocks."""
    hit = [one for one in summary.comparisons if one.speedup and _was_hit(summary, one)]
    others = [f"{one.arm}: {rest.words}" for one in hit if (rest := one.without_interference) and one.speedup
              and rest.verdict != one.speedup.verdict]  # fmt: skip
    if few := [one.arm for one in hit if one.without_interference is None]:
        whose = "" if len(few) == len(summary.comparisons) else f" of {', '.join(few)}"
        others.append(f"too few blocks{whose} are left for intervals")
    return f"without them: {'; '.join(others)}" if others else "without them all verdicts are the same"


def _drift(summary: Summary) -> list[Row]:
    rows = []
    found = summary.reference_drift
    if found is not None and found.p_value < DRIFT_P:
        than = f"{abs(found.change):.1%} {'more' if found.change > 0 else 'less'} time at the end than at the start"
        rows.append(Row("drift", f"{summary.plan.reference.name} took {than}; blocks cancel that"))
    for one in summary.comparisons:
        if one.drift is not None and one.drift.p_value < DRIFT_P / len(summary.comparisons):
            change = f"changed by {one.drift.change:+.1%} in the course of the run"
            rows.append(Row("drift", f"the speedup of {one.arm} itself {change}: it is an average", "bad"))
    return rows


def _not_looked_for(summary: Summary) -> str:
    if summary.plan.user_command is None:
        return "not looked for: a sample has fewer than 100 steps"
    left_out = summary.plan.user_command.warmup_lines
    of_optimizer = summary.plan.user_command.optimizer_steps is not None
    each, said = ("steps", "") if of_optimizer else ("readings", ", as you said")
    given = f"the first {left_out} {each} are left out{said}" if left_out else "give --warmup-lines"
    if summary.plan.user_command.is_one_step:
        fix = "leave out --whole-command to time its optimizer's steps"
        return f"not looked for: the whole command is one step, its start too; {fix}"
    return f"not looked for, which takes 100 {each} in each sample and as many in all: {given}"


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
    """When the run looked at its results, and by which rule it could end there."""
    fixed = summary.design
    if fixed is None:
        return "no looks: every block that was measured counts"
    looks = ", ".join(str(look) for look in fixed.looks)
    spending = f"group-sequential, {ERROR_RATE:.0%} spent over them (O'Brien-Fleming shape)"
    shared = f", shared by {fixed.comparisons} comparisons" if fixed.comparisons > 1 else ""
    return f"{fixed.planned} blocks planned, looks after {looks}: {spending}{shared}"


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
    """Say what was not measured, and of each profile whether it was in effect; of many, count those that were."""
    rows = [Row("left out", f"{names}: {why}") for names, why in together(summary.not_measured).items()]
    proven = sum(one.in_effect and bool(one.checks) and not one.unverified for one in summary.measured)
    if ranking.many(summary) and proven:
        what = "pairs of a profile and a workload" if summary.plan.across else "profiles"
        rows.append(Row("effect", f"{proven} {what}: what each expects was observed in all its samples"))
    for one in summary.measured:
        if not one.in_effect:
            rows.append(Row("effect", f"{one.arm} is NOT IN EFFECT: no speedup is worked out", "bad"))
            rows += [
                Row("", f"{check.key}: expected {shown(check.expected)}, {seen(check.seen)}")
                for check in one.checks
                if not check.holds
            ]
        elif len(one.checks) > len(one.unverified) and not ranking.many(summary):
            count = f"({len(one.checks) - len(one.unverified)} of {len(one.checks)})"
            rows.append(Row("effect", f"{one.arm}: what it expects was observed in every sample {count}"))
        rows += [Row("effect", f"{one.arm}: {check.key} is NOT VERIFIED: {check.seen}") for check in one.unverified]
        if one.not_observed:
            rows.append(Row("", one.not_observed))
    return rows


def seen(value: object) -> str:
    """``seen gnu``; or that nothing could be."""
    return NOT_SEEN if value == NOT_SEEN else f"seen {shown(value)}"


def shown(value: object) -> str:
    return "nothing" if value is None else str(value)
