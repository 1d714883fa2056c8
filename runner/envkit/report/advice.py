"""Advice on what to use, do next or fix: per profile or image, or for several workloads together."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.analysis import ranking
from envkit.analysis.course import CUT_SHORT
from envkit.analysis.load import Load
from envkit.analysis.result import Comparison, Result
from envkit.bench import race, record
from envkit.bench.arms import Arm, Role, View
from envkit.bench.decide import FAILED
from envkit.bench.events import Failure
from envkit.bench.memory_limit import OverMemory
from envkit.bench.study import StoppingRule
from envkit.messages import Message
from envkit.profiles import catalogue
from envkit.profiles.environment import Environment
from envkit.report import commands, judgement
from envkit.report.ablation import costs_in_profile
from envkit.report.commands import Commands, name_of_copy
from envkit.report.judgement import losses_wrongly_differ
from envkit.report.messages import advice as messages
from envkit.report.parts import Row, labelled_once
from envkit.stats.contribution import NO_DIFFERENCE, Contribution
from envkit.stats.interval import ERROR_RATE, Speedup
from envkit.stats.power import blocks_needed
from envkit.stats.verdict import Verdict
from envkit.worker.libraries import LIBRARIES
from envkit.worker.request import UserCommand

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
# A limit on memory that allows an arm is a multiple of this share: two processes of one profile differ by a little.
LIMIT_STEP = 0.05


def rows(result: Result, folder: str = "DIR") -> list[Row]:
    """Return what to do, each thing once: of many profiles for the best, and for each with which something is wrong.

    ``folder`` is where the record is.
    """
    study, unfinished = result.study, result.course.unfinished
    if study.is_race:
        return _of_race(result, folder)
    if study.view is View.WORKLOADS:
        advised = _on_several_workloads(result)
    elif study.view is View.IMAGES:
        advised = [message for comparison in result.comparisons if (message := _of_image(result, comparison))]
    elif study.view is View.SETTINGS:
        advised = _of_settings(result)
    else:
        advised = _per_profile(result)
    resume = f"envkit {'loader-grid' if study.view is View.LOADERS else 'bench'} --resume {shlex.quote(folder)}"
    more: list[Message] = []
    if result.failures and not any(comparison.speedup for comparison in result.comparisons):
        more = [_mend(result.failures[-1], [arm.name for arm in study.compared], resume)]
    elif unfinished is not None and not result.not_in_effect:
        more = [messages.GoOn(unfinished.fewest, unfinished.blocks, unfinished.more_s, resume)]
    elif result.ended in CUT_SHORT:
        more = [messages.Resume(resume)]
    elif study.view is not View.LOADERS and not result.not_in_effect:
        limit = _limit(study.stopping, study.fewest_blocks, result.seconds_per_block)
        more = _to_know_more(result.comparisons, limit, study.one_run_each, bool(result.samples))
    advised = [*dict.fromkeys([*advised, *more])]
    return labelled_once(Row(_label(message), message, whole=hasattr(message, "command")) for message in advised)


def _of_race(result: Result, folder: str) -> list[Row]:
    """Return the command that goes on with a race, and then confirms its winner; or shows that this was done.

    If no profile is left, nothing goes on: it says what to mend.
    """
    place = Path(folder)
    if place.name == race.FOLDER and record.is_begun(place.parent):
        shown = messages.RunFor(messages.CONFIRMED, shlex.join(("envkit", "report", str(place.parent))))
        return [Row("Next", shown, whole=True)]
    command = f"envkit advise --resume {shlex.quote(folder)}"
    is_over = result.ended not in CUT_SHORT
    if result.ended == FAILED:
        diagnose = commands.of_arm(result, result.study.arm(result.race[0].arm)).diagnose
        again = messages.BeginAgain(_advise(result.study.user_command))
        return [Row("Fix", again if result.failures else messages.FindOutWhy(diagnose), whole=True)]
    going_on = messages.RunFor(messages.CONFIRM, command) if is_over else messages.Resume(command)
    return [Row("Next", going_on, whole=True)]


def _label(message: Message) -> str:
    if isinstance(message, USED):
        return "Use"
    return (
        "Fix" if isinstance(message, messages.FindOutWhy | messages.Preload | messages.KeepThreads | MENDS) else "Next"
    )


def _mend(failure: Failure, compared: Sequence[str], resume: str) -> Message:
    """Return how to come to a verdict after a worker's ``failure``; ``resume`` goes on with the run."""
    arm = str(failure.arm)
    if (lack := judgement.memory_that_ran_out(failure)) is not None:
        return messages.FreeMemory(resume, lack.group, arm if lack.retaining else None)
    if len(compared) > 1 and arm in compared:
        return messages.MendWorker(resume, arm)
    return messages.FindMemory(resume) if judgement.was_killed(failure) else messages.MendWorker(resume)


