"""Lay out a report as one page that needs nothing else: no network, no scripts, no other file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from envkit.analysis.summary import Summary
from envkit.bench.record import Event
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import pictures
from envkit.report.model import report_of
from envkit.report.parts import Drawing, Row


def page(folder: Path, events: Sequence[Event], summary: Summary) -> str:
    """The page. The same record at the same place always gives the same bytes."""
    environment = Environment(
        loader=PackageLoader("envkit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: text(value) if isinstance(value, Message) else value,
    )

    def drawn(drawing: Drawing, narrow: bool) -> Markup:
        return Markup(pictures.svg(pictures.named(drawing.name), summary, narrow, drawing.words))

    return environment.get_template("report.html.j2").render(
        report=report_of(summary, str(folder), events, wide=True, full=True), cards=_cards, drawn=drawn
    )


def _cards(rows: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    """Each row that has a label, with those below it that have none."""
    found: list[tuple[Row, list[Row]]] = []
    for row in rows:
        if row.label:
            found.append((row, []))
        else:
            found[-1][1].append(row)
    return found
