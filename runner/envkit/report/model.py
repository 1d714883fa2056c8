"""Decide what a report says: its first line, which sections it has and in which order. Renderers only lay it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envkit.analysis import ranking
from envkit.analysis.image_differences import Difference
from envkit.analysis.result import Result
from envkit.bench import quality
from envkit.bench.arms import View
from envkit.bench.events import Failure
from envkit.bench.problems import problem_of
from envkit.bench.record import Event
from envkit.bench.study import Study
from envkit.common.messages import About
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import (
    ablation,
    advice,
    cautions,
    certainty,
    commands,
    epoch_ends,
    execution_context,
    grid,
    learning,
    lines,
    observed,
    scaling,
    tables,
    verdict,
)
from envkit.report.messages import certainty as messages
from envkit.report.messages import context, headings, loaders, trainings
from envkit.report.messages import pictures as of_pictures
from envkit.report.parts import CAUTIONS, Drawing, Fold, Listing, Note, Part, Report, Row, Rows, Section, Table

# With more profiles than this, what there is of each is folded up; and so are more disturbed blocks.
UNFOLDED, UNFOLDED_BLOCKS = 3, 8


def report_of(
    result: Result, folder: str, events: Sequence[Event] = (), *, wide: bool = False, full: bool = False
) -> Report:
    """Return the report of a result whose record is in ``folder``.

    A ``wide`` one has room for more than 80 columns, and names the digest of the record and the command in its
    ``events``. A ``full`` one adds evidence, settings and commands. One with both is a page, with pictures.
    """
    study, page = result.study, wide and full
    references = {arm.name: study.reference_of(arm).name for arm in study.compared}
    figures: list[Part | None]
    if study.view is View.LOADERS:
        ends, cells = epoch_ends.cells(result), grid.cells(result)
        drawing = _drawing(result, "epoch-ends" if ends else "grid") if page else None
        figures = [drawing, *_grid(cells, plotted=full and not wide), *_epoch_ends(ends)]
    elif study.is_race:
        figures = [tables.race(result.race)]
    elif result.not_in_effect:
        figures = [tables.not_in_effect(result)]
    else:
        settings = ablation.table(result) if study.view is View.SETTINGS else None
        times = _wide(result) if wide else None
        if not wide and settings is None and result.side_by_side:
            times = tables.speedups(result)
        elif not wide and settings is None:
            times = tables.took(tables.columns(result), result.measured, result.failures, result.comparisons)
        figures = [_drawing(result, "forest") if page else None, settings, times]
    failed = Rows(failures(result.failures, nothing=headings.PRINTED_NOTHING if page else ""), bold=True)
    below = _wide(result) if result.not_in_effect and wide and study.view is not View.LOADERS else None
    summary = [*lines.rows(result), *learning.rows(result.learning, str(study.until))]
    if study.at_once:
        summary += scaling.instances(result.instances, {arm.name: arm.profile for arm in study.arms})
    elif result.scaling:
        summary += scaling.rows(result.scaling, study, {measured.arm: measured.unit for measured in result.measured})
    host = result.inspection(study.reference)
    system = lines.system(host, result.engines, study.user_command, study.workload, study.trained)
    summary += [*advice.rows(result, folder), Row("System", system), *_links(folder, events, wide, full)]
    sections = [
        _section(CAUTIONS, Rows(cautions.rows(result))),
        _section("speedups", *figures, failed, below, untitled=not wide),
        None if page else _images(references, result.image_differences, wide or full),
        _section("summary", Rows(summary)),
        *(_details(result, folder, events, wide) if full else []),
    ]
    return Report(verdict.headline(result), [section for section in sections if section is not None])


def title(study: Study) -> Message:
    """Return what is compared with what, for the title of a page."""
    if study.view is View.LOADERS:
        return context.LoaderSettings(len(study.arms), study.reference.profile)
    if study.view is View.SETTINGS:
        return context.TitleOfAblation(study.whole.name, len(study.ablated))
    names = tuple(dict.fromkeys(arm.profile if study.view is View.WORKLOADS else arm.name for arm in study.subjects))
    few = len(names) <= ranking.FEW or bool(study.at_once)
    reference = study.reference.profile if study.view is View.WORKLOADS else study.reference.name
    return context.Title(
        names if few else (),
        None if few else len(names),
        len(study.workloads) if study.view is View.WORKLOADS else None,
        reference if study.compared else None,
        study.scaling if study.weak else None,
    )


def to_json(result: Result, folder: str) -> dict[str, object]:
    """Return plain data for scripts: the result, the first line, and each verdict and line as a code with fields."""
    report = report_of(result, folder)
    rows = [row for section in report.sections for part in section.parts if isinstance(part, Rows) for row in part.rows]
    return {
        **result.to_json(),
        "headline": headline(result),
        "verdicts": {comparison.arm: verdict.of(result, comparison).to_json() for comparison in result.comparisons},
        "messages": [{"label": row.label, **row.text.to_json()} for row in rows if isinstance(row.text, Message)],
        "failures": [
            {"block": failure.block, "arm": failure.arm, "problem": _with_text(problem_of(failure))}
            for failure in result.failures
        ],
        "findings": [cautions.finding_document(finding) for finding in result.findings],
        "data_source": _with_text(result.data_source),
        "not_measured": {name: _with_text(reason) for name, reason in result.not_measured.items()},
    }


def headline(result: Result) -> dict[str, object]:
    """Return the first line of the report for scripts: its code, its fields and its text."""
    message = verdict.headline(result).text
    assert isinstance(message, Message), "a verdict is a message"
    return _with_text(message)


def _with_text(message: Message) -> dict[str, object]:
    """Return a message as JSON, with its text."""
    return {**message.to_json(), "text": text(message)}


def _section(name: str, *parts: Part | None, untitled: bool = False) -> Section | None:
    """Return a section of the ``parts`` that have something in them, or None."""
    kept = [part for part in parts if part and not (isinstance(part, Rows | Table) and not part.rows)]
    return Section(name, "" if untitled else headings.SECTIONS.get(name, ""), kept) if kept else None


# --- the short report ---


def _wide(result: Result) -> Table:
    rows, blanks = tables.wide_rows(result), [""] * 5
    book = [[*row, *blanks] for row in tables.columns(result, wide=True).published]
    weights = [*(ranking.weight(result.comparisons, row[0]) for row in rows), *("soft" for _ in book)]
    header = tables.wide_header(result)
    cells, numbers = [*rows, *(row[: len(header)] for row in book)], range(1, len(header) - 1)
    return Table(header, cells, numbers, weights, tables.note(result))


def failures(failed: Sequence[Failure], node: str = "", nothing: str = "") -> list[Row]:
    """Return which workers failed, and what they printed, or ``nothing``; ``node`` is where, if there are several."""
    return [
        Row("Failed", messages.WorkerFailure(failure.block + 1, failure.arm, problem_of(failure), node or None), "bad",
            output=failure.stderr.strip() or nothing)
        for failure in failed
    ]  # fmt: skip


def _grid(cells: Sequence[grid.Cell], plotted: bool) -> list[Part]:
    """Make a table for each number of batches that are made ahead, with a plot of text if it is to be ``plotted``."""
    parts: list[Part] = []
    for variant in grid.variants(cells):
        header = grid.header(variant)
        table = Table(header, grid.rows(variant), range(len(header)))
        plot = [Listing(grid.chart(variant))] if plotted else []
        parts.append(Fold(loaders.TableOfLoaders(grid.UNIT, variant.title), [table, *plot]))
    return parts


def _epoch_ends(cells: Sequence[epoch_ends.Cell]) -> list[Part]:
    """Make a table for each DataLoader whose workers were started and kept in several ways."""
    parts: list[Part] = []
    for group in epoch_ends.groups(cells):
        table = Table(headings.EPOCH_ENDS, epoch_ends.rows(group), epoch_ends.NUMBERS, note=epoch_ends.saved(group))
        parts.append(Fold(group.title, [table]))
    return parts


def _images(
    references: Mapping[str, str], differences: Mapping[str, Sequence[Difference]], every: bool
) -> Section | None:
    """Make the section of ``every`` difference between images that are compared, or of the first of them.

    Both mappings have the names of arms as keys. A page has the differences beside others.
    """
    most = None if every else execution_context.SHOWN
    images = [(arm, reference) for arm, reference in references.items() if arm in differences]
    each = [execution_context.image_table(arm, reference, differences[arm], most) for arm, reference in images]
    return _section("images", *each)


def _links(folder: str, events: Sequence[Event], wide: bool, full: bool) -> list[Row]:
    """Return how to see more of the record, or what a report without a page names of it."""
    if not wide:
        return [Row("Details", commands.details(folder), whole=True)]
    if full:
        return []
    digest = commands.digest(Path(folder), events)
    return [Row("Command", commands.started_with(events), whole=True), Row("Record", context.FileDigest(digest))]


# --- what --details and the page add ---


def _details(result: Result, folder: str, events: Sequence[Event], wide: bool) -> list[Section]:
    """Make the sections that follow the short report, in their order. Pictures are for the page, which is ``wide``."""
    sections = [
        _took(result, wide),
        _certainty(result, wide),
        _findings(result, wide),
        _learning(result, wide),
        _section("step-times", _drawing(result, "distributions")) if wide else None,
        _course(result.interference, _drawing(result, "time-course")) if wide else None,
        _evidence(result, wide),
        _differences(result),
        _reproduce(result, folder, events, wide),
    ]
    return [replace(section, full=True) for section in sections if section is not None]


def _took(result: Result, page: bool) -> Section | None:
    """Make the table of what each arm took, if the short report has another one."""
    study = result.study
    other = result.side_by_side or study.view is View.SETTINGS or result.not_in_effect
    took = None
    if other and not page:
        took = tables.took(tables.columns(result), result.measured, result.failures, result.comparisons)
    trained = tables.trained(result) if study.view is View.WORKLOADS else None
    return _section("took", took, trained)


def _certainty(result: Result, page: bool) -> Section | None:
    """Make the section of statistics, evidence and GPUs."""
    rows = [*certainty.rows(result), *observed.rows(result), *observed.gpus(result.gpus), *_accuracy(result)]
    rows += ablation.notes(result.study.ablated)
    nothing = Note(messages.TOO_FEW_FOR_STATISTICS) if page and not rows else None
    return _section("certainty", Rows(rows), nothing)


def _accuracy(result: Result) -> list[Row]:
    """Return loss and figures of the reference after a sample's steps; none if nothing was tested."""
    study = result.study
    one = next((measured for measured in result.measured if measured.arm == study.reference.name), None)
    if one is None or not one.quality or one.final_loss is None or study.epochs or len(study.workloads) > 1:
        return []
    steps = study.training.warmup_steps + study.training.steps
    return [Row("accuracy", trainings.Accuracy(one.arm, steps, one.final_loss, quality.shown(one.quality)))]


