"""The times of each arm, as the cells of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from envkit.analysis import ranking
from envkit.analysis.race import Racer
from envkit.analysis.result import Comparison, Measured, Result
from envkit.bench import quality
from envkit.bench.arms import Arm, View
from envkit.bench.events import Failure
from envkit.checks.effect import Check
from envkit.common.messages import About, Clauses
from envkit.messages import Message
from envkit.rendering import ratio, text
from envkit.report import cautions, judgement, observed, scaling
from envkit.report.messages import headings
from envkit.report.messages import tables as messages
from envkit.report.messages.headings import OVER_MEMORY, UNDER_LOAD
from envkit.report.parts import Table
from envkit.stats.verdict import Verdict
from envkit.worker.request import UserCommand

# The published figures for the CNN's full training: seconds, test accuracy.
BOOK_WORKLOAD, BOOK_EPOCHS = "cnn", 10
BOOK = {"baseline": (148, 0.8399), "intel-omp": (106, 0.8325)}


def things(view: View, engines: Collection[str], compared: Iterable[Arm]) -> str:
    """Return what is compared, in the plural."""
    if view is not View.WORKLOADS:
        return "parts" if view is View.SETTINGS else f"{first_column(view, engines)}s"
    one = len({arm.profile for arm in compared}) == 1
    return "workloads" if one else "combinations"


def first_column(view: View, engines: Collection[str]) -> str:
    """Return what the names of arms are: those of profiles, of images, or of one profile's engines."""
    return "image" if view is View.IMAGES else "profile" if len(engines) == 1 else "engine"


@dataclass(frozen=True)
class Columns:
    """The columns of a table of times. ``None`` stands for a column that the table does not have."""

    first: str  # the kind of names
    step: str  # the unit of the times
    faults: str  # the unit of page faults: a user's command has those of its whole run alone
    rate: str | None  # the unit of rates
    tested: str | None  # of full trainings: the heading of the figures of their tests
    several_units: bool  # each rate has a unit of its own
    published: list[list[str]]  # rows of published figures to compare with
    steps: Message | None  # in which arms a step is larger than in others


def columns(result: Result, wide: bool = False) -> Columns:
    """Return the columns of a result. Rates have one if steps of the arms are not alike, or the table is ``wide``."""
    study = result.study
    unlike = study.weak or bool(study.at_once) or len(study.workloads) > 1
    units = {measured.unit for measured in result.measured} or {"images"}
    rate = f"{min(units)}/s" if len(units) == 1 else "per second"
    shown_rate = rate if study.user_command is None and (wide or (unlike and not study.epochs)) else None
    figures = {name for measured in result.measured for name in measured.quality}
    return Columns(
        first=first_column(study.view, result.engines),
        step=study.step_name,
        faults=faults_unit(study.user_command),
        rate=shown_rate,
        tested=("accuracy" if figures <= {"accuracy"} else headings.LEARNT) if study.epochs else None,
        several_units=len(units) > 1,
        published=book(study.epochs, study.until, study.workloads),
        steps=scaling.steps(bool(study.at_once), study.weak_ranks, shown_rate),
    )


def faults_unit(command: UserCommand | None) -> str:
    """Return what page faults are counted per: a user's command has those of its whole run alone."""
    return "step" if command is None else "run"


def header(shown: Columns) -> list[str]:
    """Return the headings: the first column holds names, the others numbers."""
    rate = [shown.rate] if shown.rate else []
    if shown.tested:
        return [shown.first, "samples", "training", shown.tested, "ms/step", *rate]
    return [shown.first, "samples", f"ms/{shown.step}", *rate, "system time", f"faults/{shown.faults}", "memory"]


