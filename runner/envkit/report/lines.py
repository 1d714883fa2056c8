"""The labelled lines of the short report: settings, losses, noise, why, and the system."""

from __future__ import annotations

import math
from collections.abc import Sequence

from envkit.analysis import ranking
from envkit.analysis.gpu_readings import trained_on
from envkit.analysis.image_differences import OTHER_WEIGHTS
from envkit.analysis.losses import Losses
from envkit.analysis.result import Comparison, Measured, Result
from envkit.bench.arms import View
from envkit.checks import effect
from envkit.common.messages import Clauses
from envkit.messages import Message, from_json
from envkit.rendering import text
from envkit.report import ablation, commands, execution_context, grid, judgement, tables
from envkit.report.cautions import finite
from envkit.report.messages import lines as messages
from envkit.report.messages.advice import FIND_CAUSE, FIND_REST, RunFor
from envkit.report.messages.headings import ONE_OF_EACH, QUANTITIES
from envkit.report.parts import Row
from envkit.stats.verdict import Verdict
from envkit.worker.libraries import prefixes, showing

# A share of system time, and a ratio of page faults, that explains a difference.
NOTABLE_SHARE, NOTABLE_FAULTS, FEWEST_FAULTS = 0.03, 2.0, 100
# Settings of allocators by which freed memory stays with the process, and those of huge pages.
ALLOCATORS = prefixes(["allocator"])
HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
MKL = showing("mkl.dispatch", "native")
# A counter that covers so much of the CPU time saved leaves nothing to find.
MOST = 0.8


def rows(result: Result) -> list[Row]:
    """Return the lines on what was verified and found."""
    if result.study.view is View.LOADERS:
        return [Row("Noise", one) for one in noise(result)[:1]] + grid.rows_on_fastest(result)
    found: list[tuple[str, Message | None]] = [
        ("Left out", messages.LeftOut(len(result.not_measured)) if result.not_measured else None),
        ("Settings", settings(result)),
        *(("Losses", one) for one in losses(result)),
        *(("Noise", one) for one in noise(result)),
        ("Why", cause := why(result)),
        ("Why", the_rest(result, cause)),
    ]
    said = [(label, one) for label, one in found if one is not None]
    shown = [
        label if label != before else ""
        for (label, _), before in zip(said, ["", *(one for one, _ in said)], strict=False)
    ]
    return [
        Row(label, one, _weight(one), whole=hasattr(one, "command"))
        for label, (_, one) in zip(shown, said, strict=True)
    ]


def _weight(one: Message) -> str:
    return "bad" if isinstance(one, messages.LossesFarther) else "plain"


def settings(result: Result) -> Message | None:
    """Return whether what was set was observed; None where a table says what was not."""
    compared = [one for one in result.measured if one.arm in {arm.name for arm in result.study.compared}]
    if not compared:
        compared = [one for one in result.measured if one.arm == result.study.reference.name]
    if len(compared) > 1:
        return _settings_of_many(result, compared)
    if result.not_in_effect:
        outside = next((one.not_observed for one in result.not_in_effect if one.not_observed), None)
        if outside:
            return messages.SeenFromOutside(from_json(outside))
        first = result.not_in_effect[0]
        return messages.CheckedIn(first.samples, first.arm)
    if not compared:
        return messages.NotVerifiedYet() if result.comparisons else None
    return _settings_of_one(result, compared[0])


def _settings_of_one(result: Result, one: Measured) -> Message | None:
    if one.not_observed:
        return messages.SeenFromOutside(from_json(one.not_observed))
    if not one.checks:
        sets = one.arm != result.study.reference.name
        return messages.NothingToVerify(one.arm) if sets and result.study.view is not View.CALIBRATION else None
    if one.unverified:
        keys = tuple(check.key for check in one.unverified)
        number = len(one.checks) - len(keys)
        return messages.SomeVerified(number, len(one.checks), keys, effect.shown(one.unverified[0].seen))
    return messages.AllVerified(len(one.checks) if len(one.checks) > 1 else None)


def _settings_of_many(result: Result, compared: Sequence[Measured]) -> Message:
    things = tables.things(result)
    wrong = tuple(one.arm for one in compared if not one.in_effect)
    partly = tuple(one.arm for one in compared if one.in_effect and (one.unverified or one.not_observed))
    sound = len(compared) - len(wrong) - len(partly)
    kind = messages.ArmsVerified if sound == len(result.study.compared) else messages.SomeArmsVerified
    return kind(sound, len(result.study.compared), things, wrong, partly)