def _learning(result: Result, page: bool) -> Section | None:
    """Make the section of full trainings, epoch by epoch."""
    if not result.learning:
        return None
    drawing = _drawing(result, "learning-curves") if page else None
    return _section("learning", drawing, *learning.tables(result.learning, all_epochs=True))


def _findings(result: Result, page: bool) -> Section | None:
    """Make the section of what doctor found on the machine and in the workers."""
    each = result.findings if page else ranking.findings(result.findings, result.comparisons, result.study.view)
    rows = []
    for one in each:
        rows.append(Row(one.severity, one.seen, "plain" if one.severity == "note" else "bad"))
        rows += [Row("", one.why), Row("", About("Fix", one.fix), whole=True)]
    nothing = None if rows else Note(messages.NO_FINDING)
    return _section("findings", Rows(rows, bold=page), nothing)


def _course(interference: Mapping[int, Sequence[Message]], drawing: Drawing) -> Section | None:
    """Make the section of the course of the run, with what disturbed it by block."""
    rows = [[str(block + 1), "; ".join(map(text, reasons))] for block, reasons in sorted(interference.items())]
    few = len(rows) <= UNFOLDED_BLOCKS
    listed = Fold(headings.DISTURBANCES, [Table(headings.DISTURBED, rows)], open=few) if rows else None
    return _section("course", drawing, listed)


