"""Decide what a report says: its first line, which sections it has and in which order. Renderers only lay it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.analysis import ranking
from envkit.analysis.result import Measured, Result
from envkit.bench import quality
from envkit.bench.arms import View
from envkit.bench.problems import problem_of
from envkit.bench.record import Event
from envkit.common.messages import About
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import (
    ablation,
    advice,
    cautions,
    certainty,
    epoch_ends,
    execution_context,
    gpus,
    grid,
    images,
    instances,
    learning,
    lines,
    multi_workload,
    observed,
    reproduce,
    scaling,
    tables,
    verdict,
)
from envkit.report.finding_document import finding_document
from envkit.report.messages import certainty as messages
from envkit.report.messages import context, headings, loaders, trainings
from envkit.report.messages import pictures as of_pictures
from envkit.report.messages.lines import OfSubject
from envkit.report.parts import Drawing, Fold, Listing, Note, Part, Report, Row, Rows, Section, Table

# The section that stands beside the verdict, and is the first if it is there.
CAUTIONS = "cautions"
# With more profiles than this, what there is of each is folded up; and so are more disturbed blocks.
UNFOLDED, UNFOLDED_BLOCKS = 3, 8


@dataclass(frozen=True)
class ReportInput:
    """The result, its record and the room that there is: every section is made of these."""

    result: Result
    folder: str  # where the record is
    events: Sequence[Event] = ()  # of the record, as far as they are needed
    wide: bool = False  # there is room for more than 80 columns
    full: bool = False  # with evidence, settings and commands

    @property
    def page(self) -> bool:
        """Whether it is for the page, which has all there is, and where what is missing is said."""
        return self.wide and self.full


def report_of(
    result: Result, folder: str, events: Sequence[Event] = (), *, wide: bool = False, full: bool = False
) -> Report:
    source = ReportInput(result, folder, events, wide, full)
    short = [made for make in SHORT if (made := make(source)) is not None]
    more = [replace(made, full=True) for make in FULL if (made := make(source)) is not None] if full else []
    return Report(verdict.headline(result), verdict.title(result), [*short, *more])


def to_json(result: Result, folder: str) -> dict[str, object]:
    """Return plain data for scripts: the result, the first line, and each verdict and line as a code with fields."""
    report = report_of(result, folder)
    rows = [row for section in report.sections for part in section.parts if isinstance(part, Rows) for row in part.rows]
    told = [{"label": row.label, **row.text.to_json()} for row in rows if isinstance(row.text, Message)]
    verdicts = {one.arm: verdict.of(result, one).to_json() for one in result.comparisons}
    return {
        **result.to_json(),
        "headline": headline(result),
        "verdicts": verdicts,
        "messages": told,
        "failures": [
            {"block": one.block, "arm": one.arm, "problem": _told(problem_of(one))} for one in result.failures
        ],
        "findings": [finding_document(one) for one in result.findings],
        "data_source": _told(result.data_source),
        "not_measured": {name: _told(reason) for name, reason in result.not_measured.items()},
    }


def first_line(result: Result) -> Row:
    """Return the verdict, as the first line of the report."""
    return verdict.headline(result)


def headline(result: Result) -> dict[str, object]:
    """Return the first line of the report for scripts: its code, its fields and its text."""
    found = verdict.headline(result).text
    assert isinstance(found, Message), "a verdict is a message"
    return _told(found)


def _told(found: Message) -> dict[str, object]:
    """Return a message as JSON, with its text."""
    return {**found.to_json(), "text": text(found)}


def _section(name: str, *parts: Part | None, untitled: bool = False) -> Section | None:
    """Return a section of the ``parts`` that have something in them, or None."""
    kept = [part for part in parts if part and not (isinstance(part, Rows | Table) and not part.rows)]
    return Section(name, "" if untitled else headings.SECTIONS.get(name, ""), kept) if kept else None


# --- the short report ---


def _cautions(source: ReportInput) -> Section | None:
    """Make the section of cautions, which stand beside the verdict."""
    return _section(CAUTIONS, Rows(cautions.rows(source.result)))


def _found(source: ReportInput) -> Section | None:
    """Make the section of figures: a picture on the page, and tables."""
    result = source.result
    rows = failures(result)
    if source.page:
        rows = [replace(row, output=row.output or headings.PRINTED_NOTHING) for row in rows]
    failed = Rows(rows, bold=True)
    if result.study.view is View.LOADERS:
        picture = "epoch-ends" if epoch_ends.cells(result) else "grid"
        parts = [_drawing(source, picture), *_grid(source), *_epoch_ends(source), failed]
    elif result.not_in_effect:
        parts = [tables.not_in_effect(result), failed, *([_wide(result)] if source.wide else [])]
    else:
        settings = ablation.table(result) if result.study.view is View.SETTINGS else None
        own = _wide(result) if source.wide else None if settings else _narrow(result)
        parts = [_drawing(source, "forest"), settings, own, failed]
    return _section("speedups", *parts, untitled=not source.wide)


def _narrow(result: Result) -> Table:
    """Return the table of one profile and its reference, or of many profiles."""
    return tables.speedups(result) if result.side_by_side else tables.took(result)


def _wide(result: Result) -> Table:
    rows, blanks = tables.wide_rows(result), [""] * 5
    book = [[*row, *blanks] for row in tables.book(result)]
    weights = [*(ranking.weight(result.comparisons, row[0]) for row in rows), *("soft" for _ in book)]
    header = tables.wide_header(result)
    cells, numbers = [*rows, *(row[: len(header)] for row in book)], range(1, len(header) - 1)
    return Table(header, cells, numbers, weights, tables.note(result))


def failures(result: Result, node: str = "") -> list[Row]:
    """Return which workers failed, and what they printed; ``node`` is where, if there are several."""
    return [
        Row("Failed", messages.WorkerFailure(one.block + 1, one.arm, problem_of(one), node or None), "bad",
            output=one.stderr.strip())
        for one in result.failures
    ]  # fmt: skip


def _grid(source: ReportInput) -> list[Part]:
    """Make a table for each number of batches that are made ahead; on a terminal with a plot."""
    found: list[Part] = []
    for variant in grid.variants(grid.cells(source.result)):
        header = grid.header(variant)
        table = Table(header, grid.rows(variant), range(len(header)))
        plot = [Listing(grid.chart(variant))] if source.full and not source.wide else []
        found.append(Fold(loaders.TableOfLoaders(grid.UNIT, variant.title), [table, *plot]))
    return found


def _epoch_ends(source: ReportInput) -> list[Part]:
    """Make a table for each DataLoader whose workers were started and kept in several ways."""
    found: list[Part] = []
    for group in epoch_ends.groups(epoch_ends.cells(source.result)):
        table = Table(headings.EPOCH_ENDS, epoch_ends.rows(group), epoch_ends.NUMBERS, note=epoch_ends.saved(group))
        found.append(Fold(group.title, [table]))
    return found


def _images(source: ReportInput) -> Section | None:
    """Make the section of the first differences between images that are compared."""
    if source.page:
        return None  # it has them beside what else differs
    found, most = source.result.image_differences, None if source.wide or source.full else images.SHOWN
    tables_of_each = [
        Table(images.header(source.result, arm), images.rows(found[arm.name], most),
              note=images.rest(found[arm.name]) if most else None)
        for arm in source.result.study.compared if arm.name in found
    ]  # fmt: skip
    return _section("images", *tables_of_each)


def _lines(source: ReportInput) -> Section | None:
    """Make the section of labelled lines: what was verified and found, what to do, and where it was measured."""
    result = source.result
    rows = [*lines.rows(result), *learning.rows(result)]
    rows += instances.rows(result) if result.study.at_once else scaling.rows(result)
    rows += [*advice.rows(result, source.folder), *_place(source)]
    return _section("summary", Rows(rows))


def _place(source: ReportInput) -> list[Row]:
    """Return where it was measured, and how to see more of it."""
    rows = [Row("System", lines.system(source.result))]
    if not source.wide:
        return [*rows, Row("Details", reproduce.details(source.folder), whole=True)]
    if not source.full:
        rows.append(Row("Command", reproduce.started_with(source.events), whole=True))
        rows.append(Row("Record", context.FileDigest(reproduce.digest(Path(source.folder), source.events))))
    return rows


# --- the rest of it, for --details and for the page ---


def _took(source: ReportInput) -> Section | None:
    """Make the table of what each arm took, if the short report has another one."""
    result = source.result
    other = result.side_by_side or result.study.view is View.SETTINGS or result.not_in_effect
    took = tables.took(result) if other and not source.wide else None
    return _section("took", took, _trained(result))


def _trained(result: Result) -> Part | None:
    """Return what was trained on each of several workloads."""
    if result.study.view is not View.WORKLOADS:
        return None
    return Table(headings.TRAINED, multi_workload.trained(result), (2, 3, 4))


def _certainty(source: ReportInput) -> Section | None:
    """Make the section of statistics, evidence and GPUs."""
    result = source.result
    rows = [*certainty.rows(result), *observed.rows(result), *gpus.rows(result), *_learnt(result)]
    rows += ablation.notes(result)
    nothing = Note(messages.TOO_FEW_FOR_STATISTICS) if source.page and not rows else None
    return _section("certainty", Rows(rows), nothing)


def _learnt(result: Result) -> list[Row]:
    """Return loss and figures of the reference after a sample's steps; none if nothing was tested."""
    study = result.study
    one = next((one for one in result.measured if one.arm == study.reference.name), None)
    if one is None or not one.quality or one.final_loss is None or study.epochs or len(study.workloads) > 1:
        return []
    steps = study.training.warmup_steps + study.training.steps
    return [Row("accuracy", trainings.Accuracy(one.arm, steps, one.final_loss, quality.shown(one.quality)))]