def losses(result: Result) -> list[Message]:
    """Return how the losses of what was compared agree with the reference's."""
    study = result.study
    compared = [one for one in result.comparisons if one.verdict != Verdict.NOT_IN_EFFECT]
    if study.view is View.SETTINGS:
        compared = compared[:1] + [one for one in compared[1:] if judgement.losses_differ(one)]
    if not compared or study.view is View.CALIBRATION:
        return []
    if any(one.what == OTHER_WEIGHTS for arm in study.compared for one in result.image_differences.get(arm.name, ())):
        return [messages.LossesNotCompared(messages.OTHER_WEIGHTS)]
    others = [arm for arm in study.compared if study.trains_otherwise(arm)]
    found = _agreeing(result, [one for one in compared if one.losses is not None], len(compared))
    if others:
        names = some_of([arm.name for arm in others], len(study.compared))
        workloads = tuple(dict.fromkeys(study.workload_of(arm) for arm in others))
        quantity = QUANTITIES["trainings" if study.epochs else "images"]
        found.append(messages.LossesOfOtherTraining(names, workloads, quantity))
    if found or not any(one.speedup for one in compared):
        return found
    own = study.user_command
    is_unread = own is not None and own.loss_metric is None
    return [messages.LossesNotCompared(messages.NOT_READ if is_unread else messages.TOO_FEW_SAMPLES)]


def _agreeing(result: Result, compared: Sequence[Comparison], everyone: int) -> list[Message]:
    """Return one message for those whose losses are identical, one for those near, one for those that differ."""
    known: dict[str, Losses] = {one.arm: one.losses for one in compared if one.losses is not None}
    if not known:
        return []
    steps = next(iter(known.values())).steps
    equal = [arm for arm, one in known.items() if one.agree and one.largest_difference == 0]
    near = [arm for arm, one in known.items() if one.agree and one.largest_difference != 0]
    apart = [arm for arm, one in known.items() if not one.agree]

    def of(arms: Sequence[str]) -> str | None:
        return None if everyone == 1 or len(arms) == len(known) == everyone else some_of(arms, everyone)

    found: list[Message] = []
    if equal:
        kind = messages.LossesIdentical if result.study.user_command is None else messages.LossesPrintedAlike
        found.append(kind(steps, of(equal)))
    if near:
        most = max(known[arm].largest_difference for arm in near)
        own = max(known[arm].own_difference or 0.0 for arm in near)
        if result.study.user_command is None:
            found.append(messages.LossesRounded(most, steps, of(near)))
        else:
            found.append(messages.LossesNear(most, own, result.study.reference.name, of(near)))
    if apart:
        largest = max(known[arm].largest_difference for arm in apart)
        largest = math.inf if any(math.isnan(known[arm].largest_difference) for arm in apart) else largest
        found.append(messages.LossesFarther(finite(largest), of(apart)))
    return found


def noise(result: Result) -> list[Message]:
    """Return what disturbed the run from outside, and the result without that."""
    blocks = len({sample.block for sample in result.samples})
    if not blocks or not result.comparisons or result.study.one_run_each:
        return []
    found: list[Message] = []
    size = None if tables.says_blocks(result) and result.study.view is not View.LOADERS else ONE_OF_EACH
    if result.interference:
        few = len(result.comparisons) == 1
        first = result.interference[min(result.interference)][0] if few else None
        found.append(messages.Disturbed(len(result.interference), blocks, first, _without(result), size))
    elif result.reference_kernel_range_s is None:
        found.append(messages.Undisturbed(blocks, size))
    if result.reference_kernel_range_s is not None:
        least, most = result.reference_kernel_range_s
        found.append(messages.PaceVaried(most / least))
    return found


def _without(result: Result) -> Message | None:
    hit = [one for one in result.comparisons if one.speedup is not None and was_hit(result, one)]
    few = tuple(one.arm for one in hit if one.without_interference is None)
    if len(result.comparisons) == 1 and hit:
        one = hit[0]
        rest, found = one.without_interference, one.speedup
        if rest is None or found is None:
            return messages.TooFewWithout()
        other = rest.words if rest.verdict != found.verdict else None
        return messages.WithoutDisturbed(rest.ratio, rest.low, rest.high, other)
    if not hit:
        return None
    if few:
        return messages.TooFewWithout(() if len(few) == len(result.comparisons) else few)
    changed = tuple(
        messages.OfSubject(one.arm, one.without_interference.words)
        for one in hit
        if one.without_interference and one.speedup and one.without_interference.verdict != one.speedup.verdict
    )
    return messages.VerdictsWithout(changed) if changed else messages.SameWithout()


def was_hit(result: Result, comparison: Comparison) -> bool:
    """Return whether a block of a comparison was disturbed from outside."""
    arm = result.study.arm(comparison.arm)
    both = {result.study.reference_of(arm).name, arm.name}
    return any(both & names for names in result.disturbed_arms.values())


