"""Decide what a report says: its first line, which sections it has and in which order. Renderers only lay it out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.analysis import ranking
from envkit.analysis.summary import Measured, Summary
from envkit.bench import quality
from envkit.bench.record import Event
from envkit.report import (
    ablation_wording,
    advice,
    epoch_ends,
    execution_context,
    gpu_wording,
    grid,
    image_wording,
    instances_wording,
    learning_wording,
    multi_workload,
    reproduce,
    scaling_wording,
    tables,
    unfinished,
    wording,
)
from envkit.report import headline as first_line
from envkit.report.parts import Drawing, Fold, Listing, Note, Part, Report, Row, Rows, Section, Table

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

    @property
    def one_by_one(self) -> bool:
        """Whether there are so few profiles that each has sentences of its own."""
        return not self.summary.plan.across and not ranking.many(self.summary)


def report_of(
    summary: Summary, folder: str, events: Sequence[Event] = (), *, wide: bool = False, full: bool = False
) -> Report:
    run = Run(summary, folder, events, wide, full)
    short = [made for make in SHORT if (made := make(run)) is not None]
    more = [replace(made, full=True) for make in FULL if (made := make(run)) is not None] if full else []
    return Report(first_line.headline(summary), first_line.title(summary), [*short, *more])


def _section(name: str, title: str, *parts: Part | None) -> Section | None:
    """A section of the ``parts`` that have something in them, or None."""
    kept = [part for part in parts if part and not (isinstance(part, Rows | Table) and not part.rows)]
    return Section(name, title, kept) if kept else None


# --- the short report ---


def _warnings(run: Run) -> Section | None:
    """What puts everything else in question."""
    synthetic = "SYNTHETIC DATA: this is not Fashion-MNIST. Losses and accuracy mean nothing."
    unverified = wording.unverified(run.summary) if run.page else []
    texts = [*([synthetic] if run.summary.synthetic else []), *unverified]
    return _section("warnings", "", *(Note(text, "bad") for text in texts))


def _compared(run: Run) -> Section | None:
    return _section("compared", "", Rows(image_wording.introduction(run.summary)))


def _found(run: Run) -> Section | None:
    """Of each profile what was found; many are in a table unless there is room for sentences."""
    summary, parts = run.summary, list[Part | None]()
    rows = failures(summary)
    if run.page:
        rows = [replace(row, output=row.output or "It printed nothing.") for row in rows]
    failed, wins = Rows(rows, bold=True), multi_workload.wins(summary)
    if grid.is_grid(summary.plan):
        least, picture = _least(summary), "epoch-ends" if epoch_ends.cells(summary) else "grid"
        rows = [Row("least", least)] if least else []
        parts = [*_grid(run), *_epoch_ends(run), Rows(rows), failed, _drawing(run, picture)]
    elif summary.plan.ablated:
        each = wording.verdicts(summary) if run.wide else wording.of_many(summary)
        notes = ablation_wording.notes(summary)
        parts = [ablation_wording.table(summary), Rows([*notes, *each], bold=True), failed]
    elif run.wide or run.one_by_one:
        parts = [Rows(wins), Rows(wording.verdicts(summary), bold=True), failed]
    else:
        parts = [*_ranked(summary), Rows([*wins, *wording.of_many(summary)]), failed]
    return _section("found", "What was found", *parts)


def failures(summary: Summary, node: str = "") -> list[Row]:
    """Which workers failed, and what they printed; ``node`` is where, if there are several."""
    where = f"{node}: " if node else ""
    return [
        Row("FAILED", f"{where}block {one['block'] + 1}, {one['arm']}: the worker {one['problem']}", "bad",
            output=one["stderr"].strip())
        for one in summary.failures
    ]  # fmt: skip


def _ranked(summary: Summary) -> list[Part]:
    """Many profiles, the fastest first; or which wins on which workload, and what was trained there."""
    if not summary.plan.across:
        weights = [ranking.weight(summary, name) for name in ranking.order(summary)]
        return [Table(ranking.header(summary), ranking.cells(summary), (1, 4), weights)]
    weights = [ranking.weight(summary, arm.name) for arm, _ in multi_workload.compared(summary)]
    return [
        Table(multi_workload.HEADER, multi_workload.rows(summary), (2,), weights),
        Table(multi_workload.TRAINED, multi_workload.trained(summary), (2, 3, 4)),
    ]


def _grid(run: Run) -> list[Part]:
    """A table for each number of batches that are made ahead; with a plot where there is no picture."""
    found: list[Part] = []
    for variant in grid.variants(grid.cells(run.summary)):
        header = grid.header(variant)
        table = Table(header, grid.rows(variant), range(len(header)))
        plot = [] if run.wide else [Listing(grid.chart(variant))]
        found.append(Fold(f"{grid.UNIT}, {variant.title}", [table, *plot]))
    return found


def _epoch_ends(run: Run) -> list[Part]:
    """A table for each DataLoader whose workers were started and kept in several ways."""
    found: list[Part] = []
    for group in epoch_ends.groups(epoch_ends.cells(run.summary)):
        table = Table(epoch_ends.HEADER, epoch_ends.rows(group), epoch_ends.NUMBERS, note=epoch_ends.saved(group))
        found.append(Fold(group.title, [table]))
    return found


def _least(summary: Summary) -> str | None:
    """The setting of the loader that took least; None where none was measured."""
    return grid.least(summary) or epoch_ends.least(summary)


def _speedups(run: Run) -> Section | None:
    """What each took; with the speedups where there is room for them."""
    summary = run.summary
    if grid.is_grid(summary.plan) and not run.page:
        return None
    if run.wide:
        rows, book = tables.wide_rows(summary), [[*row, "", "", ""] for row in tables.book(summary)]
        weights = [*(ranking.weight(summary, row[0]) for row in rows), *("soft" for _ in book)]
        header = tables.wide_header(summary)
        table = Table(header, [*rows, *book], range(1, len(header) - 1), weights, tables.note(summary))
        return _section("speedups", "Speedups, and what each took", _drawing(run, "forest"), table)
    each = run.full if summary.plan.ablated else run.one_by_one
    return _section("speedups", "", took(summary) if each else None)


def took(summary: Summary) -> Table:
    """What each arm took that was measured."""
    book, header = tables.book(summary), tables.header(summary)
    weights = [*("plain" for _ in summary.measured), *("soft" for _ in book)]
    rows = [tables.cells(summary, one) for one in summary.measured]
    return Table(header, [*rows, *book] if rows else [], range(1, len(header)), weights, tables.steps(summary))


def _how_to_read(run: Run) -> Section | None:
    return _section("how-to-read", "", Rows(first_line.how_to_read(run.summary)))


def _learning(run: Run) -> Section | None:
    """Full trainings epoch by epoch, and when each had reached its target; tables where there is room for them."""
    summary = run.summary
    if not summary.learning:
        return None
    tabled = run.wide or run.full or run.one_by_one
    each = learning_wording.tables(summary, all_epochs=run.wide or run.full) if tabled else []
    reached = Rows(learning_wording.rows(summary))
    return _section("learning", "Learning curves", reached, _drawing(run, "learning-curves"), *each)


def _images(run: Run) -> Section | None:
    """In what images differ that are compared: the first lines of it, or all where there is room."""
    if run.page:
        return None  # it has them beside what else differs
    found, most = run.summary.image_differences, None if run.wide else image_wording.SHOWN
    tables_of_each = [
        Table(image_wording.header(run.summary, arm), image_wording.rows(found[arm.name], most),
              note=image_wording.rest(found[arm.name]) or "" if most else "")
        for arm in run.summary.plan.compared if arm.name in found
    ]  # fmt: skip
    return _section("images", "", *tables_of_each)


def _scaling(run: Run) -> Section | None:
    if run.summary.plan.at_once:
        return _section("instances", "Several trainings at once", Rows(instances_wording.rows(run.summary)))
    return _section("scaling", scaling_wording.title(run.summary.plan), Rows(scaling_wording.rows(run.summary)))


def _certainty(run: Run) -> Section | None:
    """What limits the result."""
    summary = run.summary
    rows = [*unfinished.rows(summary), *wording.certainty(summary), *wording.evidence(summary)]
    rows += [*gpu_wording.rows(summary), *_learnt(summary)]
    nothing = Note("Nothing was compared often enough to say.") if run.page and not rows else None
    return _section("certainty", "How sure this is", Rows(rows), nothing)


def _learnt(summary: Summary) -> list[Row]:
    """Loss and figures of the reference after a sample's steps; none where nothing was tested, or a table has it."""
    plan = summary.plan
    one = next((one for one in summary.measured if one.arm == plan.reference.name), None)
    if one is None or not one.quality or one.final_loss is None or plan.epochs or len(plan.workloads) > 1:
        return []
    steps = plan.training.warmup_steps + plan.training.steps
    text = f"after {steps} steps {one.arm} has a loss of {one.final_loss:.3f}, {quality.shown(one.quality)}"
    return [Row("learnt", text)]


