"""The first line of a report: its verdict, as a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from envkit.analysis import ranking
from envkit.analysis.course import CUT_SHORT
from envkit.analysis.load import Load
from envkit.analysis.summary import Comparison, Summary
from envkit.bench.arms import Arm
from envkit.bench.calibration import is_calibration
from envkit.bench.measure import FAILED
from envkit.bench.plan import Plan
from envkit.bench.problems import problem_of
from envkit.messages import Message
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


def headline(summary: Summary) -> Row:
    """Return the verdict without a label."""
    found = _headline(summary)
    return Row("", found, "good" if isinstance(found, GOOD) else "bad" if isinstance(found, BAD) else "plain")


def _headline(summary: Summary) -> Message:
    if grid.is_grid(summary.plan):
        return _of_loader(summary)
    if not summary.comparisons:
        return _of_reference(summary)
    if summary.plan.at_once:
        return _of_instances(summary)
    if len(summary.comparisons) > 1 and not summary.plan.ablated:
        return _of_many(summary)
    return of(summary, summary.comparisons[0])  # the whole of a profile that is ablated


def beside(found: Load | None) -> Message | None:
    """Return what a result was measured beside, as a message."""
    return None if found is None else found.message


def rows(summary: Summary) -> list[Row]:
    """Return a row for each comparison: its speedup and verdict."""
    return [_row(one) for one in ranking.ranked(summary)]


def _row(one: Comparison) -> Row:
    found, single = one.speedup, one.single_ratio
    if found is not None:
        said = certainty.Compared(found.ratio, found.low, found.high, found.words.upper(), beside(one.load))
        return Row(one.arm, said, ranking.weight_of(one))
    if single is not None:
        return Row(one.arm, certainty.RatioAlone(single))
    return Row(one.arm, certainty.NoSpeedup(one.words), "bad")


def of(summary: Summary, one: Comparison) -> Message:
    """Return the verdict of one comparison."""
    subject, reference = names(summary, one)
    if one.speedup is None:
        single = one.single_ratio
        if single is None:
            return without_speedup(summary, one)
        return messages.OneRunEach(subject, reference, single, summary.plan.until)
    found, load = one.speedup, beside(one.load or one.beside)
    named = (subject, reference, found.ratio, found.low, found.high)
    rest = ("speed", summary.plan.until, load)
    if found.verdict == Verdict.EQUIVALENT and load is None:
        return messages.Equivalent(*named, *rest, margin=found.margin)
    return _kind_of(found.verdict, load, judgement.losses_differ(one))(*named, *rest)


def _kind_of(verdict: Verdict, load: Message | None, losses_differ: bool = False) -> type[messages.Found]:
    """Return the message for a verdict. Losses that differ weigh more than a load, which the message names as well."""
    if verdict == Verdict.FASTER and losses_differ:
        return messages.FasterLossesDiffer
    kinds = FOUND if load is None else LOADED
    return kinds[Verdict.NOT_FOUND if verdict == Verdict.EQUIVALENT else verdict]


def without_speedup(summary: Summary, one: Comparison) -> Message:
    """Return why a comparison has no speedup: whose settings were not in effect, whose worker failed and so on."""
    plan = summary.plan
    arm, reference = one.arm, plan.reference_of(plan.arm(one.arm)).name
    wrong = [found.arm for found in summary.not_in_effect]
    if one.verdict == Verdict.NOT_IN_EFFECT:
        return messages.NotInEffect(next((name for name in wrong if name in (arm, reference)), arm))
    if one.verdict == Verdict.FAILED and summary.failures:
        return messages.WorkerFailed(str(summary.failures[-1].arm), problem_of(summary.failures[-1]))
    if one.verdict == Verdict.NOT_REACHED:
        return not_reached(summary, one)
    if one.verdict == Verdict.NOT_ENDED and wrong:
        return messages.NotInEffect(wrong[0])
    if one.verdict == Verdict.TOO_FEW_SAMPLES:
        fewest = judgement.fewest(summary)
        return messages.TooFewBlocks(names(summary, one)[0], judgement.complete_blocks(summary), fewest)
    unfinished, blocks = summary.course.unfinished, judgement.complete_blocks(summary)
    return messages.Unfinished(names(summary, one)[0], blocks, unfinished.fewest if unfinished else None)


def not_reached(summary: Summary, one: Comparison) -> Message:
    """Return which training of a comparison never reached its target."""
    both = (one.arm, summary.plan.reference_of(summary.plan.arm(one.arm)).name)
    missed = next(found for found in summary.not_reached if found.arm in both)
    best = missed.to_target.best if missed.to_target else None
    return messages.TargetNotReached(missed.arm, str(summary.plan.until), summary.plan.epochs, best)


def _of_many(summary: Summary) -> Message:
    """Return the best that is known to be faster, and how many came to what."""
    found, of_all = ranking.ranked(summary), len(summary.comparisons)
    things, counts = tables.things(summary), counted(summary, found)
    reference = names(summary, found[0])[1]
    by_speed = sorted(filter(ranking.ratio_of, found), key=lambda one: ranking.ratio_of(one) or 0, reverse=True)
    sound = [one for one in by_speed if not judgement.losses_differ(one)]
    if not any(map(ranking.ratio_of, found)):
        return _without_results(summary, found)
    if summary.plan.one_run_each:
        best = [*sound, *found][0]
        ratio = ranking.ratio_of(best) or 1.0
        return messages.OneRunEach(names(summary, best)[0], reference, ratio, of=of_all, things=things)
    faster = [one for one in sound if one.verdict == Verdict.FASTER]
    others = [one for one in by_speed if one.verdict == Verdict.FASTER and judgement.losses_differ(one)]
    worth = sorted((one for one in faster if one.load is None), key=lambda one: not advice.is_worth_it(one))
    chosen = worth or faster or others
    if not chosen:
        return messages.NoneFaster(of_all, things, reference, counts, beside(_shared_load(found)))
    supported = next((one for one in chosen if judgement.is_supported(summary, one.arm)), chosen[0])
    best, number = supported if worth else chosen[0], len(chosen)
    assert best.speedup is not None, "it is faster"
    speedup = (best.speedup.ratio, best.speedup.low, best.speedup.high)
    named = (number, of_all, things, names(summary, best)[0], reference, *speedup)
    load = beside(best.load or best.beside)
    if not faster:
        return messages.SomeFasterLossesDiffer(*named, load=load, counts=counts)
    differ = len(others) or None
    if load is not None:
        return messages.SomeFasterUnderLoad(*named, load=load, counts=counts, losses_differ=differ)
    among = None if best is chosen[0] else WITHOUT_CAUTIONS
    return messages.SomeFaster(*named, counts=counts, losses_differ=differ, among=among)


def _without_results(summary: Summary, found: Sequence[Comparison]) -> Message:
    """Return why no comparison has a speedup: the one reason of all, or how many came to what."""
    reasons = {without_speedup(summary, one) for one in found}
    first, things = next(iter(reasons)), tables.things(summary)
    if len(reasons) == 1:
        return first
    if isinstance(first, messages.Unfinished | messages.TooFewBlocks) and len({*map(type, reasons)}) == 1:
        return first.replace(subject=f"{len(found)} {things}")
    return messages.NoResults(len(found), things, counted(summary, found))


def _shared_load(found: Sequence[Comparison]) -> Load | None:
    """Return the load of the first comparison that has one."""
    return next((load for one in found if (load := one.load or one.beside)), None)


def counted(summary: Summary, found: Sequence[Comparison]) -> tuple[messages.Counted, ...]:
    """Count the comparisons by their verdicts: those that are faster first, then slower."""
    kinds = Counter({str(verdict): 0 for verdict in ranking.WEIGHTS})
    kinds.update(_kind(summary, one) for one in found)
    return tuple(messages.Counted(number, kind) for kind, number in kinds.items() if number)


def _kind(summary: Summary, one: Comparison) -> str:
    if one.speedup is None:
        return COUNTED["not-in-effect" if one.verdict == Verdict.NOT_IN_EFFECT else "no-result"]
    if judgement.learns_otherwise(summary, one) or (one.verdict == Verdict.FASTER and judgement.losses_differ(one)):
        return COUNTED["losses-differ"]
    if one.verdict == Verdict.EQUIVALENT:
        return f"within {one.speedup.margin * 100:g}%"
    kind = COUNTED["not-found"] if one.verdict == Verdict.NOT_FOUND else str(one.verdict)
    return f"{kind} under load" if one.load is not None and one.verdict in ranking.WEIGHTS else kind


def _of_instances(summary: Summary) -> Message:
    """Return the verdict of those instances that do most."""
    several = [one for one in summary.comparisons if summary.plan.arm(one.arm).instances]
    best = max(several, key=lambda one: ranking.ratio_of(one) or 0.0)
    arm = summary.plan.arm(best.arm)
    found = next((one.over_reference for one in summary.instances if one.arm == arm.name), None)
    if found is None:
        return without_speedup(summary, best) if best.speedup is None else of(summary, best)
    load = beside(best.load or best.beside)
    kind = _kind_of(found.verdict, load, judgement.losses_differ(best))
    subject = text(context.InstancesOf(arm.instances or 1, arm.profile))
    speedup = (found.ratio, found.low, found.high)
    return kind(subject, f"one {summary.plan.reference.name} process's", *speedup, "throughput", load=load)


def _of_reference(summary: Summary) -> Message:
    """Return how one profile scales over ranks, where that was measured."""
    plan, load = summary.plan, beside(summary.course.load)
    who = _named(plan, plan.reference)
    if (why := _without_result(summary, who)) is not None:
        return why
    for one in summary.scaling if plan.single_processes else ():
        if plan.weak and (found := one.efficiency) is not None:
            speedup = (found.ratio, found.low, found.high)
            return messages.Efficiency(who, "1 process's", *speedup, QUANTITIES["ranks"], load=load)
        if (found := one.speedup) is not None:
            side = Verdict.FASTER if found.low > 1 else Verdict.SLOWER if found.high < 1 else Verdict.NOT_FOUND
            return _kind_of(side, load)(who, "1 process's", found.ratio, found.low, found.high, load=load)
    return messages.NothingCompared(plan.reference.profile if plan.across else plan.reference.name, load)


def _without_result(summary: Summary, subject: str) -> Message | None:
    """Return why a run that compares nothing has no result: settings, a failed worker, or an early end; else None."""
    if summary.not_in_effect:
        return messages.NotInEffect(summary.not_in_effect[0].arm)
    if summary.ended == FAILED and summary.failures:
        return messages.WorkerFailed(str(summary.failures[-1].arm), problem_of(summary.failures[-1]))
    if not summary.samples:
        return messages.NothingMeasured()
    if summary.ended in CUT_SHORT:
        return messages.Unfinished(subject, judgement.complete_blocks(summary))
    return None


def _of_loader(summary: Summary) -> Message:
    load = beside(summary.course.load)
    if (why := _without_result(summary, text(context.LoaderSettings(len(summary.plan.arms))))) is not None:
        return why
    if measured := grid.cells(summary):
        best, worst = (choose(measured, key=lambda cell: cell.seconds) for choose in (min, max))
        ties = grid.ties(measured)
        if ties > 1:
            return messages.NoFastestLoader(ties, len(measured), text(best.named), best.seconds, grid.IMAGES, load)
        return messages.FastestLoader(len(measured), text(best.named), best.seconds, worst.seconds, grid.IMAGES, load)
    if ends := epoch_ends.cells(summary):
        first, last = (choose(ends, key=epoch_ends.by_image) for choose in (min, max))
        slowest = (text(last.named), last.epoch_s, last.begin_s)
        return messages.FastestEpochs(len(ends), text(first.named), first.epoch_s, first.begin_s, *slowest, load)
    return messages.NothingMeasured()


def names(summary: Summary, one: Comparison) -> tuple[str, str]:
    """Return what is compared, and with what."""
    plan = summary.plan
    arm = plan.arm(one.arm)
    reference = plan.reference_of(arm)
    if plan.across:
        return f"{arm.profile} on {plan.workload_of(arm)}", reference.profile
    if is_calibration(plan):
        return f"{_named(plan, reference)} against itself", _named(plan, reference)
    return _named(plan, arm), _named(plan, reference, ranks=False)


def _named(plan: Plan, arm: Arm, ranks: bool = True) -> str:
    on = f" on {plan.ranks_of(arm)} ranks" if ranks and plan.ranks_of(arm) > 1 else ""
    return f"{'image ' if plan.compares_images else ''}{arm.name}{on}"


def title(summary: Summary) -> Message:
    """Return what was compared with what."""
    plan = summary.plan
    if grid.is_grid(plan):
        return context.LoaderSettings(len(plan.arms), plan.reference.profile)
    if plan.ablated:
        return context.TitleOfAblation(plan.whole.name, len(plan.ablated))
    names = tuple(dict.fromkeys(arm.profile if plan.across else arm.name for arm in plan.subjects))
    few = len(names) <= ranking.FEW or bool(plan.at_once)
    reference = plan.reference.profile if plan.across else plan.reference.name
    return context.Title(
        names if few else (),
        None if few else len(names),
        len(plan.workloads) if plan.across else None,
        reference if summary.comparisons else None,
        plan.scaling if plan.weak else None,
    )
