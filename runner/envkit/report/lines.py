"""The labelled lines of the short report: settings, losses, noise, why, and the system."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from envkit.analysis import ranking
from envkit.analysis.gpu_readings import trained_on
from envkit.analysis.image_differences import OTHER_WEIGHTS
from envkit.analysis.result import Comparison, Departure, Measured, Result
from envkit.bench.arms import View
from envkit.bench.losses import Losses
from envkit.bench.memory_limit import GPU
from envkit.checks import effect
from envkit.messages import Message, from_json
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection, Surroundings
from envkit.rendering import text
from envkit.report import ablation, commands, execution_context, grid, judgement, tables
from envkit.report.cautions import finite
from envkit.report.messages import lines as messages
from envkit.report.messages.advice import FIND_CAUSE, FIND_REST, RunFor
from envkit.report.messages.headings import ONE_OF_EACH, QUANTITIES
from envkit.report.parts import Row, labelled_once
from envkit.stats.verdict import Verdict
from envkit.worker.libraries import prefixes, showing
from envkit.worker.request import UserCommand

# A share of system time, and a ratio of page faults, that explains a difference.
NOTABLE_SHARE, NOTABLE_FAULTS, FEWEST_FAULTS = 0.03, 2.0, 100
# Settings of allocators by which freed memory stays with the process, and those of huge pages.
ALLOCATORS = prefixes(["allocator"])
HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
MKL = showing("mkl.dispatch", "native")
# So many names fill one line.
MOST_NAMED = 5
# A counter that covers so much of the CPU time saved leaves nothing to find.
MOST = 0.8


def rows(result: Result) -> list[Row]:
    """Return the lines on what was verified and found."""
    study, comparisons, view = result.study, result.comparisons, result.study.view
    references = {one.arm: study.reference_of(study.arm(one.arm)).name for one in comparisons}
    blocks, noisy = len({sample.block for sample in result.samples}), list[Message]()
    if blocks and comparisons and not study.one_run_each:
        has_times = not (result.side_by_side or view is View.SETTINGS or result.not_in_effect)
        is_said = view is not View.LOADERS and tables.says_blocks(comparisons, has_times)
        disturbed = {name for names in result.disturbed_arms.values() for name in names}
        hit = [one for one in comparisons if one.speedup and {one.arm, references[one.arm]} & disturbed]
        size = None if is_said else ONE_OF_EACH
        noisy = noise(result.interference, blocks, comparisons, hit, result.reference_kernel_range_s, size)
    if study.is_race:
        return []
    if view is View.LOADERS:
        return [Row("Noise", message) for message in noisy[:1]] + grid.rows_on_fastest(result)
    measured = {one.arm: one for one in result.measured}
    names = [arm.name for arm in study.compared if arm.name in measured] or [study.reference.name]
    shown = [measured[name] for name in names if name in measured]
    has_settings = view is not View.CALIBRATION and names[0] != study.reference.name
    things = tables.things(view, result.engines, study.compared)
    cause: Message | None = None
    if view is View.SETTINGS:
        cause = tables.clauses(*ablation.clauses(result.ablation))
    elif len(comparisons) == 1 and not (view in (View.IMAGES, View.CALIBRATION) or study.distributed or study.at_once):
        (one,) = comparisons
        unit = tables.faults_unit(study.user_command)
        cause = why(one, measured, references[one.arm], result.environments[one.arm], unit)
    lines: list[tuple[str, Message | None]] = [
        ("Left out", messages.LeftOut(len(result.not_measured)) if result.not_measured else None),
        ("Best", best([study.names(arm)[0] for arm in result.may_be_best])),
        ("Dropped", dropped(result.dropped)),
        *(
            ("Memory", message)
            for message in memory(result.comparisons, result.memory_unknown, study.stopping.max_memory)
        ),
        ("Settings", settings(shown, result.not_in_effect, len(comparisons), things, has_settings)),
        *(("Losses", message) for message in losses(result)),
        *(("Noise", message) for message in noisy),
        ("Why", cause),
    ]
    if (purpose := _unexplained(cause)) is not None:
        command = commands.of_arm(result, study.arm(comparisons[0].arm)).breakdown
        lines.append(("Why", RunFor(purpose, command) if command else None))
    return labelled_once(
        Row(label, message, _weight(message), whole=hasattr(message, "command"))
        for label, message in lines
        if message is not None
    )


def best(names: Sequence[str]) -> Message | None:
    """Return the ``names`` of those that can't be told from the fastest; None if there is but one."""
    if len(names) < 2:
        return None
    return messages.MayBeBest(tuple(names[:MOST_NAMED]), len(names[MOST_NAMED:]) or None)