def _learning(source: ReportInput) -> Section | None:
    """Make the section of full trainings, epoch by epoch."""
    result = source.result
    if not result.learning:
        return None
    return _section("learning", _drawing(source, "learning-curves"), *learning.tables(result, all_epochs=True))


def _findings(source: ReportInput) -> Section | None:
    """Make the section of what doctor found on the machine and in the workers."""
    rows, result = [], source.result
    for one in (
        source.result.findings
        if source.wide
        else ranking.findings(result.findings, result.comparisons, result.study.view)
    ):
        rows.append(Row(one.severity, one.seen, "plain" if one.severity == "note" else "bad"))
        rows += [Row("", one.why), Row("", About("Fix", one.fix), whole=True)]
    nothing = None if rows else Note(messages.NO_FINDING)
    return _section("findings", Rows(rows, bold=source.page), nothing)


def _step_times(source: ReportInput) -> Section | None:
    return _section("step-times", _drawing(source, "distributions"))


def _course(source: ReportInput) -> Section | None:
    """Make the section of the course of the run, with what disturbed it."""
    interference = sorted(source.result.interference.items()) if source.page else []
    table = Table(headings.DISTURBED, [[str(block + 1), "; ".join(map(text, what))] for block, what in interference])
    few = len(interference) <= UNFOLDED_BLOCKS
    listed = Fold(headings.DISTURBANCES, [table], open=few) if interference else None
    return _section("course", _drawing(source, "time-course"), listed)