def _to_know_more(
    comparisons: Sequence[Comparison], limit: str, one_run_each: bool, has_samples: bool
) -> list[Message]:
    """Return how another run would come to a verdict; ``limit`` is the option that gives it enough blocks."""
    if any(comparison.verdict == Verdict.TOO_FEW_SAMPLES for comparison in comparisons):
        return [messages.RaiseLimit(limit)]
    if one_run_each and any(comparison.single_ratio for comparison in comparisons):
        return [messages.RaiseLimit("--blocks 8", messages.INTERVAL)]
    return [messages.RunFor(messages.MEASURE, messages.BENCH)] if has_samples and not comparisons else []


def _limit(stopping: StoppingRule, blocks: int, seconds_per_block: float) -> str:
    """Return the option that lets a run have so many blocks."""
    if stopping.blocks:
        return f"--blocks {blocks}"
    minutes = math.ceil(max(blocks * seconds_per_block, stopping.budget_s) / 60) + 1
    return f"--budget {minutes}m"


def _per_profile(result: Result) -> list[Message]:
    study = result.study
    if study.contrasts_of(Role.CHOICE) and (chosen := _of_a_search(result)):
        return [chosen]
    advised, has_best = list[Message](), False
    ranked = ranking.ranked(result.comparisons, study.view)
    ranked = [comparison for comparison in ranked if comparison.over_memory is None] or ranked
    if len(ranked) > 1:
        # the noisiest of many is the likeliest to be at the top without being known to be faster
        by_speed = 0 if ranking.many(ranked) else -1
        ranked = sorted(
            ranked, key=lambda one: (*_by_worth(one), one.dropped is not None, by_speed * (ranking.ratio_of(one) or 0))
        )
    for comparison in ranked:
        arm = result.study.arm(comparison.arm)
        is_unusable = comparison.verdict == Verdict.NOT_IN_EFFECT or losses_wrongly_differ(
            comparison, result.environments[comparison.arm]
        )
        if len(ranked) > 1 and has_best and not is_unusable and not result.study.at_once:
            continue
        if result.study.view is View.CALIBRATION:
            next_step = _after_calibration(comparison)
        elif result.study.trains_otherwise(arm):
            next_step = None  # a change of the training's code, which no profile makes
        elif losses_wrongly_differ(comparison, result.environments[comparison.arm]):
            next_step = messages.ExplainLosses(arm.name, commands.of_arm(result, arm).ablate)
        else:
            next_step = too_much_interference(comparison) or (_at_once(result, arm) if arm.instances else None)
            next_step = (
                next_step or _above_limit(comparison, study.stopping.max_memory) or _next(result, comparison, arm)
            )
        if next_step:
            supported = None if has_best else _supported(ranked, result.environments)
            if isinstance(next_step, messages.Use) and supported is not None:
                safer, ratio = study.arm(supported[0]), supported[1]
                use = _use(safer.profile, study.parts_of(safer), commands.of_arm(result, safer), is_supported=True)
                advised += [use, messages.UseFaster(ratio, next_step.command)]
            else:
                advised.append(next_step)
            has_best = has_best or not is_unusable
    advised = advised if study.stopping.max_memory is None else _within_limit(result, advised)
    # of an arm to use, the table and the line on losses say which others not to use
    advised = [one for one in advised if not (has_best and isinstance(one, messages.ExplainLosses))]
    unknown = (
        isinstance(advised[0], messages.MeasureLonger | messages.KeepReference | messages.ChooseFreely)
        if advised
        else False
    )
    is_local = not study.distributed and {arm.engine for arm in study.arms} == {"local"}
    is_local = is_local and result.command[1:2] != ["advise"]  # which this run confirms
    if unknown and is_local:
        advised.append(messages.RunFor(messages.TRY_ADVISE, _advise(study.user_command)))
    return advised


def _supported(ranked: Sequence[Comparison], environments: Mapping[str, Environment]) -> tuple[str, float] | None:
    """Return the fastest arm that leaves results and a vendor's check alone, and how fast one with cautions is.

    None if no arm is faster still.
    """
    worth = [comparison for comparison in ranked if is_worth_it(comparison) and not judgement.losses_differ(comparison)]
    first = next((faster for faster in worth if environments[faster.arm].is_supported), None)
    if first is None or first is worth[0] or worth[0].speedup is None:
        return None
    return first.arm, worth[0].speedup.ratio