def cells(shown: Columns, measured: Measured) -> list[str]:
    """Return one arm's row by ``header``: medians over its samples."""
    speed = [f"{measured.step_s * 1000:.2f}"]
    if shown.rate and measured.images_per_s is not None:
        speed.append(f"{measured.images_per_s:,.0f}{f' {measured.unit}' if shown.several_units else ''}")
    if shown.tested:
        return [
            measured.arm,
            str(measured.samples),
            f"{measured.training_s:.1f} s",
            _quality(shown.tested, measured),
            *speed,
        ]
    effort = [
        f"{measured.system_share:.1%}",
        f"{measured.faults_per_step:,.0f}",
        f"{measured.peak_memory_bytes / 2**20:,.0f} MiB",
    ]
    return [measured.arm, str(measured.samples), *speed, *effort]


def took(
    shown: Columns, measured: Sequence[Measured], failures: Sequence[Failure], comparisons: Sequence[Comparison]
) -> Table:
    """Return what each arm took that was measured, in the columns that are ``shown``."""
    if ended_in_failure(failures, comparisons):
        return _failed(shown.first, measured)
    head, rows = header(shown), [cells(shown, one) for one in measured]
    weights = [*("plain" for _ in rows), *("soft" for _ in shown.published)]
    note = clauses(medians(comparisons), shown.steps)
    return Table(head, [*rows, *shown.published] if rows else [], range(1, len(head)), weights, note)


def ended_in_failure(failures: Sequence[Failure], comparisons: Sequence[Comparison]) -> bool:
    """Return whether a worker failed before anything could be compared."""
    return bool(failures and comparisons) and not any(map(ranking.ratio_of, comparisons))


def _failed(first: str, measured: Sequence[Measured]) -> Table:
    """Return a table without times, of which a reader would make a speedup."""
    rows = [[one.arm, str(one.samples), f"{one.peak_memory_bytes / 2**20:,.0f} MiB"] for one in measured]
    return Table([first, "samples", "memory"], rows, (1, 2), note=messages.WithoutTimes() if rows else None)


def medians(comparisons: Sequence[Comparison]) -> Message | None:
    """Return what the times of a table are, and whether they can be compared."""
    if any(comparison.speedup for comparison in comparisons):
        return messages.Medians(messages.OF_BLOCKS)
    compared = comparisons and not any(map(ranking.ratio_of, comparisons))
    return messages.Medians(messages.TOO_FEW) if compared else None


def says_blocks(comparisons: Sequence[Comparison], has_times: bool) -> bool:
    """Return whether the first line, or a table that ``has_times``, of the short report says what a block is."""
    if any(comparison.verdict in (Verdict.TOO_FEW_SAMPLES, Verdict.NOT_ENDED) for comparison in comparisons):
        return True
    return has_times and any(comparison.speedup for comparison in comparisons)


def clauses(*those: Message | None) -> Message | None:
    """Return the clauses that are there in one line."""
    there = tuple(one for one in those if one)
    return Clauses(there) if there else None


def speedups(result: Result) -> Table:
    """Return a row for each arm of many, the fastest first, with its cautions."""
    marks, _ = cautions.legend(result)
    across = result.study.view is View.WORKLOADS
    peak = {measured.arm: f"{measured.peak_memory_bytes / 2**20:,.0f} MiB" for measured in result.measured}
    samples = {measured.arm: str(measured.samples) for measured in result.measured} if result.dropped else {}
    rows, weights = [], []
    for name, one in _ordered(result):
        memory = [] if across else [peak.get(name, "-")]
        first = [result.study.workload_of(result.study.arm(name)), result.study.arm(name).profile] if across else [name]
        figures = found_cells(one) if one else ["1", "", "reference"]
        of_arm = [*([samples.get(name, "0")] if samples else []), *figures, *memory]
        rows.append([*first, *of_arm, *([marks.get(name, "")] if marks else [])])
        weights.append(ranking.weight_of(one) if one else "plain")
    columns = [
        *(["workload", "profile"] if across else [first_column(result.study.view, result.engines)]),
        *(["samples"] if samples else []),
        "speedup",
        "95% CI",
        "difference",
    ]
    columns += [*([] if across else ["memory"]), *(["cautions"] if marks else [])]
    numbers = [place for place, name in enumerate(columns) if name in ("samples", "speedup", "memory")]
    return Table(columns, rows, numbers, weights, legend(result))


