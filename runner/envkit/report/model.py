"""Decide what a report says: its first line, which sections it has and in which order. Renderers only lay it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envkit.analysis import ranking
from envkit.analysis.summary import Measured, Summary
from envkit.bench import quality
from envkit.bench.record import Event
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import (
    ablation,
    advice,
    cautions,
    epoch_ends,
    execution_context,
    gpus,
    grid,
    images,
    instances,
    learning,
    lines,
    multi_workload,
    reproduce,
    scaling,
    tables,
    verdict,
    wording,
)
from envkit.report.finding_document import finding_document
from envkit.report.messages import lines as messages
from envkit.report.parts import Drawing, Fold, Listing, Note, Part, Report, Row, Rows, Section, Table

# The section that stands beside the verdict, and is the first if it is there.
CAUTIONS = "cautions"
# With more profiles than this, what there is of each is folded up; and so are more disturbed blocks.
UNFOLDED, UNFOLDED_BLOCKS = 3, 8
READING = {
    "forest": "Each square is a speedup, and the line through it its interval: where that leaves out 1, a difference "
    "is found. Green is faster, orange slower, blue neither.",
    "distributions": "How often a step takes how long: all timed steps of all samples. The axis leaves out the slowest "
    "and fastest 0.5%; the slowest step is given in figures.",
    "learning-curves": "A point for each epoch, at the time of all steps so far, without tests: its training loss, and "
    "what the test after it found.",
    "grid": "One line for each number of workers: the median of its samples, with the least and the most of any.",
    "epoch-ends": "How long the first step of an epoch takes, with what comes before it: the median of the samples, "
    "with the least and the most of any.",
    "time-course": "One point for each sample, at the time when it began. Equal distances are equal percentages "
    "everywhere.",
}


@dataclass(frozen=True)
class Run:
    """What sections are made of."""

    summary: Summary
    folder: str  # where the record is
    events: Sequence[Event] = ()  # of the record, as far as they are needed
    wide: bool = False  # there is room for more than 80 columns
    full: bool = False  # with evidence, settings and commands

    @property
    def page(self) -> bool:
        """Whether it is for the page, which has all there is, and where what is missing is said."""
        return self.wide and self.full


def report_of(
    summary: Summary, folder: str, events: Sequence[Event] = (), *, wide: bool = False, full: bool = False
) -> Report:
    run = Run(summary, folder, events, wide, full)
    short = [made for make in SHORT if (made := make(run)) is not None]
    more = [replace(made, full=True) for make in FULL if (made := make(run)) is not None] if full else []
    return Report(verdict.headline(summary), verdict.title(summary), [*short, *more])


def to_json(summary: Summary, folder: str) -> dict[str, Any]:
    """Return plain data for scripts: the summary, the first line, and each verdict and line as a code with fields."""
    report = report_of(summary, folder)
    rows = [row for section in report.sections for part in section.parts if isinstance(part, Rows) for row in part.rows]
    told = [{"label": row.label, **row.text.to_json()} for row in rows if isinstance(row.text, Message)]
    verdicts = {one.arm: verdict.of(summary, one).to_json() for one in summary.comparisons}
    found = [finding_document(one) for one in summary.findings]
    return {
        **summary.to_json(), "findings": found, "headline": headline(summary), "verdicts": verdicts, "messages": told,
    }  # fmt: skip


def headline(summary: Summary) -> dict[str, Any]:
    """Return the first line of the report for scripts: its code, its fields and its text."""
    found = verdict.headline(summary).text
    assert isinstance(found, Message), "a verdict is a message"
    return {**found.to_json(), "text": text(found)}


def _section(name: str, title: str, *parts: Part | None) -> Section | None:
    """A section of the ``parts`` that have something in them, or None."""
    kept = [part for part in parts if part and not (isinstance(part, Rows | Table) and not part.rows)]
    return Section(name, title, kept) if kept else None


# --- the short report ---


def _cautions(run: Run) -> Section | None:
    """Make the section of cautions, which stand beside the verdict."""
    return _section(CAUTIONS, "", Rows(cautions.rows(run.summary)))


def _found(run: Run) -> Section | None:
    """Make the section of figures: a picture on the page, and tables."""
    summary = run.summary
    rows = failures(summary)
    if run.page:
        rows = [replace(row, output=row.output or "It printed nothing.") for row in rows]
    failed = Rows(rows, bold=True)
    if grid.is_grid(summary.plan):
        picture = "epoch-ends" if epoch_ends.cells(summary) else "grid"
        parts = [_drawing(run, picture), *_grid(run), *_epoch_ends(run), failed]
    elif summary.not_in_effect:
        parts = [tables.not_in_effect(summary), failed, *([_wide(summary)] if run.wide else [])]
    else:
        settings = ablation.table(summary) if summary.plan.ablated else None
        own = _wide(summary) if run.wide else None if settings else _narrow(summary)
        parts = [_drawing(run, "forest"), settings, own, failed]
    return _section("speedups", "Speedups" if run.wide else "", *parts)


def _narrow(summary: Summary) -> Table:
    """Return the table of one profile and its reference, or of many profiles."""
    return tables.speedups(summary) if cautions.tabled(summary) else tables.took(summary)


def _wide(summary: Summary) -> Table:
    rows, blanks = tables.wide_rows(summary), [""] * 5
    book = [[*row, *blanks] for row in tables.book(summary)]
    weights = [*(ranking.weight(summary, row[0]) for row in rows), *("soft" for _ in book)]
    header = tables.wide_header(summary)
    meanings = tables.legend_text(summary)
    note = "; ".join(filter(None, (tables.note(summary), meanings)))
    return Table(header, [*rows, *(row[: len(header)] for row in book)], range(1, len(header) - 1), weights, note)


def failures(summary: Summary, node: str = "") -> list[Row]:
    """Return which workers failed, and what they printed; ``node`` is where, if there are several."""
    where = f"{node}: " if node else ""
    return [
        Row("Failed", f"{where}block {one['block'] + 1}, {one['arm']}: the worker {one['problem']}", "bad",
            output=one["stderr"].strip())
        for one in summary.failures
    ]  # fmt: skip


def _grid(run: Run) -> list[Part]:
    """Make a table for each number of batches that are made ahead; on a terminal with a plot."""
    found: list[Part] = []
    for variant in grid.variants(grid.cells(run.summary)):
        header = grid.header(variant)
        table = Table(header, grid.rows(variant), range(len(header)))
        plot = [Listing(grid.chart(variant))] if run.full and not run.wide else []
        found.append(Fold(f"{grid.UNIT}, {variant.title}", [table, *plot]))
    return found


def _epoch_ends(run: Run) -> list[Part]:
    """Make a table for each DataLoader whose workers were started and kept in several ways."""
    found: list[Part] = []
    for group in epoch_ends.groups(epoch_ends.cells(run.summary)):
        table = Table(epoch_ends.HEADER, epoch_ends.rows(group), epoch_ends.NUMBERS, note=epoch_ends.saved(group))
        found.append(Fold(group.title, [table]))
    return found


def _images(run: Run) -> Section | None:
    """Make the section of the first differences between images that are compared."""
    if run.page:
        return None  # it has them beside what else differs
    found, most = run.summary.image_differences, None if run.wide or run.full else images.SHOWN
    tables_of_each = [
        Table(images.header(run.summary, arm), images.rows(found[arm.name], most),
              note=images.rest(found[arm.name]) or "" if most else "")
        for arm in run.summary.plan.compared if arm.name in found
    ]  # fmt: skip
    return _section("images", "", *tables_of_each)


def _lines(run: Run) -> Section | None:
    """Make the section of labelled lines: what was verified and found, what to do, and where it was measured."""
    summary = run.summary
    rows = [*lines.rows(summary), *learning.rows(summary)]
    rows += instances.rows(summary) if summary.plan.at_once else scaling.rows(summary)
    rows += [*advice.rows(summary, run.folder), *_place(run)]
    return _section("summary", "", Rows(rows))


def _place(run: Run) -> list[Row]:
    """Return where it was measured, and how to see more of it."""
    rows = [Row("System", lines.system(run.summary))]
    if not run.wide:
        more = messages.DetailsCommand(("envkit", "report", run.folder, "--details"))
        return [*rows, Row("Details", more, whole=True)]
    if not run.full:
        rows.append(Row("Command", reproduce.started_with(run.events), whole=True))
        rows.append(Row("Record", f"SHA-256 {reproduce.digest(Path(run.folder))}"))
    return rows


# --- the rest of it, for --details and for the page ---


def _took(run: Run) -> Section | None:
    """Make the table of what each arm took, if the short report has another one."""
    summary = run.summary
    other = cautions.tabled(summary) or summary.plan.ablated or summary.not_in_effect
    took = tables.took(summary) if other and not run.wide else None
    return _section("took", "Times", took, _trained(summary))


def _trained(summary: Summary) -> Part | None:
    """Return what was trained on each of several workloads."""
    if not summary.plan.across:
        return None
    return Table(multi_workload.TRAINED, multi_workload.trained(summary), (2, 3, 4))


def _certainty(run: Run) -> Section | None:
    """Make the section of statistics, evidence and GPUs."""
    summary = run.summary
    rows = [*wording.certainty(summary), *wording.evidence(summary), *gpus.rows(summary), *_learnt(summary)]
    rows += ablation.notes(summary)
    nothing = Note("Nothing was compared in enough blocks.") if run.page and not rows else None
    return _section("certainty", "Statistics", Rows(rows), nothing)


def _learnt(summary: Summary) -> list[Row]:
    """Return loss and figures of the reference after a sample's steps; none if nothing was tested."""
    plan = summary.plan
    one = next((one for one in summary.measured if one.arm == plan.reference.name), None)
    if one is None or not one.quality or one.final_loss is None or plan.epochs or len(plan.workloads) > 1:
        return []
    steps = plan.training.warmup_steps + plan.training.steps
    return [Row("accuracy", f"{one.arm} after {steps} steps: loss {one.final_loss:.3f}, {quality.shown(one.quality)}")]