def _by_worth(comparison: Comparison) -> tuple[bool, bool]:
    """Return a sort key: first those that are worth it, and of these first those whose losses match."""
    worth = is_worth_it(comparison)
    return not worth, worth and judgement.losses_differ(comparison)


def _advise(command: UserCommand | None) -> str:
    training = shlex.join(command.argv) if command else "python train.py"
    return f"{commands.from_folder(command)}envkit advise -- {training}"


def _of_a_search(result: Result) -> Message | None:
    """Return what to use after a search whose confirmation found both profiles faster: the one that it wrote.

    The search compared these two; a report compares both with the baseline alone.
    """
    if not all(
        is_worth_it(comparison)
        and not losses_wrongly_differ(comparison, result.environments[comparison.arm])
        and not too_much_interference(comparison)
        for comparison in result.comparisons
    ):
        return None
    shipped, tuned = result.study.compared
    return messages.UseFound(shipped.name, tuned.name, commands.of_arm(result, tuned).on_ranks)


def _of_settings(result: Result) -> list[Message]:
    """Return what to use of a profile that was ablated: less of it, if less of it is as good or better."""
    study = result.study
    whole = result.comparisons[0]
    advised: list[Message] = [
        messages.ExplainLosses(study.arm(comparison.arm).name)
        for comparison in result.comparisons
        if losses_wrongly_differ(comparison, result.environments[comparison.arm])
    ]
    with_other_losses = {
        comparison.arm
        for comparison in result.comparisons
        if losses_wrongly_differ(comparison, result.environments[comparison.arm])
    }
    calmer = too_much_interference(whole)
    if whole.arm in with_other_losses or calmer or not is_worth_it(whole):
        last = None if whole.arm in with_other_losses else calmer or _next(result, whole, study.whole)
        return [*advised, *([last] if last else [])]
    costly = [effect.setting for effect in result.ablation if costs_in_profile(effect)]
    matter = [effect for effect in result.ablation if effect.contribution not in NO_DIFFERENCE]
    enough = [setting.setting.alone for setting in matter if setting.contribution == Contribution.ALONE]
    chosen = [setting.without for setting in costly] if len(costly) == 1 else enough if len(matter) == 1 else []
    arm = study.arm(next((name for name in chosen if name is not None and name not in with_other_losses), whole.arm))
    advised.append(messages.Use(arm.profile, commands.of_arm(result, arm).execute))
    if len(costly) > 1:
        advised.append(messages.WithoutSettings(whole.arm, tuple(setting.setting for setting in costly)))
    return advised


def is_worth_it(comparison: Comparison) -> bool:
    """Return whether to recommend it for its speed: it is faster by more than the margin, and not beside a load.

    Its peak memory is within the limit of the run.
    """
    large = comparison.speedup is not None and not comparison.speedup.within_margin
    is_usable = comparison.load is None and comparison.over_memory is None
    return comparison.verdict == Verdict.FASTER and large and is_usable


def _of_image(result: Result, comparison: Comparison) -> Message | None:
    arm = result.study.arm(comparison.arm)
    reference = result.study.reference_of(arm)
    if comparison.verdict == Verdict.NOT_IN_EFFECT:
        return messages.FindOutWhy(commands.of_arm(result, arm).diagnose)
    if losses_wrongly_differ(comparison, result.environments[comparison.arm]):
        return messages.ExplainLosses(arm.name)
    if calmer := too_much_interference(comparison):
        return calmer
    if is_worth_it(comparison):
        return messages.Use(arm.name, commands.of_arm(result, arm).execute)
    if comparison.verdict == Verdict.SLOWER and comparison.speedup is not None and not comparison.speedup.within_margin:
        return messages.KeepReference(reference.name)
    return _next(result, comparison, arm)