def why(result: Result) -> Message | None:
    """Return what counters say of the cause of a difference; for an ablation, which settings matter."""
    study = result.study
    if study.view is View.SETTINGS:
        clauses = ablation.clauses(result)
        return Clauses(clauses) if clauses else None
    one = result.comparisons[0] if len(result.comparisons) == 1 else None
    if one is None or one.speedup is None or one.verdict not in ranking.WEIGHTS or one.speedup.within_margin:
        return None
    other = study.view in (View.IMAGES, View.CALIBRATION) or study.distributed or study.at_once
    if other or one.load is not None:
        return None
    measured = {found.arm: found for found in result.measured}
    before, after = measured[study.reference_of(study.arm(one.arm)).name], measured[one.arm]
    faster = one.verdict == Verdict.FASTER
    found = _counters(result, before, after, faster)
    if found is None and faster and MKL in result.environments[one.arm].preload:
        return messages.FastestMkl()
    return found or messages.CauseUnknown()


def _counters(result: Result, before: Measured, after: Measured, faster: bool) -> Message | None:
    """Return the counter that moved with the speed: system time, or page faults; None if neither did."""
    cause = _memory_cause(result, after.arm, before, after)
    moved, covered = "fell" if faster else "rose", _covered(before, after, faster)
    apart = after.system_share - before.system_share
    if (apart < 0) == faster and abs(apart) >= NOTABLE_SHARE:
        return messages.SystemTimeChanged(moved, before.system_share, after.system_share, cause, covered)
    least, most = sorted((before.faults_per_step, after.faults_per_step))
    if most >= FEWEST_FAULTS and most >= NOTABLE_FAULTS * least and (after.faults_per_step == least) == faster:
        unit = tables.faults_unit(result)
        return messages.FaultsChanged(moved, before.faults_per_step, after.faults_per_step, unit, cause, covered)
    return None


def _covered(before: Measured, after: Measured, faster: bool) -> messages.Covered | None:
    """Return which share of the CPU time saved, or added, is the kernel's; None where CPU time is about the same."""
    whole, system = after.cpu_s - before.cpu_s, after.system_s - before.system_s
    if (whole < 0) != faster or abs(whole) < NOTABLE_SHARE * before.cpu_s:
        return None
    return messages.Covered(min(1.0, max(0.0, system / whole)), "saved" if faster else "added")


def the_rest(result: Result, found: Message | None) -> Message | None:
    """Return the command that shows what ``found``, the line on the cause, does not explain, if there is one."""
    unknown = isinstance(found, messages.CauseUnknown)
    if not unknown and not isinstance(found, messages.SystemTimeChanged | messages.FaultsChanged):
        return None
    covered = getattr(found, "covered", None)
    if covered is not None and covered.share >= MOST:
        return None
    command = commands.breakdown(result, result.study.arm(result.comparisons[0].arm))
    if command is None:
        return None
    return RunFor(FIND_CAUSE if unknown else FIND_REST, command)


def _memory_cause(result: Result, arm: str, before: Measured, after: Measured) -> str | None:
    if after.faults_per_step * 10 > before.faults_per_step:
        return None
    variables = result.environments[arm].variables
    if any(name.startswith(ALLOCATORS) for name in variables):
        return messages.MEMORY_KEPT
    return messages.HUGE_PAGES if HUGE_PAGES in variables else None


def system(result: Result) -> Message:
    """Return the machine, the engines and what was trained."""
    host = result.inspection(result.study.reference)
    facts, seen = host["facts"], host["fingerprint"]
    training = execution_context.what_was_run(result)
    if result.study.user_command:  # it may run in another Python, with another torch
        engines = tuple(name for name in result.engines if name != "local")
        return messages.System(seen["cpu_model"], facts["usable_cpus"], None, engines or ("local",), training)
    torch = {name: of["inspection"]["packages"]["torch"] for name, of in result.engines.items()}
    engines = tuple(_engine(name, version) for name, version in torch.items())
    gpu = trained_on(host).removeprefix(", ") or None
    return messages.System(seen["cpu_model"], facts["usable_cpus"], gpu, engines, training)


def machine(result: Result) -> str:
    """Return the same as text."""
    return text(system(result))


def _engine(name: str, version: str | None) -> str:
    return text(messages.Torch(version, None if name == "local" else name))


def some_of(arms: Sequence[str], everyone: int, few: int = 3) -> str:
    """Return a few names, or how many there are."""
    return ", ".join(arms) if len(arms) <= few else f"{len(arms)} of {everyone}"