def _evidence(result: Result, page: bool) -> Section | None:
    """Make the section of the settings of each arm, as expected and as its workers observed them."""
    first = messages.HOW_TO_READ_EVIDENCE if result.measured else messages.NOTHING_OBSERVED
    few = len(result.study.compared) <= UNFOLDED
    each = (observed.settings(measured, result.environments[measured.arm], few, page) for measured in result.measured)
    return _section("evidence", Note(first), *each)


def _differences(result: Result) -> Section | None:
    """Make the section of differences between the environments."""
    study, folds = result.study, []
    for arm in study.compared:
        reference, rows = study.reference_of(arm).name, execution_context.sides(result, arm)
        weights = ["soft" if there == here else "plain" for _, there, here in rows]
        table = Table(("setting", reference, arm.name), rows, weights=weights)
        folds.append(Fold(context.BesideReference(arm.name, reference), [table], len(study.compared) <= UNFOLDED))
    nothing = None if folds else Note(messages.ONE_ENVIRONMENT)
    return _section("differences", *folds, nothing)


def _reproduce(result: Result, folder: str, events: Sequence[Event], page: bool) -> Section | None:
    again = [Row("ended", result.ended or context.NOT_YET_ENDED)]
    if page:
        again = commands.repeating(Path(folder), events, again[0], result.study.seed)
    by_arm = [Listing([command], name if page else "") for name, command in result.lengths.commands.items()]
    by_hand = Fold(headings.BY_HAND, by_arm, open=False)
    return _section("reproduce", Rows([*execution_context.rows(result), *again]), by_hand)


# --- pictures ---


def _drawing(result: Result, name: str) -> Drawing:
    """Return a picture for the page."""
    from envkit.report import pictures  # which takes long to import

    picture = pictures.named(name)
    alternative = of_pictures.Alternative(picture.title, _results(result, name) or (of_pictures.FIGURES_IN_TABLES,))
    return Drawing(name, picture.title, headings.READING[name], picture.missing(result), text(alternative))


def _results(result: Result, name: str) -> tuple[str, ...]:
    """Return the results that a picture shows, for those who have them read out."""
    if name == "forest":
        return tuple(f"{row.label}: {text(row.text)}" for row in verdict.rows(result))
    if name in ("grid", "epoch-ends"):
        return (text(verdict.headline(result).text),)
    if name != "learning-curves":
        return ()
    return tuple(text(row.text) for row in learning.rows(result.learning, str(result.study.until)))
