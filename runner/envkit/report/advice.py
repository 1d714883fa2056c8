"""Advice on what to use, do next or fix: per profile or image, or for several workloads together."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace

from envkit.analysis import ranking
from envkit.analysis.course import CUT_SHORT
from envkit.analysis.load import Load
from envkit.analysis.summary import Comparison, Summary
from envkit.bench.arms import Arm, Role
from envkit.bench.calibration import is_calibration
from envkit.messages import Message
from envkit.profiles import catalogue
from envkit.report import commands, grid, judgement, multi_workload
from envkit.report.ablation import costs_in_profile
from envkit.report.judgement import learns_otherwise, other_workload
from envkit.report.messages import advice as messages
from envkit.report.parts import Row
from envkit.stats.contribution import NO_DIFFERENCE, Contribution
from envkit.stats.interval import ERROR_RATE, Speedup
from envkit.stats.power import blocks_needed
from envkit.stats.verdict import Verdict
from envkit.worker.libraries import LIBRARIES

USED = (
    messages.Use,
    messages.UseFaster,
    messages.UseCopy,
    messages.UseInstances,
    messages.UseFound,
    messages.UseEverywhere,
)
MENDS = messages.MendWorker | messages.FindMemory | messages.FreeMemory
# What evidence calls the number of threads that OpenMP starts.
THREADS = "openmp.max_threads"


def rows(summary: Summary, folder: str = "DIR") -> list[Row]:
    """Return what to do, each thing once: of many profiles for the best, and for each with which something is wrong.

    ``folder`` is where the record is.
    """
    if summary.plan.across:
        found = _on_several_workloads(summary)
    elif summary.plan.compares_images:
        found = [one for comparison in summary.comparisons if (one := _of_image(summary, comparison))]
    elif summary.plan.ablated:
        found = _of_settings(summary)
    else:
        found = _per_profile(summary)
    found = [*dict.fromkeys(found)]
    found += [one for one in _to_go_on(summary, folder) if one not in found]
    labels = ["", *map(_label, found)]
    return [
        Row(label if label != before else "", one, whole=hasattr(one, "command"))
        for one, label, before in zip(found, labels[1:], labels, strict=False)
    ]


def _label(one: Message) -> str:
    if isinstance(one, USED):
        return "Use"
    return "Fix" if isinstance(one, messages.FindOutWhy | messages.Preload | messages.KeepThreads | MENDS) else "Next"


def _to_go_on(summary: Summary, folder: str) -> list[Message]:
    """Return how to come to a verdict, for a run that has none."""
    of_loader, unfinished = grid.is_grid(summary.plan), summary.course.unfinished
    resume = f"envkit {'loader-grid' if of_loader else 'bench'} --resume {shlex.quote(folder)}"
    if summary.failures and not any(one.speedup for one in summary.comparisons):
        arm = str(summary.failures[-1].arm)
        others = len(summary.plan.compared) > 1 and arm in [one.name for one in summary.plan.compared]
        if (lack := judgement.memory_that_ran_out(summary)) is not None:
            return [messages.FreeMemory(resume, lack.group, arm if lack.retaining else None)]
        mend = messages.FindMemory if judgement.was_killed(summary) else messages.MendWorker
        return [messages.MendWorker(resume, arm) if others else mend(resume)]
    if unfinished is not None and not summary.not_in_effect:
        return [messages.GoOn(unfinished.fewest, unfinished.blocks, unfinished.more_s, resume)]
    if summary.ended in CUT_SHORT:
        return [messages.Resume(resume)]
    return [] if of_loader or summary.not_in_effect else _to_know_more(summary)


def _to_know_more(summary: Summary) -> list[Message]:
    """Return how another run would come to a verdict."""
    if any(one.verdict == Verdict.TOO_FEW_SAMPLES for one in summary.comparisons):
        return [messages.RaiseLimit(_limit(summary, judgement.fewest(summary)))]
    if summary.plan.one_run_each and any(one.single_ratio for one in summary.comparisons):
        return [messages.RaiseLimit("--blocks 8", messages.INTERVAL)]
    return [messages.RunFor(messages.MEASURE, messages.BENCH)] if summary.samples and not summary.comparisons else []


def _limit(summary: Summary, blocks: int) -> str:
    """Return the option that lets a run have so many blocks."""
    if summary.plan.stopping.blocks:
        return f"--blocks {blocks}"
    minutes = math.ceil(max(blocks * summary.seconds_per_block, summary.plan.stopping.budget_s) / 60) + 1
    return f"--budget {minutes}m"


def _per_profile(summary: Summary) -> list[Message]:
    if chosen := _of_a_search(summary):
        return [chosen]
    found, best_told = list[Message](), False
    ranked = ranking.ranked(summary)
    if ranking.many(summary):  # the noisiest of them is the likeliest to be at the top without being known to be faster
        ranked = sorted(ranked, key=_by_worth)
    elif len(ranked) > 1:
        ranked = sorted(ranked, key=lambda one: (*_by_worth(one), -(ranking.ratio_of(one) or 0)))
    for one in ranked:
        arm = summary.plan.arm(one.arm)
        wrong = one.verdict == Verdict.NOT_IN_EFFECT or learns_otherwise(summary, one)
        if len(ranked) > 1 and best_told and not wrong and not summary.plan.at_once:
            continue
        if is_calibration(summary.plan):
            told = _after_calibration(one)
        elif other_workload(summary, arm):
            told = None  # a change of the training's code, which no profile makes
        elif learns_otherwise(summary, one):
            told = messages.ExplainLosses(arm.name, commands.ablate(summary, arm))
        else:
            told = too_much_interference(one) or _at_once(summary, arm) or _next(summary, one, arm)
        if told:
            found += _supported(summary, ranked, told) if isinstance(told, messages.Use) and not best_told else [told]
            best_told = best_told or not wrong
    if best_told:  # the table and the line on losses say which others not to use
        found = [one for one in found if not isinstance(one, messages.ExplainLosses)]
    unknown = (
        isinstance(found[0], messages.MeasureLonger | messages.KeepReference | messages.ChooseFreely)
        if found
        else False
    )
    return [*found, messages.RunFor(messages.TRY_ADVISE, _advise(summary))] if unknown and _is_local(summary) else found


def _supported(summary: Summary, ranked: Sequence[Comparison], fastest: messages.Use) -> list[Message]:
    """Return what to use: first a profile that leaves results and a vendor's check alone, then one faster still."""
    worth = [one for one in ranked if is_worth_it(one) and not judgement.losses_differ(one)]
    first = next((one for one in worth if judgement.is_supported(summary, one.arm)), None)
    if first is None or first is worth[0] or worth[0].speedup is None:
        return [fastest]
    return [
        _use(summary, summary.plan.arm(first.arm)), messages.UseFaster(worth[0].speedup.ratio, fastest.command)
    ]  # fmt: skip