def _on_several_workloads(result: Result) -> list[Message]:
    """Return what is wrong with profiles, which to use, and how long it takes to know more."""
    of_profile = {arm.profile: arm for arm in result.study.compared}
    advised, with_other_losses = list[Message](), set()
    for comparison in result.comparisons:
        arm = result.study.arm(comparison.arm)
        if comparison.verdict == Verdict.NOT_IN_EFFECT:
            advised.append(messages.FindOutWhy(commands.of_arm(result, arm).diagnose))
        elif losses_wrongly_differ(comparison, result.environments[comparison.arm]):
            with_other_losses.add(arm.profile)
            advised.append(messages.ExplainLosses(arm.name))
    loaded = [comparison.load for comparison in result.comparisons if comparison.load]
    advised += [quieter(loaded[0])] if loaded else []
    winners = [name for names in judgement.winners(result).values() for name in names]
    everywhere = judgement.everywhere(result)
    differ = {
        result.study.arm(comparison.arm).profile
        for comparison in result.comparisons
        if judgement.losses_differ(comparison)
    }
    best, fast = (
        sorted((name for name in names if name not in with_other_losses), key=lambda name: name in differ)
        for names in (everywhere, winners)
    )
    if best:
        advised.append(messages.UseEverywhere(best[0], commands.of_arm(result, of_profile[best[0]]).execute))
    elif fast:
        arm = of_profile[fast[0]]
        advised.append(messages.RunFor(messages.MEASURE_YOURS, commands.of_arm(result, arm).bench))
    elif (stay := _too_much_memory(result)) is not None:
        advised.append(stay)
    unknown = [
        (comparison.arm, comparison.speedup, comparison.scale)
        for comparison in result.comparisons
        if comparison.verdict == Verdict.NOT_FOUND and comparison.scale and comparison.speedup
    ]
    if unknown:  # the noisiest decides
        study = result.study
        margin, sharing = study.stopping.margin, study.sharing
        name, speedup, scale = max(unknown, key=lambda one: blocks_needed(one[2], one[1].blocks, margin, sharing))
        by_blocks = bool(study.epochs or study.stopping.blocks)
        longer = _longer(speedup, scale, margin, sharing, result.seconds_per_block, by_blocks)
        advised.append(longer.replace(arm=name))
    return advised


def _at_once(result: Result, arm: Arm) -> Message | None:
    """Return whether to train several at once, if that was measured and is known, and how."""
    scaled_arm = next((scaled for scaled in result.instances if scaled.arm == arm.name), None)
    over = [ratio for ratio in (scaled_arm.over_one_process, scaled_arm.over_reference) if ratio] if scaled_arm else []
    if not over or over[-1].verdict == Verdict.SLOWER:  # then the baseline is better than any number under the profile
        return None
    beside = over[0]
    if beside.verdict not in (Verdict.FASTER, Verdict.SLOWER) or beside.within_margin:
        return None
    if beside.verdict == Verdict.SLOWER:
        return messages.OneAfterTheOther(arm.profile, arm.instances or 1)
    return messages.UseInstances(arm.instances or 1, f"taskset -c CPUS {commands.of_arm(result, arm).execute}")


def _above_limit(comparison: Comparison, limit: float | None) -> Message | None:
    """Return the advice to keep the reference if an arm with a speedup is above the limit on memory, else None."""
    if comparison.over_memory is None or limit is None or comparison.speedup is None:
        return None
    return _stay_within(comparison.over_memory, limit)


def _too_much_memory(result: Result) -> Message | None:
    """Return the advice to keep the reference if only arms above the limit on memory may be worth using, else None.

    The message names the fastest arm above the limit, or the smallest if none has a speedup.
    """
    limit = result.study.stopping.max_memory
    if limit is None or any(map(is_worth_it, result.comparisons)):
        return None
    unknown = [excess for one in result.comparisons if judgement.left_for_memory(one) and (excess := one.over_memory)]
    faster = (excess for one in judgement.faster_over_memory(result) if (excess := one.over_memory))
    best = next(faster, min(unknown, key=lambda excess: excess.share, default=None))
    return None if best is None else _stay_within(best, limit)


def _within_limit(result: Result, advised: list[Message]) -> list[Message]:
    """Return the advice with that on memory first, which says to keep the reference."""
    stay, kept = _too_much_memory(result), messages.KeepReference | messages.ChooseFreely
    if stay is None or stay in advised:
        return advised
    return [stay, *(message for message in advised if not isinstance(message, kept))]


def _stay_within(over: OverMemory, limit: float) -> messages.StayWithin:
    enough = LIMIT_STEP * (math.floor(over.share / LIMIT_STEP + 1e-9) + 1)
    return messages.StayWithin(over.reference, over.arm, over.share, limit, enough)


