"""The times of each arm, as the cells of a table."""

from __future__ import annotations

from envkit.analysis import ranking
from envkit.analysis.result import Comparison, Measured, Result
from envkit.bench import quality
from envkit.bench.arms import View
from envkit.checks.effect import Check
from envkit.common.messages import About, Clauses
from envkit.messages import Message
from envkit.rendering import ratio, text
from envkit.report import cautions, judgement, multi_workload, observed, scaling
from envkit.report.messages import headings
from envkit.report.messages import tables as messages
from envkit.report.messages.headings import UNDER_LOAD
from envkit.report.messages.trainings import StepsOfRanks
from envkit.report.parts import Table
from envkit.stats.verdict import Verdict

# The published figures for the CNN's full training: seconds, test accuracy.
BOOK_WORKLOAD, BOOK_EPOCHS = "cnn", 10
BOOK = {"baseline": (148, 0.8399), "intel-omp": (106, 0.8325)}


def things(result: Result) -> str:
    """Return what is compared, in the plural."""
    if result.study.view is not View.WORKLOADS:
        return "parts" if result.study.view is View.SETTINGS else f"{_first(result)}s"
    one = len({arm.profile for arm in result.study.compared}) == 1
    return "workloads" if one else "combinations"


def _first(result: Result) -> str:
    return "image" if result.study.view is View.IMAGES else "profile" if len(result.engines) == 1 else "engine"


def faults_unit(result: Result) -> str:
    """Return what page faults are counted per: a user's command tells those of its whole run alone."""
    return "step" if result.study.user_command is None else "run"


def header(result: Result, wide: bool = False) -> list[str]:
    """Return the columns: the first holds names, the others numbers. Rates stand where they are needed, or ``wide``."""
    first = _first(result)
    if result.study.user_command is not None:
        return [
            first,
            "samples",
            f"ms/{result.study.step_name}",
            "system time",
            f"faults/{faults_unit(result)}",
            "memory",
        ]
    if result.study.epochs:
        return [first, "samples", "training", _tested(result), "ms/step", *([_speed(result)] if wide else [])]
    rate = [_speed(result)] if wide or _has_rates(result) else []
    return [first, "samples", "ms/step", *rate, "system time", f"faults/{faults_unit(result)}", "memory"]


def _has_rates(result: Result) -> bool:
    """Return whether steps of the arms are not alike, so that rates tell more than their times."""
    return result.study.weak or bool(result.study.at_once) or len(result.study.workloads) > 1


def cells(result: Result, one: Measured, wide: bool = False) -> list[str]:
    """Return one arm's row by ``header``: medians over its samples."""
    rated = one.images_per_s is not None and result.study.user_command is None
    rate = [_rate(result, one)] if rated and (wide or (not result.study.epochs and _has_rates(result))) else []
    speed = [f"{one.step_s * 1000:.2f}", *rate]
    if result.study.epochs:
        return [one.arm, str(one.samples), f"{one.training_s:.1f} s", _quality(result, one), *speed]
    effort = [f"{one.system_share:.1%}", f"{one.faults_per_step:,.0f}", f"{one.peak_memory_bytes / 2**20:,.0f} MiB"]
    return [one.arm, str(one.samples), *speed, *effort]


def took(result: Result) -> Table:
    """Return what each arm took that was measured."""
    if ended_in_failure(result):
        return _failed(result)
    published, head = book(result), header(result)
    weights = [*("plain" for _ in result.measured), *("soft" for _ in published)]
    rows = [cells(result, one) for one in result.measured]
    own = clauses(medians(result), steps(result))
    return Table(head, [*rows, *published] if rows else [], range(1, len(head)), weights, own)


def ended_in_failure(result: Result) -> bool:
    """Return whether a worker failed before anything could be compared."""
    return bool(result.failures and result.comparisons) and not any(map(ranking.ratio_of, result.comparisons))


