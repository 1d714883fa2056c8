"""The times of each arm, as the cells of a table."""

from __future__ import annotations

from envkit.analysis import ranking
from envkit.analysis.summary import Comparison, Measured, Summary
from envkit.bench import quality
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


def things(summary: Summary) -> str:
    """Return what is compared, in the plural."""
    if not summary.plan.across:
        return "parts" if summary.plan.ablated else f"{_first(summary)}s"
    one = len({arm.profile for arm in summary.plan.compared}) == 1
    return "workloads" if one else "combinations"


def _first(summary: Summary) -> str:
    return "image" if summary.plan.compares_images else "profile" if len(summary.engines) == 1 else "engine"


def faults_unit(summary: Summary) -> str:
    """Return what page faults are counted per: a user's command tells those of its whole run alone."""
    return "step" if summary.plan.user_command is None else "run"


def header(summary: Summary, wide: bool = False) -> list[str]:
    """Return the columns: the first holds names, the others numbers. Rates stand where they are needed, or ``wide``."""
    first = _first(summary)
    if summary.plan.user_command is not None:
        return [
            first,
            "samples",
            f"ms/{summary.plan.step_name}",
            "system time",
            f"faults/{faults_unit(summary)}",
            "memory",
        ]
    if summary.plan.epochs:
        return [first, "samples", "training", _tested(summary), "ms/step", *([_speed(summary)] if wide else [])]
    rate = [_speed(summary)] if wide or _has_rates(summary) else []
    return [first, "samples", "ms/step", *rate, "system time", f"faults/{faults_unit(summary)}", "memory"]


def _has_rates(summary: Summary) -> bool:
    """Return whether steps of the arms are not alike, so that rates tell more than their times."""
    return summary.plan.weak or bool(summary.plan.at_once) or len(summary.plan.workloads) > 1


def cells(summary: Summary, one: Measured, wide: bool = False) -> list[str]:
    """Return one arm's row by ``header``: medians over its samples."""
    rated = one.images_per_s is not None and summary.plan.user_command is None
    rate = [_rate(summary, one)] if rated and (wide or (not summary.plan.epochs and _has_rates(summary))) else []
    speed = [f"{one.step_s * 1000:.2f}", *rate]
    if summary.plan.epochs:
        return [one.arm, str(one.samples), f"{one.training_s:.1f} s", _quality(summary, one), *speed]
    effort = [f"{one.system_share:.1%}", f"{one.faults_per_step:,.0f}", f"{one.peak_memory_bytes / 2**20:,.0f} MiB"]
    return [one.arm, str(one.samples), *speed, *effort]


def took(summary: Summary) -> Table:
    """Return what each arm took that was measured."""
    if ended_in_failure(summary):
        return _failed(summary)
    published, head = book(summary), header(summary)
    weights = [*("plain" for _ in summary.measured), *("soft" for _ in published)]
    rows = [cells(summary, one) for one in summary.measured]
    own = clauses(medians(summary), steps(summary))
    return Table(head, [*rows, *published] if rows else [], range(1, len(head)), weights, own)


def ended_in_failure(summary: Summary) -> bool:
    """Return whether a worker failed before anything could be compared."""
    return bool(summary.failures and summary.comparisons) and not any(map(ranking.ratio_of, summary.comparisons))


def _failed(summary: Summary) -> Table:
    """Return a table without times, of which a reader would make a speedup."""
    rows = [[one.arm, str(one.samples), f"{one.peak_memory_bytes / 2**20:,.0f} MiB"] for one in summary.measured]
    return Table([_first(summary), "samples", "memory"], rows, (1, 2), note=messages.WithoutTimes() if rows else None)


def medians(summary: Summary) -> Message | None:
    """Return what the times of a table are, and whether they can be compared."""
    if any(one.speedup for one in summary.comparisons):
        return messages.Medians(messages.OF_BLOCKS)
    compared = summary.comparisons and not any(map(ranking.ratio_of, summary.comparisons))
    return messages.Medians(messages.TOO_FEW) if compared else None


def says_blocks(summary: Summary) -> bool:
    """Return whether the table, or the first line, of the short report says what a block is."""
    if any(one.verdict in (Verdict.TOO_FEW_SAMPLES, Verdict.NOT_ENDED) for one in summary.comparisons):
        return True
    of_many = cautions.tabled(summary) or summary.plan.ablated or summary.not_in_effect
    return medians(summary) == messages.Medians(messages.OF_BLOCKS) and not of_many


def clauses(*those: Message | None) -> Message | None:
    """Return the clauses that are there in one line."""
    there = tuple(one for one in those if one)
    return Clauses(there) if there else None


def speedups(summary: Summary) -> Table:
    """Return a row for each arm of many, the fastest first, with its cautions."""
    marks, _ = cautions.legend(summary)
    across = summary.plan.across
    peak = {one.arm: f"{one.peak_memory_bytes / 2**20:,.0f} MiB" for one in summary.measured}
    rows, weights = [], []
    for name, one in _ordered(summary):
        memory = [] if across else [peak.get(name, "-")]
        first = [summary.plan.workload_of(summary.plan.arm(name)), summary.plan.arm(name).profile] if across else [name]
        found = found_cells(one) if one else ["1", "", "reference"]
        rows.append([*first, *found, *memory, *([marks.get(name, "")] if marks else [])])
        weights.append(ranking.weight_of(one) if one else "plain")
    columns = [*(["workload", "profile"] if across else [_first(summary)]), "speedup", "95% CI", "difference"]
    columns += [*([] if across else ["memory"]), *(["cautions"] if marks else [])]
    return Table(columns, rows, (2,) if across else (1, 4), weights, legend(summary))


