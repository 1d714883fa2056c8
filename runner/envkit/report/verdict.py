"""The first line of a report: its verdict, as a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from envkit.analysis import ranking
from envkit.analysis.course import CUT_SHORT
from envkit.analysis.learning_curves import LearningCurve
from envkit.analysis.load import Load
from envkit.analysis.result import Comparison, Result
from envkit.bench.arms import View
from envkit.bench.decide import FAILED
from envkit.bench.problems import problem_of
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.rendering import text
from envkit.report import advice, epoch_ends, grid, judgement, tables
from envkit.report.messages import certainty, context
from envkit.report.messages import verdicts as messages
from envkit.report.messages.headings import COUNTED, QUANTITIES, WITHOUT_CAUTIONS
from envkit.report.parts import Row
from envkit.stats.verdict import Verdict

GOOD = (messages.Faster, messages.SomeFaster)
BAD = (
    messages.FasterLossesDiffer, messages.SomeFasterLossesDiffer, messages.Slower, messages.NotInEffect,
    messages.WorkerFailed, messages.Unfinished, messages.TooFewBlocks, messages.TargetNotReached,
    messages.NothingMeasured, messages.NoResults, messages.RaceUnfinished, messages.RaceFailed,
)  # fmt: skip
FOUND: dict[Verdict, type[messages.Found]] = {
    Verdict.FASTER: messages.Faster,
    Verdict.SLOWER: messages.Slower,
    Verdict.NOT_FOUND: messages.NoDifferenceFound,
}
LOADED: dict[Verdict, type[messages.Found]] = {
    Verdict.FASTER: messages.FasterUnderLoad,
    Verdict.SLOWER: messages.SlowerUnderLoad,
    Verdict.NOT_FOUND: messages.NoDifferenceUnderLoad,
}


def headline(result: Result) -> Row:
    """Return the verdict without a label."""
    study = result.study
    if study.view is View.LOADERS:
        verdict = _of_loader(result)
    elif study.is_race:
        verdict = _of_race(result)
    elif not result.comparisons:
        verdict = _of_reference(result)
    elif study.at_once:
        verdict = _of_instances(result)
    elif len(result.comparisons) > 1 and study.view is not View.SETTINGS:
        verdict = _of_many(result)
    else:
        comparison = result.comparisons[0]  # the whole of a profile that is ablated
        single = measured(comparison, *study.names(comparison.arm), study.until)
        verdict = without_speedup(result, comparison) if single is None else single
    return Row("", verdict, "good" if isinstance(verdict, GOOD) else "bad" if isinstance(verdict, BAD) else "plain")


def beside(load: Load | None) -> Message | None:
    """Return what a result was measured beside, as a message."""
    return None if load is None else load.message


def rows(result: Result) -> list[Row]:
    """Return a row for each comparison: its speedup and verdict."""
    return [_row(comparison) for comparison in ranking.ranked(result.comparisons, result.study.view)]


def _row(comparison: Comparison) -> Row:
    speedup, single = comparison.speedup, comparison.single_ratio
    if speedup is not None:
        message = certainty.Compared(
            speedup.ratio, speedup.low, speedup.high, speedup.words.upper(), beside(comparison.load)
        )
        return Row(comparison.arm, message, ranking.weight_of(comparison))
    if single is not None:
        return Row(comparison.arm, certainty.RatioAlone(single))
    return Row(comparison.arm, certainty.NoSpeedup(comparison.words), "bad")


def of(result: Result, comparison: Comparison) -> Message:
    """Return the verdict of one comparison."""
    subject, reference = result.study.names(comparison.arm)
    verdict = measured(comparison, subject, reference, result.study.until)
    return without_speedup(result, comparison) if verdict is None else verdict


def measured(comparison: Comparison, subject: str, reference: str, until: str | None) -> Message | None:
    """Return the verdict of a comparison that has a speedup or a ratio; None for one that has neither.

    ``until`` is the target of full trainings.
    """
    speedup, load = comparison.speedup, beside(comparison.load or comparison.beside)
    if speedup is None:
        single = comparison.single_ratio
        return None if single is None else messages.OneRunEach(subject, reference, single, until)
    named = (subject, reference, speedup.ratio, speedup.low, speedup.high)
    details = ("speed", until, load)
    if speedup.verdict == Verdict.EQUIVALENT and load is None:
        return messages.Equivalent(*named, *details, margin=speedup.margin)
    kind = _kind_of(speedup.verdict, load, judgement.losses_differ(comparison))
    kind = messages.FasterOverMemory if kind is messages.Faster and comparison.over_memory else kind
    return kind(*named, *details)


def _kind_of(verdict: Verdict, load: Message | None, losses_differ: bool = False) -> type[messages.Found]:
    """Return the message for a verdict. Losses that differ weigh more than a load, which the message names as well."""
    if verdict == Verdict.FASTER and losses_differ:
        return messages.FasterLossesDiffer
    kinds = FOUND if load is None else LOADED
    return kinds[Verdict.NOT_FOUND if verdict == Verdict.EQUIVALENT else verdict]


def without_speedup(result: Result, comparison: Comparison) -> Message:
    """Return why a comparison has no speedup: whose settings were not in effect, whose worker failed and so on."""
    study = result.study
    arm, reference = comparison.arm, study.reference_of(study.arm(comparison.arm)).name
    not_in_effect = [measured.arm for measured in result.not_in_effect]
    if comparison.verdict == Verdict.NOT_IN_EFFECT:
        return messages.NotInEffect(next((name for name in not_in_effect if name in (arm, reference)), arm))
    if comparison.verdict == Verdict.FAILED and result.failures:
        return messages.WorkerFailed(str(result.failures[-1].arm), problem_of(result.failures[-1]))
    if comparison.verdict == Verdict.NOT_REACHED:
        missed = next(curve for curve in result.not_reached if curve.arm in (arm, reference))
        return _not_reached(missed, str(study.until), study.epochs)
    if comparison.verdict == Verdict.NOT_ENDED and not_in_effect:
        return messages.NotInEffect(not_in_effect[0])
    if comparison.verdict == Verdict.TOO_FEW_SAMPLES:
        fewest = result.study.fewest_blocks
        return messages.TooFewBlocks(study.names(comparison.arm)[0], result.complete_blocks, fewest)
    unfinished, blocks = result.course.unfinished, result.complete_blocks
    return messages.Unfinished(study.names(comparison.arm)[0], blocks, unfinished.fewest if unfinished else None)


def _not_reached(curve: LearningCurve, target: str, epochs: int) -> Message:
    best = curve.to_target.best if curve.to_target else None
    return messages.TargetNotReached(curve.arm, target, epochs, best)


def _of_many(result: Result) -> Message:
    """Return the best that is known to be faster, and how many came to what."""
    ranked, of_all = ranking.ranked(result.comparisons, result.study.view), len(result.comparisons)
    study, counts = result.study, counted(ranked, result.environments)
    things = tables.things(study.view, result.engines, study.compared)
    reference = study.names(ranked[0].arm)[1]
    by_speed = sorted(filter(ranking.ratio_of, ranked), key=ranking.place, reverse=True)
    within = [comparison for comparison in by_speed if comparison.over_memory is None]
    sound = [comparison for comparison in within if not judgement.losses_differ(comparison)]
    if not any(map(ranking.ratio_of, ranked)):
        return _without_results(result, ranked)
    if result.study.one_run_each:
        best = [*sound, *ranked][0]
        ratio = ranking.ratio_of(best) or 1.0
        return messages.OneRunEach(study.names(best.arm)[0], reference, ratio, of=of_all, things=things)
    faster = [comparison for comparison in sound if comparison.verdict == Verdict.FASTER]
    others = [
        comparison
        for comparison in within
        if comparison.verdict == Verdict.FASTER and judgement.losses_differ(comparison)
    ]
    worth = sorted((one for one in faster if one.load is None), key=lambda one: not advice.is_worth_it(one))
    chosen = worth or faster or judgement.faster_over_memory(result) or others
    if not chosen:
        is_unknown = any(map(judgement.left_for_memory, ranked))
        none_faster = messages.NoneFasterWithinLimit if is_unknown else messages.NoneFaster
        return none_faster(of_all, things, reference, counts, beside(_shared_load(ranked)))
    supported = next((one for one in chosen if result.environments[one.arm].is_supported), chosen[0])
    best, number = supported if worth else chosen[0], len(chosen)
    assert best.speedup is not None, "it is faster"
    speedup = (best.speedup.ratio, best.speedup.low, best.speedup.high)
    named = (number, of_all, things, study.names(best.arm)[0], reference, *speedup)
    load = beside(best.load or best.beside)
    if not faster:
        over = best.over_memory
        other_losses = messages.SomeFasterLossesDiffer(*named, load=load, counts=counts)
        too_large = messages.SomeFasterOverMemory(*named, load=load, counts=counts, share=over.share if over else 0.0)
        return too_large if over else other_losses
    differ = len(others) or None
    if load is not None:
        return messages.SomeFasterUnderLoad(*named, load=load, counts=counts, losses_differ=differ)
    among = None if best is chosen[0] else WITHOUT_CAUTIONS
    return messages.SomeFaster(*named, counts=counts, losses_differ=differ, among=among)


def _without_results(result: Result, comparisons: Sequence[Comparison]) -> Message:
    """Return why no comparison has a speedup: the one reason of all, or how many came to what."""
    reasons = {without_speedup(result, comparison) for comparison in comparisons}
    first, study = next(iter(reasons)), result.study
    things = tables.things(study.view, result.engines, study.compared)
    if len(reasons) == 1:
        return first
    if isinstance(first, messages.Unfinished | messages.TooFewBlocks) and len({*map(type, reasons)}) == 1:
        return first.replace(subject=f"{len(comparisons)} {things}")
    return messages.NoResults(len(comparisons), things, counted(comparisons, result.environments))


def _shared_load(comparisons: Sequence[Comparison]) -> Load | None:
    """Return the load of the first comparison that has one."""
    return next((load for comparison in comparisons if (load := comparison.load or comparison.beside)), None)


def counted(comparisons: Sequence[Comparison], environments: Mapping[str, Environment]) -> tuple[messages.Counted, ...]:
    """Count the comparisons by their verdicts: those that are faster first, then slower."""
    kinds = Counter({str(verdict): 0 for verdict in ranking.WEIGHTS})
    kinds.update(_kind(comparison, environments[comparison.arm]) for comparison in comparisons)
    return tuple(messages.Counted(number, kind) for kind, number in kinds.items() if number)


def _kind(comparison: Comparison, environment: Environment) -> str:
    if comparison.speedup is None and not judgement.left_for_memory(comparison):
        return COUNTED["not-in-effect" if comparison.verdict == Verdict.NOT_IN_EFFECT else "no-result"]
    if judgement.losses_wrongly_differ(comparison, environment) or (
        comparison.verdict == Verdict.FASTER and judgement.losses_differ(comparison)
    ):
        return COUNTED["losses-differ"]
    if comparison.over_memory is not None or comparison.speedup is None:
        return COUNTED["over-memory"]
    if comparison.verdict == Verdict.EQUIVALENT:
        return f"within {comparison.speedup.margin * 100:g}%"
    kind = COUNTED["not-found"] if comparison.verdict == Verdict.NOT_FOUND else str(comparison.verdict)
    return f"{kind} under load" if comparison.load is not None and comparison.verdict in ranking.WEIGHTS else kind


def _of_instances(result: Result) -> Message:
    """Return the verdict of those instances that do most."""
    several = [comparison for comparison in result.comparisons if result.study.arm(comparison.arm).instances]
    best = max(several, key=lambda one: ranking.ratio_of(one) or 0.0)
    arm = result.study.arm(best.arm)
    estimate = next((scaled.over_reference for scaled in result.instances if scaled.arm == arm.name), None)
    if estimate is None:
        return without_speedup(result, best) if best.speedup is None else of(result, best)
    load = beside(best.load or best.beside)
    kind = _kind_of(estimate.verdict, load, judgement.losses_differ(best))
    subject = text(context.InstancesOf(arm.instances or 1, arm.profile))
    speedup = (estimate.ratio, estimate.low, estimate.high)
    return kind(subject, f"one {result.study.reference.name} process's", *speedup, "throughput", load=load)


def _of_reference(result: Result) -> Message:
    """Return how one profile scales over ranks, where that was measured."""
    study, load = result.study, beside(result.course.load)
    who = study.with_ranks(study.reference)
    if (why := _without_result(result, who)) is not None:
        return why
    for scaled in result.scaling if study.single_processes else ():
        if study.weak and (estimate := scaled.efficiency) is not None:
            speedup = (estimate.ratio, estimate.low, estimate.high)
            return messages.Efficiency(who, "1 process's", *speedup, QUANTITIES["ranks"], load=load)
        if (estimate := scaled.speedup) is not None:
            side = Verdict.FASTER if estimate.low > 1 else Verdict.SLOWER if estimate.high < 1 else Verdict.NOT_FOUND
            return _kind_of(side, load)(who, "1 process's", estimate.ratio, estimate.low, estimate.high, load=load)
    reference = study.reference
    return messages.NothingCompared(reference.profile if study.view is View.WORKLOADS else reference.name, load)


def _without_result(result: Result, subject: str) -> Message | None:
    """Return why a run that compares nothing has no result: settings, a failed worker, or an early end; else None."""
    if result.not_in_effect:
        return messages.NotInEffect(result.not_in_effect[0].arm)
    if result.ended == FAILED and result.failures:
        return messages.WorkerFailed(str(result.failures[-1].arm), problem_of(result.failures[-1]))
    if not result.samples:
        return messages.NothingMeasured()
    if result.ended in CUT_SHORT:
        return messages.Unfinished(subject, result.complete_blocks)
    return None


def _of_race(result: Result) -> Message:
    """Return which arm of a race was the fastest."""
    leader, blocks = result.race[0], result.complete_blocks
    if result.ended == FAILED:
        failed, no_effect = (
            sum(racer.failed for racer in result.race), sum(racer.not_in_effect for racer in result.race),
        )  # fmt: skip
        counts = (messages.Counted(failed, COUNTED["failed"]), messages.Counted(no_effect, COUNTED["not-in-effect"]))
        return messages.RaceFailed(len(result.race), tuple(counted for counted in counts if counted.number))
    if leader.speed is None:
        return _without_result(result, leader.arm) or messages.Unfinished(leader.arm, blocks)
    if result.ended in CUT_SHORT:
        return messages.RaceUnfinished(leader.arm, blocks)
    won = messages.RaceWon
    if any(racer.over_memory for racer in result.race):
        won = messages.RaceWonOverLimit if leader.over_memory else messages.RaceWonWithinLimit
    return won(leader.arm, len(result.race))


def _of_loader(result: Result) -> Message:
    load = beside(result.course.load)
    if (why := _without_result(result, text(context.LoaderSettings(len(result.study.arms))))) is not None:
        return why
    if measured := grid.cells(result):
        best, worst = (choose(measured, key=lambda cell: cell.seconds) for choose in (min, max))
        ties = grid.ties(measured)
        if ties > 1:
            return messages.NoFastestLoader(ties, len(measured), text(best.named), best.seconds, grid.IMAGES, load)
        return messages.FastestLoader(len(measured), text(best.named), best.seconds, worst.seconds, grid.IMAGES, load)
    if ends := epoch_ends.cells(result):
        first, last = (choose(ends, key=epoch_ends.by_image) for choose in (min, max))
        slowest = (text(last.named), last.epoch_s, last.begin_s)
        return messages.FastestEpochs(len(ends), text(first.named), first.epoch_s, first.begin_s, *slowest, load)
    return messages.NothingMeasured()