def _learning(run: Run) -> Section | None:
    """Make the section of full trainings, epoch by epoch."""
    summary = run.summary
    if not summary.learning:
        return None
    return _section(
        "learning", "Learning curves", _drawing(run, "learning-curves"), *learning.tables(summary, all_epochs=True)
    )


def _findings(run: Run) -> Section | None:
    """Make the section of what doctor found on the machine and in the workers."""
    rows = []
    for one in run.summary.findings if run.wide else ranking.findings(run.summary):
        rows.append(Row(one.severity, one.seen, "plain" if one.severity == "note" else "bad"))
        rows += [Row("", one.why), Row("", f"Fix: {text(one.fix)}", whole=True)]
    nothing = None if rows else Note("No finding.")
    return _section("findings", "Findings", Rows(rows, bold=run.page), nothing)


def _step_times(run: Run) -> Section | None:
    return _section("step-times", "Step times", _drawing(run, "distributions"))


def _course(run: Run) -> Section | None:
    """The course of the run, with what disturbed it."""
    interference = sorted(run.summary.interference.items()) if run.page else []
    table = Table(("block", "sample and reason"), [[str(block + 1), "; ".join(what)] for block, what in interference])
    title = "What was disturbed from outside, and by what"
    listed = Fold(title, [table], open=len(interference) <= UNFOLDED_BLOCKS) if interference else None
    return _section("course", "Course of the run", _drawing(run, "time-course"), listed)