def _by_worth(one: Comparison) -> tuple[bool, bool]:
    """Return a sort key: first those that are worth it, and of these first those whose losses match."""
    worth = is_worth_it(one)
    return not worth, worth and judgement.losses_differ(one)


def _is_local(summary: Summary) -> bool:
    return {arm.engine for arm in summary.plan.arms} == {"local"} and not summary.plan.distributed


def _advise(summary: Summary) -> str:
    own = summary.plan.user_command
    command = shlex.join(own.argv) if own else "python train.py"
    return f"{commands.from_folder(summary.plan)}envkit advise -- {command}"


def _of_a_search(summary: Summary) -> Message | None:
    """Return what to use after a search whose confirmation found both profiles faster: the one that it wrote.

    The search compared these two; a report compares both with the baseline alone.
    """
    if not summary.plan.contrasts_of(Role.CHOICE) or not all(
        is_worth_it(one) and not learns_otherwise(summary, one) and not too_much_interference(one)
        for one in summary.comparisons
    ):
        return None
    shipped, tuned = summary.plan.compared
    return messages.UseFound(
        shipped.name, tuned.name, commands.execute(summary, tuned, commands.torchrun(summary, tuned))
    )


def _of_settings(summary: Summary) -> list[Message]:
    """Return what to use of a profile that was ablated: less of it, if less of it is as good or better."""
    plan = summary.plan
    whole = summary.comparisons[0]
    found: list[Message] = [
        messages.ExplainLosses(plan.arm(one.arm).name) for one in summary.comparisons if learns_otherwise(summary, one)
    ]
    wrong = {one.arm for one in summary.comparisons if learns_otherwise(summary, one)}
    calmer = too_much_interference(whole)
    if whole.arm in wrong or calmer or not is_worth_it(whole):
        last = None if whole.arm in wrong else calmer or _next(summary, whole, plan.whole)
        return [*found, *([last] if last else [])]
    costly = [one.setting for one in summary.ablation if costs_in_profile(one)]
    matter = [one for one in summary.ablation if one.contribution not in NO_DIFFERENCE]
    enough = [one.setting.alone for one in matter if one.contribution == Contribution.ALONE]
    chosen = [one.without for one in costly] if len(costly) == 1 else enough if len(matter) == 1 else []
    arm = plan.arm(next((name for name in chosen if name is not None and name not in wrong), whole.arm))
    found.append(messages.Use(arm.profile, commands.execute(summary, arm)))
    if len(costly) > 1:
        found.append(messages.WithoutSettings(whole.arm, tuple(one.setting for one in costly)))
    return found