def _failed(result: Result) -> Table:
    """Return a table without times, of which a reader would make a speedup."""
    rows = [[one.arm, str(one.samples), f"{one.peak_memory_bytes / 2**20:,.0f} MiB"] for one in result.measured]
    return Table([_first(result), "samples", "memory"], rows, (1, 2), note=messages.WithoutTimes() if rows else None)


def medians(result: Result) -> Message | None:
    """Return what the times of a table are, and whether they can be compared."""
    if any(one.speedup for one in result.comparisons):
        return messages.Medians(messages.OF_BLOCKS)
    compared = result.comparisons and not any(map(ranking.ratio_of, result.comparisons))
    return messages.Medians(messages.TOO_FEW) if compared else None


def says_blocks(result: Result) -> bool:
    """Return whether the table, or the first line, of the short report says what a block is."""
    if any(one.verdict in (Verdict.TOO_FEW_SAMPLES, Verdict.NOT_ENDED) for one in result.comparisons):
        return True
    of_many = result.side_by_side or result.study.view is View.SETTINGS or result.not_in_effect
    return medians(result) == messages.Medians(messages.OF_BLOCKS) and not of_many


def clauses(*those: Message | None) -> Message | None:
    """Return the clauses that are there in one line."""
    there = tuple(one for one in those if one)
    return Clauses(there) if there else None


def speedups(result: Result) -> Table:
    """Return a row for each arm of many, the fastest first, with its cautions."""
    marks, _ = cautions.legend(result)
    across = result.study.view is View.WORKLOADS
    peak = {one.arm: f"{one.peak_memory_bytes / 2**20:,.0f} MiB" for one in result.measured}
    rows, weights = [], []
    for name, one in _ordered(result):
        memory = [] if across else [peak.get(name, "-")]
        first = [result.study.workload_of(result.study.arm(name)), result.study.arm(name).profile] if across else [name]
        found = found_cells(one) if one else ["1", "", "reference"]
        rows.append([*first, *found, *memory, *([marks.get(name, "")] if marks else [])])
        weights.append(ranking.weight_of(one) if one else "plain")
    columns = [*(["workload", "profile"] if across else [_first(result)]), "speedup", "95% CI", "difference"]
    columns += [*([] if across else ["memory"]), *(["cautions"] if marks else [])]
    return Table(columns, rows, (2,) if across else (1, 4), weights, legend(result))


def legend(result: Result) -> Message | None:
    """Return what the marks in the column of cautions mean."""
    _, meanings = cautions.legend(result)
    return clauses(*(About(mark, meaning) for mark, meaning in zip("abc", meanings, strict=False)))


def _ordered(result: Result) -> list[tuple[str, Comparison | None]]:
    found = {one.arm: one for one in result.comparisons}
    if result.study.view is View.WORKLOADS:
        return [(arm.name, one) for arm, one in multi_workload.compared(result)]
    names = [
        name
        for name in ranking.order(result.comparisons, result.study.arms, result.study.view)
        if name in found or name == result.study.reference.name
    ]
    return [(name, found.get(name)) for name in names]


def found_cells(comparison: Comparison) -> list[str]:
    """Return ratio, interval and what difference was found."""
    found, single = comparison.speedup, ranking.ratio_of(comparison)
    if found is None:
        state = headings.NO_SPEEDUP.get(comparison.verdict.name, str(comparison.verdict))
        return ["-" if single is None else f"{ratio(single)}x", "", state]
    difference = headings.DIFFERENCES.get(found.verdict.name) or f"within {found.margin * 100:g}%"
    if found.verdict == Verdict.FASTER and judgement.losses_differ(comparison):
        difference = headings.LOSSES_DIFFER
    difference += UNDER_LOAD * (comparison.load is not None)
    return [f"{ratio(found.ratio)}x", f"{ratio(found.low)} to {ratio(found.high)}", difference]