def _evidence(run: Run) -> Section | None:
    """What each arm expects, and what its workers saw."""
    measured = run.summary.measured
    said = (
        "What each profile promises, and what its workers observed of themselves. Of several samples the one that is "
        "least in effect is shown." if measured else "No sample was measured, so nothing was observed."
    )  # fmt: skip
    observed = [_observed(run, one) for one in measured]
    return _section("evidence", "Evidence: what the workers ran with", Note(said), *observed)


def _observed(run: Run, one: Measured) -> Part:
    variables = [f"{name}={value}" for name, value in run.summary.environments[one.arm].variables.items()]
    if not one.checks and not variables:
        return Note(f"{one.arm}: sets nothing and promises nothing.", "plain")
    if not one.checks:
        return Fold(f"{one.arm}: promises nothing", [Listing(variables)])
    rows, weights = [], []
    for check in one.checks:
        said = ("ok" if check.holds else "NOT MET") if check.verified else "not verified"
        rows.append([check.key, wording.shown(check.expected), wording.shown(check.seen), said])
        weights.append("plain" if check.holds or not check.verified else "bad")
    state = "NOT IN EFFECT" if not one.in_effect else "not verified" if one.unverified else "in effect"
    weight = {"in effect": "good", "NOT IN EFFECT": "bad"}.get(state, "plain")
    header = ("check", "expected", "seen", "met") if run.wide else ("", "expected", "seen", "")
    table = Table(header, rows, weights=weights)
    unfolded = len(run.summary.plan.compared) <= UNFOLDED or not one.in_effect
    return Fold(f"{one.arm}: {state}", [table, *([Listing(variables)] if variables else [])], unfolded, weight)