def is_worth_it(one: Comparison) -> bool:
    """Return whether to recommend it for its speed: it is faster by more than the margin, and not beside a load."""
    large = one.speedup is not None and not one.speedup.within_margin
    return one.verdict == Verdict.FASTER and large and one.load is None


def _of_image(summary: Summary, one: Comparison) -> Message | None:
    arm = summary.plan.arm(one.arm)
    reference = summary.plan.reference_of(arm)
    if one.verdict == Verdict.NOT_IN_EFFECT:
        return messages.FindOutWhy(commands.diagnose(summary, arm))
    if learns_otherwise(summary, one):
        return messages.ExplainLosses(arm.name)
    if calmer := too_much_interference(one):
        return calmer
    if is_worth_it(one):
        return messages.Use(arm.name, commands.execute(summary, arm))
    if one.verdict == Verdict.SLOWER and one.speedup is not None and not one.speedup.within_margin:
        return messages.KeepReference(reference.name)
    return _next(summary, one, arm)


def _on_several_workloads(summary: Summary) -> list[Message]:
    """Return what is wrong with profiles, which to use, and how long it takes to know more."""
    of_profile = {arm.profile: arm for arm in summary.plan.compared}
    found, wrong = list[Message](), set()
    for one in summary.comparisons:
        arm = summary.plan.arm(one.arm)
        if one.verdict == Verdict.NOT_IN_EFFECT:
            found.append(messages.FindOutWhy(commands.diagnose(summary, arm)))
        elif learns_otherwise(summary, one):
            wrong.add(arm.profile)
            found.append(messages.ExplainLosses(arm.name))
    loaded = [one.load for one in summary.comparisons if one.load]
    found += [quieter(loaded[0])] if loaded else []
    winners = [name for names in multi_workload.winners(summary).values() for name in names]
    everywhere = multi_workload.everywhere(summary)
    differ = {summary.plan.arm(one.arm).profile for one in summary.comparisons if judgement.losses_differ(one)}
    best, fast = (
        sorted((name for name in names if name not in wrong), key=lambda name: name in differ)
        for names in (everywhere, winners)
    )
    if best:
        found.append(messages.UseEverywhere(best[0], commands.execute(summary, of_profile[best[0]])))
    elif fast:
        arm = of_profile[fast[0]]
        found.append(messages.RunFor(messages.MEASURE_YOURS, commands.bench(summary, arm)))
    unknown = [
        (one.arm, one.speedup, one.deviation)
        for one in summary.comparisons
        if one.verdict == Verdict.NOT_FOUND and one.deviation and one.speedup
    ]
    if unknown:  # the noisiest decides
        name, speedup, deviation = max(unknown, key=lambda one: _needed(summary, one[2], one[1].blocks))
        found.append(_longer(summary, speedup, deviation).replace(arm=name))
    return found


def _at_once(summary: Summary, arm: Arm) -> Message | None:
    """Return whether to train several at once, if that was measured and is known, and how."""
    one = next((one for one in summary.instances if one.arm == arm.name), None)
    over = [found for found in (one.over_one_process, one.over_reference) if found] if one else []
    if not over or over[-1].verdict == Verdict.SLOWER:  # then the baseline is better than any number under the profile
        return None
    beside = over[0]
    if beside.verdict not in (Verdict.FASTER, Verdict.SLOWER) or beside.within_margin:
        return None
    if beside.verdict == Verdict.SLOWER:
        return messages.OneAfterTheOther(arm.profile, arm.instances or 1)
    return messages.UseInstances(arm.instances or 1, f"taskset -c CPUS {commands.execute(summary, arm)}")