def trained(result: Result) -> Table:
    """Return a row for each workload: a step of the reference, and what it has learnt."""
    measured = {one.arm: one for one in result.measured}
    rows = []
    for arm in result.study.references:
        one = measured.get(arm.name)
        if one is None or one.images_per_s is None:
            continue
        speed = [f"{one.images_per_s * one.step_s:.0f} {one.unit}", f"{one.step_s * 1000:.2f}",
                 f"{one.images_per_s:,.0f}"]  # fmt: skip
        loss = "-" if one.final_loss is None else f"{one.final_loss:.3f}"
        rows.append([result.study.workload_of(arm), *speed, loss, quality.shown(one.quality) or "-"])
    return Table(headings.TRAINED, rows, (2, 3, 4))


def legend(result: Result) -> Message | None:
    """Return what the marks in the column of cautions mean."""
    _, meanings = cautions.legend(result)
    return clauses(*(About(mark, meaning) for mark, meaning in zip("abc", meanings, strict=False)))


def _ordered(result: Result) -> list[tuple[str, Comparison | None]]:
    compared = {comparison.arm: comparison for comparison in result.comparisons}
    if result.study.view is View.WORKLOADS:
        return [(arm.name, one) for arm, one in judgement.by_workload(result)]
    names = [
        name
        for name in ranking.order(result.comparisons, result.study.arms, result.study.view)
        if name in compared or name == result.study.reference.name
    ]
    return [(name, compared.get(name)) for name in names]


def found_cells(comparison: Comparison) -> list[str]:
    """Return ratio, interval and what difference was found."""
    speedup, single = comparison.speedup, ranking.ratio_of(comparison)
    if speedup is None:
        state = headings.NO_SPEEDUP.get(comparison.verdict.name, str(comparison.verdict))
        return ["-" if single is None else f"{ratio(single)}x", "", state]
    difference = headings.DIFFERENCES.get(speedup.verdict.name) or f"within {speedup.margin * 100:g}%"
    if speedup.verdict == Verdict.FASTER and judgement.losses_differ(comparison):
        difference = headings.LOSSES_DIFFER
    difference += UNDER_LOAD * (comparison.load is not None) + OVER_MEMORY * (comparison.over_memory is not None)
    return [f"{ratio(speedup.ratio)}x", f"{ratio(speedup.low)} to {ratio(speedup.high)}", difference]


def ranked(result: Result) -> list[list[str]]:
    """Return name, speedup, interval, difference and milliseconds per step of each arm, by ``ranking.order``."""
    compared = {comparison.arm: comparison for comparison in result.comparisons}
    step_s = {measured.arm: measured.step_s for measured in result.measured}
    rows = []
    for name in ranking.order(result.comparisons, result.study.arms, result.study.view):
        reference = ["1", "", "reference"] if name == result.study.reference.name else ["-", "", ""]
        figures = found_cells(compared[name]) if name in compared else reference
        rows.append([name, *figures, f"{step_s[name] * 1000:.2f}" if name in step_s else "-"])
    return rows


def not_in_effect(result: Result) -> Table:
    """Return what was expected of settings and not observed; of each arm if there are several."""
    unmet = [(measured, check) for measured in result.not_in_effect for check in measured.checks if not check.holds]
    several = len(result.not_in_effect) > 1
    rows = [
        [*([one.arm] if several else []), key(check), observed.shown(check.expected), observed.shown(check.seen)]
        for one, check in unmet
    ]
    header = [*(["profile"] if several else []), "setting", "expected", "observed"]
    return Table(header, rows, weights=["bad"] * len(rows))