def dropped(departures: Mapping[str, Departure]) -> Message | None:
    """Return which arms left the run early, when, and what they are slower than; None if no arm was slower."""
    slower = {name: departure for name, departure in departures.items() if departure.slower_than is not None}
    if not slower:
        return None
    blocks = {departure.blocks for departure in slower.values()}
    faster = {departure.slower_than or "" for departure in slower.values()}
    names, last = [*slower], max(blocks) if len(blocks) > 1 else None
    return messages.Dropped(
        min(blocks),
        last,
        min(faster) if len(faster) == 1 else messages.ANOTHER,
        tuple(names[:MOST_NAMED]),
        len(names[MOST_NAMED:]) or None,
    )


def memory(comparisons: Sequence[Comparison], unknown: Sequence[str], limit: float | None) -> list[Message]:
    """Return which arms are above the ``limit`` on memory, and that ``unknown`` ones could not be compared with it."""
    over = [comparison.over_memory for comparison in comparisons if comparison.over_memory]
    has_result = any(map(ranking.ratio_of, comparisons))
    if limit is None or not (over or has_result):
        return []
    arms = tuple(
        messages.ArmOverLimit(
            excess.arm, excess.peak_bytes, excess.reference_bytes, excess.share, GPU if excess.memory == GPU else None
        )
        for excess in over
    )
    lines: list[Message] = [messages.LimitUnchecked(limit, tuple(unknown))] if unknown else []
    if arms:
        return [messages.OverLimit(limit, arms[:MOST_NAMED], len(arms[MOST_NAMED:]) or None), *lines]
    return lines or [messages.WithinLimit(limit)]


def _weight(message: Message) -> str:
    return "bad" if isinstance(message, messages.LossesFarther) else "plain"


def settings(
    shown: Sequence[Measured], not_in_effect: Sequence[Measured], compared: int, things: str, has_settings: bool
) -> Message | None:
    """Return whether the settings of the arms that are ``shown`` were observed; None where a table says which were not.

    So many ``things`` are ``compared``, if there are several. ``has_settings`` is False for the reference alone.
    """
    if len(shown) > 1:
        return _settings_of_many(shown, compared, things)
    if not_in_effect:
        outside = next((measured.not_observed for measured in not_in_effect if measured.not_observed), None)
        if outside:
            return messages.SeenFromOutside(from_json(outside))
        return messages.CheckedIn(not_in_effect[0].samples, not_in_effect[0].arm)
    if not shown:
        return messages.NotVerifiedYet() if compared else None
    return _settings_of_one(shown[0], has_settings)


def _settings_of_one(measured: Measured, has_settings: bool) -> Message | None:
    if measured.not_observed:
        return messages.SeenFromOutside(from_json(measured.not_observed))
    if not measured.checks:
        return messages.NothingToVerify(measured.arm) if has_settings else None
    if measured.unverified:
        keys = tuple(check.key for check in measured.unverified)
        number = len(measured.checks) - len(keys)
        return messages.SomeVerified(number, len(measured.checks), keys, effect.shown(measured.unverified[0].seen))
    return messages.AllVerified(len(measured.checks) if len(measured.checks) > 1 else None)


def _settings_of_many(compared: Sequence[Measured], everyone: int, things: str) -> Message:
    not_in_effect = tuple(measured.arm for measured in compared if not measured.in_effect)
    partly = tuple(
        measured.arm for measured in compared if measured.in_effect and (measured.unverified or measured.not_observed)
    )
    sound = len(compared) - len(not_in_effect) - len(partly)
    kind = messages.ArmsVerified if sound == everyone else messages.SomeArmsVerified
    return kind(sound, everyone, things, not_in_effect, partly)