def ranked(result: Result) -> list[list[str]]:
    """Return name, speedup, interval, difference and milliseconds per step of each arm, by ``ranking.order``."""
    compared = {one.arm: one for one in result.comparisons}
    step_s = {one.arm: one.step_s for one in result.measured}
    rows = []
    for name in ranking.order(result.comparisons, result.study.arms, result.study.view):
        reference = ["1", "", "reference"] if name == result.study.reference.name else ["-", "", ""]
        found = found_cells(compared[name]) if name in compared else reference
        rows.append([name, *found, f"{step_s[name] * 1000:.2f}" if name in step_s else "-"])
    return rows


def not_in_effect(result: Result) -> Table:
    """Return what was expected of settings and not observed; of each arm if there are several."""
    wrong = [(one, check) for one in result.not_in_effect for check in one.checks if not check.holds]
    several = len(result.not_in_effect) > 1
    rows = [
        [*([one.arm] if several else []), key(check), observed.shown(check.expected), observed.shown(check.seen)]
        for one, check in wrong
    ]
    header = [*(["profile"] if several else []), "setting", "expected", "observed"]
    return Table(header, rows, weights=["bad"] * len(rows))


def key(check: Check) -> str:
    """Return the setting of a check, without what kind of check it is."""
    return check.key.removeprefix("variable ")


def _units(result: Result) -> set[str]:
    return {one.unit for one in result.measured} or {"images"}


def _speed(result: Result) -> str:
    """``images/s``, or what else is counted; where it differs, each row says it."""
    units = _units(result)
    return f"{units.pop()}/s" if len(units) == 1 else "per second"


def _rate(result: Result, one: Measured) -> str:
    rate = f"{one.images_per_s or 0:,.0f}"
    return rate if len(_units(result)) == 1 else f"{rate} {one.unit}"


def _tested(result: Result) -> str:
    """``accuracy``, where that is all that is tested."""
    figures = {name for one in result.measured for name in one.quality}
    return "accuracy" if figures <= {"accuracy"} else headings.LEARNT


def _quality(result: Result, one: Measured) -> str:
    if _tested(result) != "accuracy":
        return quality.shown(one.quality) or "-"
    return "-" if one.accuracy is None else f"{one.accuracy:.2%}"


def steps(result: Result) -> Message | None:
    """Return what a step is if not all are alike, and by what to compare them."""
    said = scaling.steps(result.study)
    return said.replace(rate=_speed(result)) if isinstance(said, StepsOfRanks) else said


def note(result: Result) -> Message | None:
    """Return how to read the table that has speedups, too."""
    times = messages.Medians(messages.FAILED) if ended_in_failure(result) else medians(result) or messages.Medians()
    return clauses(times, steps(result), legend(result))


def all_arms(result: Result) -> list[list[str]]:
    """Return a row for each arm of the study, of many the fastest first; one that has no sample has dashes."""
    measured = {one.arm: cells(result, one, wide=True) for one in result.measured}
    dashes = ["-"] * (len(header(result, wide=True)) - 2)
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
    return [*header(result, wide=True), "speedup", "95% CI", "difference", *cautions_too]


def wide_rows(result: Result) -> list[list[str]]:
    """Return a row for each arm, by ``wide_header``."""
    found = {one.arm: one for one in result.comparisons}
    references = {arm.name for arm in result.study.references} if result.comparisons else set()
    rows, (marks, _) = [], cautions.legend(result)
    for row in all_arms(result):
        one = found.get(row[0])
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


def book(result: Result) -> list[list[str]]:
    """Return rows of the published figures by ``header``, beside a training as long as the book's."""
    if result.study.epochs != BOOK_EPOCHS or result.study.until or BOOK_WORKLOAD not in result.study.workloads:
        return []
    return [
        [text(messages.Published(name)), "", f"{seconds} s", f"{share:.2%}", ""]
        for name, (seconds, share) in BOOK.items()
    ]