def _next(summary: Summary, comparison: Comparison, arm: Arm) -> Message | None:
    if comparison.speedup is None:
        return _without_speedup(summary, comparison, arm)
    reference = summary.plan.reference_of(arm).name
    if comparison.speedup.within_margin:
        return messages.ChooseFreely(reference, arm.name)
    if comparison.verdict == Verdict.SLOWER:
        return messages.KeepReference(reference)
    if comparison.verdict == Verdict.NOT_FOUND and comparison.deviation:
        return _longer(summary, comparison.speedup, comparison.deviation)
    return _use(summary, arm) if comparison.verdict == Verdict.FASTER else None


def _use(summary: Summary, arm: Arm) -> Message:
    """Return how to use a profile; one without ranks of its own is copied to have those that were asked for."""
    if summary.plan.ranks_of(arm) > 1 and arm.ranks is None:
        each = summary.plan.parts_of(arm)
        name = f"{arm.profile}-{each}"
        command = commands.execute(summary, replace(arm, profile=name), commands.torchrun(summary, arm))
        return messages.UseCopy(arm.profile, name, each, command)
    kind = messages.Use if judgement.is_supported(summary, arm.name) else messages.UseAfterCheck
    return kind(arm.profile, commands.execute(summary, arm, commands.torchrun(summary, arm)))


def _without_speedup(summary: Summary, comparison: Comparison, arm: Arm) -> Message | None:
    command = commands.diagnose(summary, arm)
    if comparison.verdict == Verdict.NOT_IN_EFFECT:
        return _preload(summary) or _own_threads(summary) or messages.FindOutWhy(command)
    if comparison.verdict == Verdict.NOT_ENDED and summary.not_in_effect:
        return messages.FindOutWhy(command, summary.not_in_effect[0].arm)
    if comparison.verdict == Verdict.NOT_REACHED:
        return messages.TrainLonger(summary.plan.epochs)
    return None


def _preload(summary: Summary) -> Message | None:
    """Return which library to preload, if nothing is wrong but that the reader of some variables does not run."""
    readers: dict[str, list[str]] = {}
    wrong = [check for one in summary.not_in_effect for check in one.checks if not check.holds]
    for check in wrong:
        kind, _, name = check.key.partition(" ")
        variable = catalogue.load().get(name) if kind == "variable" else None
        if variable is None:
            return None
        library = next((reader for reader in variable.read_by if LIBRARIES[reader].profile), None)
        if library is None or summary.environments[summary.not_in_effect[0].arm].variables.get(name) == check.seen:
            return None
        readers.setdefault(library, []).append(name)
    if len(readers) != 1:
        return None
    (library, names), *_ = readers.items()
    return messages.Preload(library, LIBRARIES[library].profile, tuple(names))


def _own_threads(summary: Summary) -> Message | None:
    """Return what to remove from a user's training, if all that is wrong is its number of threads.

    A library takes that number from OMP_NUM_THREADS when it is loaded, so the training has changed it since.
    """
    wrong = {check.key for one in summary.not_in_effect for check in one.checks if not check.holds}
    return messages.KeepThreads() if summary.plan.user_command and wrong == {THREADS} else None


def too_much_interference(comparison: Comparison) -> Message | None:
    """Return what to do if nearly all blocks were disturbed from outside, and too few others are left."""
    return None if comparison.load is None else quieter(comparison.load)


def quieter(found: Load) -> Message:
    """Return the advice to measure again without a load."""
    return messages.QuieterMachine(found.blocks, found.of, found.programs)


def _after_calibration(comparison: Comparison) -> Message | None:
    if comparison.verdict in (Verdict.FASTER, Verdict.SLOWER):
        return messages.CalibrateAgain(ERROR_RATE)
    return messages.RunFor(messages.MEASURE, messages.BENCH) if comparison.speedup else None


def _longer(summary: Summary, found: Speedup, deviation: float) -> messages.MeasureLonger:
    """Return how long it takes to find a difference as small as the margin.

    If so many blocks were measured already, it is about a smaller difference.
    """
    margin, blocks = summary.plan.stopping.margin, found.blocks
    while (needed := _needed(summary, deviation, blocks, margin)) <= blocks:
        margin /= 2
    minutes = math.ceil(needed * summary.seconds_per_block / 60) + 1
    option = f"--blocks {needed}" if summary.plan.epochs or summary.plan.stopping.blocks else f"--budget {minutes}m"
    option += "" if margin == summary.plan.stopping.margin else f" --margin {margin * 100:g}%"
    return messages.MeasureLonger(margin * 100, needed, minutes, option)


def _needed(summary: Summary, deviation: float, blocks: int, margin: float | None = None) -> int:
    return blocks_needed(deviation, blocks, margin or summary.plan.stopping.margin, summary.plan.sharing)