def losses(result: Result) -> list[Message]:
    """Return how the losses of what was compared agree with the reference's."""
    study = result.study
    compared = [comparison for comparison in result.comparisons if comparison.verdict != Verdict.NOT_IN_EFFECT]
    if study.view is View.SETTINGS:
        compared = compared[:1] + [comparison for comparison in compared[1:] if judgement.losses_differ(comparison)]
    if not compared or study.view is View.CALIBRATION:
        return []
    if any(one.what == OTHER_WEIGHTS for arm in study.compared for one in result.image_differences.get(arm.name, ())):
        return [messages.LossesNotCompared(messages.OTHER_WEIGHTS)]
    others = [arm for arm in study.compared if study.trains_otherwise(arm)]
    known = {comparison.arm: comparison.losses for comparison in compared if comparison.losses is not None}
    reference = None if study.user_command is None else study.reference.name
    lines = _agreeing(known, len(compared), reference)
    if others:
        names = some_of([arm.name for arm in others], len(study.compared))
        workloads = tuple(dict.fromkeys(study.workload_of(arm) for arm in others))
        quantity = QUANTITIES["trainings" if study.epochs else "images"]
        lines.append(messages.LossesOfOtherTraining(names, workloads, quantity))
    if lines or not any(comparison.speedup for comparison in compared):
        return lines
    command = study.user_command
    is_unread = command is not None and command.loss_metric is None
    return [messages.LossesNotCompared(messages.NOT_READ if is_unread else messages.TOO_FEW_SAMPLES)]


def _agreeing(known: Mapping[str, Losses], everyone: int, reference: str | None) -> list[Message]:
    """Return one message for those whose losses are identical, one for those near, one for those that differ.

    Losses of a user's command are known by what they repeat: then ``reference`` is the name of theirs.
    """
    if not known:
        return []
    steps = next(iter(known.values())).steps
    equal = [arm for arm, one in known.items() if one.agree and one.largest_difference == 0]
    near = [arm for arm, one in known.items() if one.agree and one.largest_difference != 0]
    apart = [arm for arm, one in known.items() if not one.agree]

    def of(arms: Sequence[str]) -> str | None:
        return None if everyone == 1 or len(arms) == len(known) == everyone else some_of(arms, everyone)

    lines: list[Message] = []
    if equal:
        kind = messages.LossesIdentical if reference is None else messages.LossesPrintedAlike
        lines.append(kind(steps, of(equal)))
    if near:
        most = max(known[arm].largest_difference for arm in near)
        within_reference = max(known[arm].own_difference or 0.0 for arm in near)
        if reference is None:
            lines.append(messages.LossesRounded(most, steps, of(near)))
        else:
            lines.append(messages.LossesNear(most, within_reference, reference, of(near)))
    if apart:
        largest = max(known[arm].largest_difference for arm in apart)
        largest = math.inf if any(math.isnan(known[arm].largest_difference) for arm in apart) else largest
        lines.append(messages.LossesFarther(finite(largest), of(apart)))
    return lines


def noise(
    interference: Mapping[int, Sequence[Message]],
    blocks: int,
    comparisons: Sequence[Comparison],
    hit: Sequence[Comparison],
    kernel_range_s: tuple[float, float] | None,
    size: str | None,
) -> list[Message]:
    """Return what disturbed a run of so many ``blocks`` from outside, and the results of those ``hit`` without that.

    ``size`` says what a block is, and ``kernel_range_s`` is the range of the reference kernel's times (seconds) where
    it is wide.
    """
    lines: list[Message] = []
    if interference:
        first = interference[min(interference)][0] if len(comparisons) == 1 else None
        lines.append(messages.Disturbed(len(interference), blocks, first, _without(hit, len(comparisons)), size))
    elif kernel_range_s is None:
        lines.append(messages.Undisturbed(blocks, size))
    differing = [
        messages.OtherInDisturbed(other.ratio, other.blocks, comparison.arm if len(comparisons) > 1 else None)
        for comparison in hit
        if (other := comparison.in_disturbed) is not None
    ]
    lines += differing[:MOST_NAMED]
    if more := len(differing[MOST_NAMED:]):
        lines.append(messages.MoreInDisturbed(more))
    if kernel_range_s is not None:
        least, most = kernel_range_s
        lines.append(messages.PaceVaried(most / least))
    return lines


def _without(hit: Sequence[Comparison], compared: int) -> Message | None:
    """Return the results without disturbed blocks of the comparisons that were ``hit``, of so many ``compared``."""
    if not hit:
        return None
    if compared == 1:
        quiet, speedup = hit[0].without_interference, hit[0].speedup
        if quiet is None or speedup is None:
            return messages.TooFewWithout()
        other = quiet.words if quiet.verdict != speedup.verdict else None
        return messages.WithoutDisturbed(quiet.ratio, quiet.low, quiet.high, other)
    few = tuple(one.arm for one in hit if one.without_interference is None)
    if few:
        return messages.TooFewWithout(() if len(few) == compared else few)
    changed = tuple(
        messages.OfSubject(one.arm, one.without_interference.words)
        for one in hit
        if one.without_interference and one.speedup and one.without_interference.verdict != one.speedup.verdict
    )
    return messages.VerdictsWithout(changed) if changed else messages.SameWithout()