def race(racers: Sequence[Racer]) -> Table:
    """Return the table of a race: speeds over the winner's, without intervals, and when each profile left."""
    rows, weights = [], []
    for racer in racers:
        speed = "-" if racer.speed is None else f"{racer.speed:.2f}"
        rows.append([racer.arm, speed, str(racer.blocks), _left(racer)])
        weights.append("plain" if racer.left_after is None else "soft")
    note = messages.RaceSpeeds(racers[0].arm) if racers[0].speed is not None else None
    return Table(headings.RACE, rows, (1, 2), weights, note)


def _left(racer: Racer) -> str:
    """Return why or when an arm left a race."""
    if racer.failed:
        return headings.RACER_FAILED
    if racer.not_in_effect:
        return headings.RACER_NOT_IN_EFFECT
    left = headings.TO_THE_END if racer.left_after is None else text(messages.LeftAfter(racer.left_after))
    return f"{left}{OVER_MEMORY}".removeprefix(", ") if racer.over_memory else left


def key(check: Check) -> str:
    """Return the setting of a check, without what kind of check it is."""
    return check.key.removeprefix("variable ")


def _quality(heading: str, measured: Measured) -> str:
    if heading != "accuracy":
        return quality.shown(measured.quality) or "-"
    return "-" if measured.accuracy is None else f"{measured.accuracy:.2%}"


def note(result: Result) -> Message | None:
    """Return how to read the table that has speedups, too."""
    times = medians(result.comparisons) or messages.Medians()
    if ended_in_failure(result.failures, result.comparisons):
        times = messages.Medians(messages.FAILED)
    return clauses(times, columns(result, wide=True).steps, legend(result))


def all_arms(result: Result) -> list[list[str]]:
    """Return a row for each arm of the study, of many the fastest first; one that has no sample has dashes."""
    shown = columns(result, wide=True)
    measured = {one.arm: cells(shown, one) for one in result.measured}
    dashes = ["-"] * (len(header(shown)) - 2)
    names = dict.fromkeys(
        [
            *ranking.order(result.comparisons, result.study.arms, result.study.view),
            *(arm.name for arm in result.study.single_processes),
        ]
    )
    return [measured.get(name, [name, "0", *dashes]) for name in names]


def wide_header(result: Result) -> list[str]:
    """Return the columns if there is room for speedups, too."""
    cautions_too = ["cautions"] if cautions.legend(result)[0] else []
    return [*header(columns(result, wide=True)), "speedup", "95% CI", "difference", *cautions_too]


def wide_rows(result: Result) -> list[list[str]]:
    """Return a row for each arm, by ``wide_header``."""
    compared = {comparison.arm: comparison for comparison in result.comparisons}
    references = {arm.name for arm in result.study.references} if result.comparisons else set()
    rows, (marks, _) = [], cautions.legend(result)
    for row in all_arms(result):
        one = compared.get(row[0])
        if one:
            *figures, difference = found_cells(one)
            found_row = [*figures, _against(result, one.arm, difference)]
        else:
            found_row = ["", "", "reference" if row[0] in references else ""]
        rows.append([*row, *found_row, *([marks.get(row[0], "")] if marks else [])])
    return rows


def _against(result: Result, name: str, difference: str) -> str:
    """Return the difference, with what the arm is compared with if in an ablation that is not the baseline."""
    study = result.study
    reference = study.reference_of(study.arm(name))
    other = study.view is View.SETTINGS and reference != study.reference
    return text(messages.AgainstOther(difference, reference.name)) if other else difference


def book(epochs: int, until: str | None, workloads: Collection[str]) -> list[list[str]]:
    """Return rows of the published figures by ``header``, beside a training as long as the book's."""
    if epochs != BOOK_EPOCHS or until or BOOK_WORKLOAD not in workloads:
        return []
    return [
        [text(messages.Published(name)), "", f"{seconds} s", f"{share:.2%}", ""]
        for name, (seconds, share) in BOOK.items()
    ]