def _differences(run: Run) -> Section | None:
    """In what the environments differ."""
    plan, folds = run.summary.plan, []
    for arm in plan.compared:
        reference, rows = plan.reference_of(arm).name, execution_context.sides(run.summary, arm)
        weights = ["soft" if there == here else "plain" for _, there, here in rows]
        table = Table(("setting", reference, arm.name), rows, weights=weights)
        folds.append(Fold(f"{arm.name} beside {reference}", [table], len(plan.compared) <= UNFOLDED))
    nothing = None if folds else Note("There is only one environment: nothing was compared.")
    return _section("differences", "Differences between the environments", *folds, nothing)


def _reproduce(run: Run) -> Section | None:
    context = execution_context.rows(run.summary)
    again = reproduce.rows(Path(run.folder), run.events, run.summary) if run.page else [reproduce.ended(run.summary)]
    commands = [Listing([text], name if run.page else "") for name, text in run.summary.commands.items()]
    by_hand = Fold("by hand  (one sample each)", commands, open=False)
    return _section("reproduce", "How to reproduce it", Rows([*context, *again]), by_hand)


def _drawing(run: Run, name: str) -> Drawing | None:
    """A picture, for the page."""
    if not run.page:
        return None
    from envkit.report import pictures  # which takes long to import

    summary, picture = run.summary, pictures.named(name)
    words = "The figures are in the table 'Speedups, and what each took'."
    if picture is pictures.FOREST:
        words = "; ".join(f"{row.label}: {text(row.text)}" for row in wording.verdicts(summary))
    elif picture in (pictures.GRID, pictures.EPOCH_ENDS):
        words = text(verdict.headline(summary).text)
    elif picture is pictures.LEARNING_CURVES:
        words = "; ".join(text(row.text) for row in learning.rows(summary)) or "The figures are in the tables below."
    return Drawing(name, picture.title, READING[name], picture.missing(summary), f"{picture.title}. {words}")


# The sections of the short report in their order, then those that --details and the page add.
SHORT: tuple[Callable[[Run], Section | None], ...] = (_cautions, _found, _images, _lines)
FULL: tuple[Callable[[Run], Section | None], ...] = (
    _took, _certainty, _findings, _learning, _step_times, _course, _evidence, _differences, _reproduce,
)  # fmt: skip