def _next(result: Result, comparison: Comparison, arm: Arm) -> Message | None:
    if comparison.speedup is None:
        return _without_speedup(result, comparison, arm)
    study, reference = result.study, result.study.reference_of(arm).name
    if comparison.speedup.within_margin:
        return messages.ChooseFreely(reference, arm.name)
    if comparison.verdict == Verdict.SLOWER:
        return messages.KeepReference(reference)
    if comparison.verdict == Verdict.NOT_FOUND and comparison.scale:
        rule, by_blocks = study.stopping, bool(study.epochs or study.stopping.blocks)
        speedup, scale, block_s = comparison.speedup, comparison.scale, result.seconds_per_block
        return _longer(speedup, scale, rule.margin, study.sharing, block_s, by_blocks)
    if comparison.verdict != Verdict.FASTER:
        return None
    is_supported = result.environments[arm.name].is_supported
    return _use(arm.profile, study.parts_of(arm), commands.of_arm(result, arm), is_supported)


def _use(profile: str, ranks: int, of_arm: Commands, is_supported: bool) -> Message:
    """Return how to use a profile; one without so many ranks of its own is copied to have them."""
    if of_arm.copied is not None:
        return messages.UseCopy(profile, name_of_copy(profile, ranks), ranks, of_arm.copied)
    return (messages.Use if is_supported else messages.UseAfterCheck)(profile, of_arm.on_ranks)


def _without_speedup(result: Result, comparison: Comparison, arm: Arm) -> Message | None:
    command = commands.of_arm(result, arm).diagnose
    if comparison.verdict == Verdict.NOT_IN_EFFECT:
        return _preload(result) or _own_threads(result) or messages.FindOutWhy(command)
    if comparison.verdict == Verdict.NOT_ENDED and result.not_in_effect:
        return messages.FindOutWhy(command, result.not_in_effect[0].arm)
    if comparison.verdict == Verdict.NOT_REACHED:
        return messages.TrainLonger(result.study.epochs)
    return None


def _preload(result: Result) -> Message | None:
    """Return which library to preload, if nothing is wrong but that the reader of some variables does not run."""
    readers: dict[str, list[str]] = {}
    unmet = [check for measured in result.not_in_effect for check in measured.checks if not check.holds]
    for check in unmet:
        kind, _, name = check.key.partition(" ")
        variable = catalogue.load().get(name) if kind == "variable" else None
        if variable is None:
            return None
        library = next((reader for reader in variable.read_by if LIBRARIES[reader].profile), None)
        if library is None or result.environments[result.not_in_effect[0].arm].variables.get(name) == check.seen:
            return None
        readers.setdefault(library, []).append(name)
    if len(readers) != 1:
        return None
    (library, names), *_ = readers.items()
    return messages.Preload(library, LIBRARIES[library].profile, tuple(names))


def _own_threads(result: Result) -> Message | None:
    """Return what to remove from a user's training, if all that is wrong is its number of threads.

    A library takes that number from OMP_NUM_THREADS when it is loaded, so the training has changed it since.
    """
    unmet = {check.key for measured in result.not_in_effect for check in measured.checks if not check.holds}
    return messages.KeepThreads() if result.study.user_command and unmet == {THREADS} else None


def too_much_interference(comparison: Comparison) -> Message | None:
    """Return what to do if most blocks were disturbed from outside, and the others don't say the same."""
    return None if comparison.load is None else quieter(comparison.load)


def quieter(load: Load) -> Message:
    """Return the advice to measure again without a load."""
    return messages.QuieterMachine(load.blocks, load.of, load.programs)


def _after_calibration(comparison: Comparison) -> Message | None:
    if comparison.verdict in (Verdict.FASTER, Verdict.SLOWER):
        return messages.CalibrateAgain(ERROR_RATE)
    return messages.RunFor(messages.MEASURE, messages.BENCH) if comparison.speedup else None


def _longer(
    speedup: Speedup, scale: float, margin: float, sharing: int, block_s: float, by_blocks: bool
) -> messages.MeasureLonger:
    """Return how long it takes to find a difference as small as the ``margin``, with blocks of so many seconds.

    If so many blocks were measured already, it is about a smaller difference. The length of the run is given as a
    number of blocks, or as a budget.
    """
    smallest, blocks = margin, speedup.blocks
    while (needed := blocks_needed(scale, blocks, smallest, sharing)) <= blocks:
        smallest /= 2
    minutes = math.ceil(needed * block_s / 60) + 1
    option = f"--blocks {needed}" if by_blocks else f"--budget {minutes}m"
    option += "" if smallest == margin else f" --margin {smallest * 100:g}%"
    return messages.MeasureLonger(smallest * 100, needed, minutes, option)