def legend(summary: Summary) -> Message | None:
    """Return what the marks in the column of cautions mean."""
    _, meanings = cautions.legend(summary)
    return clauses(*(About(mark, meaning) for mark, meaning in zip("abc", meanings, strict=False)))


def _ordered(summary: Summary) -> list[tuple[str, Comparison | None]]:
    found = {one.arm: one for one in summary.comparisons}
    if summary.plan.across:
        return [(arm.name, one) for arm, one in multi_workload.compared(summary)]
    names = [name for name in ranking.order(summary) if name in found or name == summary.plan.reference.name]
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


def ranked(summary: Summary) -> list[list[str]]:
    """Return name, speedup, interval, difference and milliseconds per step of each arm, by ``ranking.order``."""
    compared = {one.arm: one for one in summary.comparisons}
    step_s = {one.arm: one.step_s for one in summary.measured}
    rows = []
    for name in ranking.order(summary):
        reference = ["1", "", "reference"] if name == summary.plan.reference.name else ["-", "", ""]
        found = found_cells(compared[name]) if name in compared else reference
        rows.append([name, *found, f"{step_s[name] * 1000:.2f}" if name in step_s else "-"])
    return rows


def not_in_effect(summary: Summary) -> Table:
    """Return what was expected of settings and not observed; of each arm if there are several."""
    wrong = [(one, check) for one in summary.not_in_effect for check in one.checks if not check.holds]
    several = len(summary.not_in_effect) > 1
    rows = [
        [*([one.arm] if several else []), key(check), observed.shown(check.expected), observed.shown(check.seen)]
        for one, check in wrong
    ]
    header = [*(["profile"] if several else []), "setting", "expected", "observed"]
    return Table(header, rows, weights=["bad"] * len(rows))


def key(check: Check) -> str:
    """Return the setting of a check, without what kind of check it is."""
    return check.key.removeprefix("variable ")


def _units(summary: Summary) -> set[str]:
    return {one.unit for one in summary.measured} or {"images"}


def _speed(summary: Summary) -> str:
    """``images/s``, or what else is counted; where it differs, each row says it."""
    units = _units(summary)
    return f"{units.pop()}/s" if len(units) == 1 else "per second"


def _rate(summary: Summary, one: Measured) -> str:
    rate = f"{one.images_per_s or 0:,.0f}"
    return rate if len(_units(summary)) == 1 else f"{rate} {one.unit}"


def _tested(summary: Summary) -> str:
    """``accuracy``, where that is all that is tested."""
    figures = {name for one in summary.measured for name in one.quality}
    return "accuracy" if figures <= {"accuracy"} else headings.LEARNT


def _quality(summary: Summary, one: Measured) -> str:
    if _tested(summary) != "accuracy":
        return quality.shown(one.quality) or "-"
    return "-" if one.accuracy is None else f"{one.accuracy:.2%}"


def steps(summary: Summary) -> Message | None:
    """Return what a step is if not all are alike, and by what to compare them."""
    said = scaling.steps(summary.plan)
    return said.replace(rate=_speed(summary)) if isinstance(said, StepsOfRanks) else said


def note(summary: Summary) -> Message | None:
    """Return how to read the table that has speedups, too."""
    times = messages.Medians(messages.FAILED) if ended_in_failure(summary) else medians(summary) or messages.Medians()
    return clauses(times, steps(summary), legend(summary))


def all_arms(summary: Summary) -> list[list[str]]:
    """Return a row for each arm of the plan, of many the fastest first; one that has no sample has dashes."""
    measured = {one.arm: cells(summary, one, wide=True) for one in summary.measured}
    dashes = ["-"] * (len(header(summary, wide=True)) - 2)
    names = dict.fromkeys([*ranking.order(summary), *(arm.name for arm in summary.plan.single_processes)])
    return [measured.get(name, [name, "0", *dashes]) for name in names]


def wide_header(summary: Summary) -> list[str]:
    """Return the columns if there is room for speedups, too."""
    cautions_too = ["cautions"] if cautions.legend(summary)[0] else []
    return [*header(summary, wide=True), "speedup", "95% CI", "difference", *cautions_too]


def wide_rows(summary: Summary) -> list[list[str]]:
    """Return a row for each arm, by ``wide_header``."""
    found = {one.arm: one for one in summary.comparisons}
    references = {arm.name for arm in summary.plan.references} if summary.comparisons else set()
    rows, (marks, _) = [], cautions.legend(summary)
    for row in all_arms(summary):
        one = found.get(row[0])
        if one:
            *figures, difference = found_cells(one)
            found_row = [*figures, _against(summary, one.arm, difference)]
        else:
            found_row = ["", "", "reference" if row[0] in references else ""]
        rows.append([*row, *found_row, *([marks.get(row[0], "")] if marks else [])])
    return rows


def _against(summary: Summary, name: str, difference: str) -> str:
    """Return the difference, with what the arm is compared with if in an ablation that is not the baseline."""
    plan = summary.plan
    reference = plan.reference_of(plan.arm(name))
    other = plan.ablated and reference != plan.reference
    return text(messages.AgainstOther(difference, reference.name)) if other else difference


def book(summary: Summary) -> list[list[str]]:
    """Return rows of the published figures by ``header``, beside a training as long as the book's."""
    if summary.plan.epochs != BOOK_EPOCHS or summary.plan.until or BOOK_WORKLOAD not in summary.plan.workloads:
        return []
    return [
        [text(messages.Published(name)), "", f"{seconds} s", f"{share:.2%}", ""]
        for name, (seconds, share) in BOOK.items()
    ]
