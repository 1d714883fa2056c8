"""Lay out a report as one page that needs nothing else: no network, no scripts, no other file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from envkit.analysis.result import Result
from envkit.bench.record import Event
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import model, pictures
from envkit.report.parts import Drawing, Listing, Note, Part, Report, Row, Rows, Section

LINES = (Rows, Listing, Note)


@dataclass(frozen=True)
class Layout:
    """The parts of a page from top to bottom, after the verdict."""

    warnings: Sequence[Part]
    lead: Drawing | None  # the picture that the page opens with
    lines: Sequence[Section]
    tables: Sequence[Section]  # with further pictures


def page(folder: Path, events: Sequence[Event], result: Result) -> str:
    """Return the page. The same record at the same place always gives the same bytes."""

    def drawn(drawing: Drawing, narrow: bool) -> str:
        return pictures.svg(pictures.named(drawing.name), result, narrow, drawing.words)

    report = model.report_of(result, str(folder), events, wide=True, full=True)
    return render(model.title(result.study), report, drawn)


def render(title: Message | str, report: Report, drawn: Callable[[Drawing, bool], str]) -> str:
    """Return the page of a report. Its ``title`` says what was compared with what.

    ``drawn`` returns the SVG of a picture, a narrow one on request.
    """
    environment = Environment(
        loader=PackageLoader("envkit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: text(value) if isinstance(value, Message) else value,
    )
    return environment.get_template("report.html.j2").render(
        title=title,
        report=report,
        layout=layout(report.sections),
        cards=_cards,
        labelled=_labelled,
        drawn=lambda drawing, narrow: Markup(drawn(drawing, narrow)),
    )


def layout(sections: Sequence[Section]) -> Layout:
    """Put the first picture on top, then what the short sections say in lines, then their tables, then the rest."""
    short = [section for section in sections if not section.full]
    parts = [part for section in short for part in section.parts]
    lead = next((part for part in parts if isinstance(part, Drawing) and not part.missing), None)
    warnings = [part for part in parts if _warns(part)]
    lines = _filled(_only(one, lambda part: isinstance(part, LINES) and not _warns(part)) for one in short)
    tables = _filled(_only(one, lambda part: not isinstance(part, LINES) and part is not lead) for one in short)
    taken = {section.name for section in lines}
    renamed = [replace(one, name=f"{one.name}-tables") if one.name in taken else one for one in tables]
    return Layout(warnings, lead, lines, [*renamed, *(section for section in sections if section.full)])


def _warns(part: Part) -> bool:
    """Return whether the part puts all others in question."""
    return isinstance(part, Note) and part.weight == "bad"


def _only(section: Section, belongs: Callable[[Part], bool]) -> Section:
    """Return the section with those of its parts that belong."""
    return replace(section, parts=[part for part in section.parts if belongs(part)])


def _filled(sections: Iterable[Section]) -> list[Section]:
    return [section for section in sections if section.parts]


def _cards(rows: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    """Return each row that has a label, with those below it that have none."""
    cards: list[tuple[Row, list[Row]]] = []
    for row in rows:
        if row.label:
            cards.append((row, []))
        else:
            cards[-1][1].append(row)
    return cards


def _labelled(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return each label with the rows that it stands for: its own, those without one, and those that repeat it."""
    labelled: list[tuple[str, list[Row]]] = []
    for row in rows:
        if labelled and row.label in ("", labelled[-1][0]):
            labelled[-1][1].append(row)
        else:
            labelled.append((row.label, [row]))
    return labelled