def _evidence(source: ReportInput) -> Section | None:
    """Make the section of the settings of each arm, as expected and as its workers observed them."""
    measured = source.result.measured
    first = messages.HOW_TO_READ_EVIDENCE if measured else messages.NOTHING_OBSERVED
    return _section("evidence", Note(first), *(_observed(source, one) for one in measured))


def _observed(source: ReportInput, one: Measured) -> Part:
    variables = [f"{name}={value}" for name, value in source.result.environments[one.arm].variables.items()]
    if not one.checks and not variables:
        return Note(messages.ExpectsNothing(one.arm, messages.SETS_NOTHING), "plain")
    if not one.checks:
        return Fold(messages.ExpectsNothing(one.arm), [Listing(variables)])
    rows, weights = [], []
    for check in one.checks:
        said = ("ok" if check.holds else "NOT MET") if check.verified else "not verified"
        rows.append([check.key, observed.shown(check.expected), observed.shown(check.seen), said])
        weights.append("plain" if check.holds or not check.verified else "bad")
    state = "NOT IN EFFECT" if not one.in_effect else "not verified" if one.unverified else "in effect"
    weight = {"in effect": "good", "NOT IN EFFECT": "bad"}.get(state, "plain")
    header = ("check", "expected", "seen", "met") if source.wide else ("", "expected", "seen", "")
    table = Table(header, rows, weights=weights)
    unfolded = len(source.result.study.compared) <= UNFOLDED or not one.in_effect
    return Fold(OfSubject(one.arm, state), [table, *([Listing(variables)] if variables else [])], unfolded, weight)


def _differences(source: ReportInput) -> Section | None:
    """Make the section of differences between the environments."""
    study, folds = source.result.study, []
    for arm in study.compared:
        reference, rows = study.reference_of(arm).name, execution_context.sides(source.result, arm)
        weights = ["soft" if there == here else "plain" for _, there, here in rows]
        table = Table(("setting", reference, arm.name), rows, weights=weights)
        folds.append(Fold(context.BesideReference(arm.name, reference), [table], len(study.compared) <= UNFOLDED))
    nothing = None if folds else Note(messages.ONE_ENVIRONMENT)
    return _section("differences", *folds, nothing)


def _reproduce(source: ReportInput) -> Section | None:
    result = source.result
    context = execution_context.rows(result)
    again = reproduce.rows(Path(source.folder), source.events, result) if source.page else [reproduce.ended(result)]
    commands = [Listing([command], name if source.page else "") for name, command in result.commands.items()]
    by_hand = Fold(headings.BY_HAND, commands, open=False)
    return _section("reproduce", Rows([*context, *again]), by_hand)


def _drawing(source: ReportInput, name: str) -> Drawing | None:
    """Return a picture for the page; None for a terminal."""
    if not source.page:
        return None
    from envkit.report import pictures  # which takes long to import

    result, picture = source.result, pictures.named(name)
    alternative = of_pictures.Alternative(picture.title, _results(result, name) or (of_pictures.FIGURES_IN_TABLES,))
    return Drawing(name, picture.title, headings.READING[name], picture.missing(result), text(alternative))


def _results(result: Result, name: str) -> tuple[str, ...]:
    """Return the results that a picture shows, for those who have them read out."""
    if name == "forest":
        return tuple(f"{row.label}: {text(row.text)}" for row in verdict.rows(result))
    if name in ("grid", "epoch-ends"):
        return (text(verdict.headline(result).text),)
    return tuple(text(row.text) for row in learning.rows(result)) if name == "learning-curves" else ()


# The sections of the short report in their order, then those that --details and the page add.
SHORT: tuple[Callable[[ReportInput], Section | None], ...] = (_cautions, _found, _images, _lines)
FULL: tuple[Callable[[ReportInput], Section | None], ...] = (
    _took, _certainty, _findings, _learning, _step_times, _course, _evidence, _differences, _reproduce,
)  # fmt: skip