def _findings(run: Run) -> Section | None:
    """What doctor says of the machine and of what the workers saw; in short of many profiles each kind once."""
    if not run.page:
        found = run.summary.findings if run.wide else ranking.findings(run.summary)
        return _section("findings", "", Rows([Row(one["severity"], f"{one['seen']}: {one['why']}") for one in found]))
    rows = []
    for one in run.summary.findings:
        rows.append(Row(one["severity"], one["seen"], "plain" if one["severity"] == "note" else "bad"))
        rows += [Row("", one["why"]), Row("", f"Fix: {one['fix']}", whole=True)]
    nothing = None if rows else Note("Nothing was found that is known to spoil a measurement.")
    return _section("findings", "Findings", Rows(rows, bold=True), nothing)


def _next(run: Run) -> Section | None:
    rows = advice.rows(run.summary)
    if run.page and not rows:
        rows = [Row("next", advice.fallback(run.summary, run.folder))]
    return _section("next", "What to do next", Rows(rows))


def _place(run: Run) -> Section | None:
    """Where it was measured, and where the record is."""
    rows = [Row("machine", wording.machine(run.summary))]
    if not run.wide:
        details = f"envkit report {shlex.quote(run.folder)} --details"
        rows.append(Row("record", run.folder, whole=True))
        rows.append(Row("", f"all settings, evidence and commands: {details}", whole=True))
    elif not run.full:
        rows.append(Row("command", reproduce.started_with(run.events), whole=True))
        rows.append(Row("record", f"SHA-256 {reproduce.digest(Path(run.folder))}"))
    return _section("place", "", Rows(rows))


# --- the rest of it, for --details and for the page ---


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
        words = "; ".join(f"{row.label}: {row.text}" for row in wording.verdicts(summary) if row.label)
    elif picture in (pictures.GRID, pictures.EPOCH_ENDS):
        words = _least(summary) or words
    elif picture is pictures.LEARNING_CURVES:
        words = "; ".join(row.text for row in learning_wording.rows(summary)) or "The figures are in the tables below."
    return Drawing(name, picture.title, READING[name], picture.missing(summary), f"{picture.title}. {words}")


# The sections of each report in their order: the verdict's figures, what limits it, what to do.
SHORT: tuple[Callable[[Run], Section | None], ...] = (
    _warnings, _compared, _found, _speedups, _how_to_read, _learning, _images, _scaling, _certainty, _findings, _next,
    _place,
)  # fmt: skip
# What follows for those who want all of it.
FULL: tuple[Callable[[Run], Section | None], ...] = (_step_times, _course, _evidence, _differences, _reproduce)