def why(
    comparison: Comparison, measured: Mapping[str, Measured], reference: str, environment: Environment, faults_unit: str
) -> Message | None:
    """Return what counters say of the cause of a difference from the ``reference``; None without a difference.

    Page faults are counted per ``faults_unit``.
    """
    speedup = comparison.speedup
    if speedup is None or comparison.verdict not in ranking.WEIGHTS or speedup.within_margin or comparison.load:
        return None
    faster = comparison.verdict == Verdict.FASTER
    before, after = measured[reference], measured[comparison.arm]
    counter = _counters(before, after, faster, environment.variables, faults_unit)
    if counter is None and faster and MKL in environment.preload:
        return messages.FastestMkl()
    return counter or messages.CauseUnknown()


def _counters(
    before: Measured, after: Measured, faster: bool, variables: Mapping[str, str], faults_unit: str
) -> Message | None:
    """Return the counter that moved with the speed: system time, or page faults; None if neither did."""
    cause = _memory_cause(variables, before, after)
    moved, covered = "fell" if faster else "rose", _covered(before, after, faster)
    apart = after.system_share - before.system_share
    if (apart < 0) == faster and abs(apart) >= NOTABLE_SHARE:
        return messages.SystemTimeChanged(moved, before.system_share, after.system_share, cause, covered)
    least, most = sorted((before.faults_per_step, after.faults_per_step))
    if most >= FEWEST_FAULTS and most >= NOTABLE_FAULTS * least and (after.faults_per_step == least) == faster:
        return messages.FaultsChanged(moved, before.faults_per_step, after.faults_per_step, faults_unit, cause, covered)
    return None


def _covered(before: Measured, after: Measured, faster: bool) -> messages.Covered | None:
    """Return which share of the CPU time saved, or added, is the kernel's; None where CPU time is about the same."""
    whole, system = after.cpu_s - before.cpu_s, after.system_s - before.system_s
    if (whole < 0) != faster or abs(whole) < NOTABLE_SHARE * before.cpu_s:
        return None
    return messages.Covered(min(1.0, max(0.0, system / whole)), "saved" if faster else "added")


def _unexplained(cause: Message | None) -> str | None:
    """Return what to find out if the line on the cause leaves most of a difference unexplained."""
    if isinstance(cause, messages.CauseUnknown):
        return FIND_CAUSE
    if not isinstance(cause, messages.SystemTimeChanged | messages.FaultsChanged):
        return None
    covered = cause.covered
    return None if isinstance(covered, messages.Covered) and covered.share >= MOST else FIND_REST


def _memory_cause(variables: Mapping[str, str], before: Measured, after: Measured) -> str | None:
    if after.faults_per_step * 10 > before.faults_per_step:
        return None
    if any(name.startswith(ALLOCATORS) for name in variables):
        return messages.MEMORY_KEPT
    return messages.HUGE_PAGES if HUGE_PAGES in variables else None


def system(
    host: Inspection, engines: Mapping[str, Surroundings], command: UserCommand | None, workload: str, trained: str
) -> Message:
    """Return the machine, the engines and what was ``trained``: a user's ``command`` has the name of its workload."""
    cpu, cpus = host["fingerprint"]["cpu_model"], host["facts"]["usable_cpus"]
    training = execution_context.what_was_run(command, workload, trained)
    if command:  # it may run in another Python, with another torch
        names = tuple(name for name in engines if name != "local")
        return messages.System(cpu, cpus, None, names or ("local",), training)
    torch = {name: surroundings["inspection"]["packages"]["torch"] for name, surroundings in engines.items()}
    with_torch = tuple(
        text(messages.Torch(version, None if name == "local" else name)) for name, version in torch.items()
    )
    return messages.System(cpu, cpus, trained_on(host).removeprefix(", ") or None, with_torch, training)


def machine(result: Result) -> str:
    """Return the same of a result, as text."""
    study = result.study
    host = result.inspection(study.reference)
    return text(system(host, result.engines, study.user_command, study.workload, study.trained))


def some_of(arms: Sequence[str], everyone: int, few: int = 3) -> str:
    """Return a few names, or how many there are."""
    return ", ".join(arms) if len(arms) <= few else f"{len(arms)} of {everyone}"
