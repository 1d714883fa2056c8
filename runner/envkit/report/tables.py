"""What each arm took, as the cells of a table."""

from __future__ import annotations

from envkit.analysis import ranking
from envkit.analysis.summary import Measured, Summary
from envkit.bench import quality
from envkit.report import scaling_wording
from envkit.report.wording import CONFIDENCE

MEDIANS = "Medians over samples. A speedup is the reference's time over that of the row."

# The published figures for the CNN's full training: seconds, test accuracy.
BOOK_WORKLOAD, BOOK_EPOCHS = "cnn", 10
BOOK = {"baseline": (148, 0.8399), "intel-omp": (106, 0.8325)}


def header(summary: Summary) -> list[str]:
    """The columns; the first holds names, the others numbers."""
    first = "image" if summary.plan.compares_images else "profile" if len(summary.engines) == 1 else "engine"
    if summary.plan.user_command is not None:
        step = f"ms/{summary.plan.step_name}"
        return [first, "samples", step, "system time", "faults/run", "peak memory"]
    if summary.plan.epochs:
        return [first, "samples", "training", _tested(summary), "ms/step", _speed(summary)]
    return [first, "samples", "ms/step", _speed(summary), "system time", "faults/step", "peak memory"]


def cells(summary: Summary, one: Measured) -> list[str]:
    """One arm's row, medians over its samples."""
    speed = [f"{one.step_s * 1000:.2f}", *([] if one.images_per_s is None else [_rate(summary, one)])]
    if summary.plan.epochs:
        return [one.arm, str(one.samples), f"{one.training_s:.1f} s", _quality(summary, one), *speed]
    effort = [f"{one.system_share:.1%}", f"{one.faults_per_step:,.0f}", f"{one.peak_memory_bytes / 2**20:,.0f} MiB"]
    return [one.arm, str(one.samples), *speed, *effort]


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
    return "accuracy" if figures <= {"accuracy"} else "what was learnt"


def _quality(summary: Summary, one: Measured) -> str:
    if _tested(summary) != "accuracy":
        return quality.shown(one.quality) or "-"
    return "-" if one.accuracy is None else f"{one.accuracy:.2%}"


def steps(summary: Summary) -> str:
    """What a step is, where not all are alike."""
    text = scaling_wording.steps(summary.plan)
    if not summary.plan.weak:
        return f"{text.capitalize()}." if text else ""
    return f"{text.capitalize()} of 1 process; compare that by {_speed(summary)}."


def note(summary: Summary) -> str:
    """How to read the table that has speedups, too."""
    return " ".join(filter(None, (MEDIANS, steps(summary))))


def all_arms(summary: Summary) -> list[list[str]]:
    """A row for each arm of the plan, of many the fastest first; one that has no sample has dashes."""
    measured = {one.arm: cells(summary, one) for one in summary.measured}
    dashes = ["-"] * (len(header(summary)) - 2)
    names = dict.fromkeys([*ranking.order(summary), *(arm.name for arm in summary.plan.single_processes)])
    return [measured.get(name, [name, "0", *dashes]) for name in names]


def wide_header(summary: Summary) -> list[str]:
    """The columns where there is room for speedups, too."""
    return [*header(summary), "speedup", f"{CONFIDENCE} interval", "verdict"]


def wide_rows(summary: Summary) -> list[list[str]]:
    """A row for each arm, by `wide_header`."""
    found = {one.arm: one for one in summary.comparisons}
    references = {arm.name for arm in summary.plan.references} if summary.comparisons else set()
    rows = []
    for row in all_arms(summary):
        one = found.get(row[0])
        ratio, speedup = (ranking.ratio_of(one), one.speedup) if one else (None, None)
        verdict = f"{one.words}{_beside(summary, one.arm)}" if one else "reference" if row[0] in references else ""
        interval = f"{speedup.low:.3f} to {speedup.high:.3f}" if speedup else ""
        rows.append([*row, "" if ratio is None else f"{ratio:.3f}", interval, verdict])
    return rows


def _beside(summary: Summary, name: str) -> str:
    """What an arm is compared with, where a profile is taken apart and that is not the baseline."""
    plan = summary.plan
    reference = plan.reference_of(plan.arm(name))
    return f" (beside {reference.name})" if plan.ablated and reference != plan.reference else ""


def book(summary: Summary) -> list[list[str]]:
    """Rows of the published figures, beside a training as long as the book's."""
    if summary.plan.epochs != BOOK_EPOCHS or summary.plan.until or BOOK_WORKLOAD not in summary.plan.workloads:
        return []
    return [[f"the book's {name}", "", f"{seconds} s", f"{share:.2%}", "", ""]
            for name, (seconds, share) in BOOK.items()]  # fmt: skip
