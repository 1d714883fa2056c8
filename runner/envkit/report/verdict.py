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
from envkit.bench.measure import FAILED
from envkit.bench.problems import problem_of
from envkit.bench.study import Study
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
    messages.NothingMeasured, messages.NoResults,
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
    if result.study.view is View.LOADERS:
        verdict = _of_loader(result)
    elif not result.comparisons:
        verdict = _of_reference(result)
    elif result.study.at_once:
        verdict = _of_instances(result)
    elif len(result.comparisons) > 1 and result.study.view is not View.SETTINGS:
        verdict = _of_many(result)
    else:
        verdict = of(result, result.comparisons[0])  # the whole of a profile that is ablated
    return Row("", verdict, "good" if isinstance(verdict, GOOD) else "bad" if isinstance(verdict, BAD) else "plain")


def beside(found: Load | None) -> Message | None:
    """Return what a result was measured beside, as a message."""
    return None if found is None else found.message


def rows(result: Result) -> list[Row]:
    """Return a row for each comparison: its speedup and verdict."""
    return [_row(comparison) for comparison in ranking.ranked(result.comparisons, result.study.view)]


def _row(comparison: Comparison) -> Row:
    found, single = comparison.speedup, comparison.single_ratio
    if found is not None:
        said = certainty.Compared(found.ratio, found.low, found.high, found.words.upper(), beside(comparison.load))
        return Row(comparison.arm, said, ranking.weight_of(comparison))
    if single is not None:
        return Row(comparison.arm, certainty.RatioAlone(single))
    return Row(comparison.arm, certainty.NoSpeedup(comparison.words), "bad")


def of(result: Result, comparison: Comparison) -> Message:
    """Return the verdict of one comparison."""
    subject, reference = names(result.study, comparison.arm)
    if comparison.speedup is None:
        single = comparison.single_ratio
        if single is None:
            return without_speedup(result, comparison)
        return messages.OneRunEach(subject, reference, single, result.study.until)
    found, load = comparison.speedup, beside(comparison.load or comparison.beside)
    named = (subject, reference, found.ratio, found.low, found.high)
    rest = ("speed", result.study.until, load)
    if found.verdict == Verdict.EQUIVALENT and load is None:
        return messages.Equivalent(*named, *rest, margin=found.margin)
    return _kind_of(found.verdict, load, judgement.losses_differ(comparison))(*named, *rest)


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
    wrong = [found.arm for found in result.not_in_effect]
    if comparison.verdict == Verdict.NOT_IN_EFFECT:
        return messages.NotInEffect(next((name for name in wrong if name in (arm, reference)), arm))
    if comparison.verdict == Verdict.FAILED and result.failures:
        return messages.WorkerFailed(str(result.failures[-1].arm), problem_of(result.failures[-1]))
    if comparison.verdict == Verdict.NOT_REACHED:
        missed = next(curve for curve in result.not_reached if curve.arm in (arm, reference))
        return _not_reached(missed, str(study.until), study.epochs)
    if comparison.verdict == Verdict.NOT_ENDED and wrong:
        return messages.NotInEffect(wrong[0])
    if comparison.verdict == Verdict.TOO_FEW_SAMPLES:
        fewest = result.study.fewest_blocks
        return messages.TooFewBlocks(names(result.study, comparison.arm)[0], result.complete_blocks, fewest)
    unfinished, blocks = result.course.unfinished, result.complete_blocks
    return messages.Unfinished(
        names(result.study, comparison.arm)[0], blocks, unfinished.fewest if unfinished else None
    )


def _not_reached(curve: LearningCurve, target: str, epochs: int) -> Message:
    best = curve.to_target.best if curve.to_target else None
    return messages.TargetNotReached(curve.arm, target, epochs, best)


def _of_many(result: Result) -> Message:
    """Return the best that is known to be faster, and how many came to what."""
    found, of_all = ranking.ranked(result.comparisons, result.study.view), len(result.comparisons)
    things, counts = tables.things(result), counted(found, result.environments)
    reference = names(result.study, found[0].arm)[1]
    by_speed = sorted(filter(ranking.ratio_of, found), key=lambda one: ranking.ratio_of(one) or 0, reverse=True)
    sound = [comparison for comparison in by_speed if not judgement.losses_differ(comparison)]
    if not any(map(ranking.ratio_of, found)):
        return _without_results(result, found)
    if result.study.one_run_each:
        best = [*sound, *found][0]
        ratio = ranking.ratio_of(best) or 1.0
        return messages.OneRunEach(names(result.study, best.arm)[0], reference, ratio, of=of_all, things=things)
    faster = [comparison for comparison in sound if comparison.verdict == Verdict.FASTER]
    others = [
        comparison
        for comparison in by_speed
        if comparison.verdict == Verdict.FASTER and judgement.losses_differ(comparison)
    ]
    worth = sorted((one for one in faster if one.load is None), key=lambda one: not advice.is_worth_it(one))
    chosen = worth or faster or others
    if not chosen:
        return messages.NoneFaster(of_all, things, reference, counts, beside(_shared_load(found)))
    supported = next((one for one in chosen if judgement.is_supported(result.environments[one.arm])), chosen[0])
    best, number = supported if worth else chosen[0], len(chosen)
    assert best.speedup is not None, "it is faster"
    speedup = (best.speedup.ratio, best.speedup.low, best.speedup.high)
    named = (number, of_all, things, names(result.study, best.arm)[0], reference, *speedup)
    load = beside(best.load or best.beside)
    if not faster:
        return messages.SomeFasterLossesDiffer(*named, load=load, counts=counts)
    differ = len(others) or None
    if load is not None:
        return messages.SomeFasterUnderLoad(*named, load=load, counts=counts, losses_differ=differ)
    among = None if best is chosen[0] else WITHOUT_CAUTIONS
    return messages.SomeFaster(*named, counts=counts, losses_differ=differ, among=among)


def _without_results(result: Result, found: Sequence[Comparison]) -> Message:
    """Return why no comparison has a speedup: the one reason of all, or how many came to what."""
    reasons = {without_speedup(result, comparison) for comparison in found}
    first, things = next(iter(reasons)), tables.things(result)
    if len(reasons) == 1:
        return first
    if isinstance(first, messages.Unfinished | messages.TooFewBlocks) and len({*map(type, reasons)}) == 1:
        return first.replace(subject=f"{len(found)} {things}")
    return messages.NoResults(len(found), things, counted(found, result.environments))


def _shared_load(found: Sequence[Comparison]) -> Load | None:
    """Return the load of the first comparison that has one."""
    return next((load for comparison in found if (load := comparison.load or comparison.beside)), None)


def counted(comparisons: Sequence[Comparison], environments: Mapping[str, Environment]) -> tuple[messages.Counted, ...]:
    """Count the comparisons by their verdicts: those that are faster first, then slower."""
    kinds = Counter({str(verdict): 0 for verdict in ranking.WEIGHTS})
    kinds.update(_kind(comparison, environments[comparison.arm]) for comparison in comparisons)
    return tuple(messages.Counted(number, kind) for kind, number in kinds.items() if number)


def _kind(comparison: Comparison, environment: Environment) -> str:
    if comparison.speedup is None:
        return COUNTED["not-in-effect" if comparison.verdict == Verdict.NOT_IN_EFFECT else "no-result"]
    if judgement.losses_wrongly_differ(comparison, environment) or (
        comparison.verdict == Verdict.FASTER and judgement.losses_differ(comparison)
    ):
        return COUNTED["losses-differ"]
    if comparison.verdict == Verdict.EQUIVALENT:
        return f"within {comparison.speedup.margin * 100:g}%"
    kind = COUNTED["not-found"] if comparison.verdict == Verdict.NOT_FOUND else str(comparison.verdict)
    return f"{kind} under load" if comparison.load is not None and comparison.verdict in ranking.WEIGHTS else kind


def _of_instances(result: Result) -> Message:
    """Return the verdict of those instances that do most."""
    several = [comparison for comparison in result.comparisons if result.study.arm(comparison.arm).instances]
    best = max(several, key=lambda one: ranking.ratio_of(one) or 0.0)
    arm = result.study.arm(best.arm)
    found = next((scaled.over_reference for scaled in result.instances if scaled.arm == arm.name), None)
    if found is None:
        return without_speedup(result, best) if best.speedup is None else of(result, best)
    load = beside(best.load or best.beside)
    kind = _kind_of(found.verdict, load, judgement.losses_differ(best))
    subject = text(context.InstancesOf(arm.instances or 1, arm.profile))
    speedup = (found.ratio, found.low, found.high)
    return kind(subject, f"one {result.study.reference.name} process's", *speedup, "throughput", load=load)


def _of_reference(result: Result) -> Message:
    """Return how one profile scales over ranks, where that was measured."""
    study, load = result.study, beside(result.course.load)
    who = _with_ranks(study.reference.name, study.ranks_of(study.reference))
    if (why := _without_result(result, who)) is not None:
        return why
    for scaled in result.scaling if study.single_processes else ():
        if study.weak and (found := scaled.efficiency) is not None:
            speedup = (found.ratio, found.low, found.high)
            return messages.Efficiency(who, "1 process's", *speedup, QUANTITIES["ranks"], load=load)
        if (found := scaled.speedup) is not None:
            side = Verdict.FASTER if found.low > 1 else Verdict.SLOWER if found.high < 1 else Verdict.NOT_FOUND
            return _kind_of(side, load)(who, "1 process's", found.ratio, found.low, found.high, load=load)
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


def names(study: Study, name: str) -> tuple[str, str]:
    """Return the names of an arm and of its reference in a sentence."""
    arm = study.arm(name)
    reference = study.reference_of(arm)
    if study.view is View.WORKLOADS:
        return f"{arm.profile} on {study.workload_of(arm)}", reference.profile
    if study.view is View.CALIBRATION:
        called = _with_ranks(reference.name, study.ranks_of(reference))
        return f"{called} against itself", called
    kind = "image " if study.view is View.IMAGES else ""
    return f"{kind}{_with_ranks(arm.name, study.ranks_of(arm))}", f"{kind}{reference.name}"


def _with_ranks(name: str, ranks: int) -> str:
    return f"{name} on {ranks} ranks" if ranks > 1 else name


def title(study: Study) -> Message:
    """Return what is compared with what."""
    if study.view is View.LOADERS:
        return context.LoaderSettings(len(study.arms), study.reference.profile)
    if study.view is View.SETTINGS:
        return context.TitleOfAblation(study.whole.name, len(study.ablated))
    names = tuple(dict.fromkeys(arm.profile if study.view is View.WORKLOADS else arm.name for arm in study.subjects))
    few = len(names) <= ranking.FEW or bool(study.at_once)
    reference = study.reference.profile if study.view is View.WORKLOADS else study.reference.name
    return context.Title(
        names if few else (),
        None if few else len(names),
        len(study.workloads) if study.view is View.WORKLOADS else None,
        reference if study.compared else None,
        study.scaling if study.weak else None,
    )
