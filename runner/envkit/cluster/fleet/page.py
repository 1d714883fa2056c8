"""Write the report on a fleet as one page that needs nothing else: no network, no scripts, no other file."""

from __future__ import annotations

from collections.abc import Sequence

from envkit.cluster.fleet import picture, sentences
from envkit.cluster.fleet import report_messages as messages
from envkit.cluster.fleet.differences import ERROR_RATE as DIFFERENCE_RATE
from envkit.cluster.fleet.findings import Fleet, FleetResult, Kind, NodeVerdict
from envkit.cluster.fleet.report_messages import NO_DIFFERENCES, NONE_LEFT_OUT, NONE_SLOW, READING, TITLES, UNLIKE
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import html
from envkit.report.parts import Drawing, Fold, Note, Part, Report, Row, Rows, Section, Table

# Of these a page has no more, or a browser takes long to show it; the JSON document has all.
MOST_NODES, MOST_VALUES, MOST_LEFT_OUT = 500, 12, 500
SPREAD, SLOW = "spread", "slow"
DRAWN = {SPREAD: picture.spread, SLOW: picture.intervals}


def page(fleet: Fleet) -> str:
    """Return the page. The same records at the same place always give the same bytes."""

    def drawn(drawing: Drawing, narrow: bool) -> str:
        return DRAWN[drawing.name](fleet, narrow, drawing.words)

    title = text(messages.Title(tuple(fleet.profiles)))
    return html.render(title, Report(sentences.headline(fleet), _sections(fleet)), drawn)


def _sections(fleet: Fleet) -> list[Section]:
    slow = fleet.of(NodeVerdict.SLOW)
    summary = sentences.summary(fleet)
    histogram = messages.Histogram(tuple(text(row.text) for row in summary))
    drawn = messages.IntervalsDrawn(text(sentences.headline(fleet).text))
    intervals = [Drawing(SLOW, TITLES["slow"], READING["slow"], None, text(drawn))] if slow else []
    differences = [_differences(kind, len(fleet.kinds) > 1) for kind in fleet.kinds if kind.differences]
    note = text(messages.NoCause(DIFFERENCE_RATE)) if differences else NO_DIFFERENCES
    spread = Drawing(SPREAD, TITLES["spread"], READING["spread"], None, text(histogram))
    return [
        Section("found", TITLES["found"], [Rows(sentences.advice(fleet)), spread]),
        Section("spread", TITLES["spread"], [Rows(summary)]),
        Section("certainty", TITLES["certainty"], [Rows(sentences.certainty(fleet))]),
        Section("records", "", [Rows([Row("records", fleet.place)])]),
        Section("nodes", TITLES["slow" if slow else "nodes"], [*intervals, *_nodes(fleet, slow)], full=True),
        Section("differences", TITLES["differences"], [*differences, Note(note)], full=True),
        Section("left-out", TITLES["left_out"], [_left_out(fleet)], full=True),
    ]


def _nodes(fleet: Fleet, slow: Sequence[FleetResult]) -> list[Part]:
    results = [*slow, *fleet.of(NodeVerdict.NOT_JUDGED)]
    if not results:
        return [Note(NONE_SLOW)]
    shown = results[:MOST_NODES]
    rows = [[*sentences.slow_row(result), text(sentences.unusual(result))] for result in shown]
    return [Table((*sentences.SLOW_HEADER, UNLIKE), rows, note=_more(len(results), len(shown)))]


def _differences(kind: Kind, named: bool) -> Part:
    rows = [row for fact in kind.differences for row in sentences.difference_rows(fact, MOST_VALUES)]
    weights = ["bad" if marked else "plain" for _, marked in rows]
    table = Table(sentences.DIFFERENCE_HEADER, [cells for cells, _ in rows], weights=weights)
    return Fold(kind.name, [table]) if named else table


def _left_out(fleet: Fleet) -> Part:
    shown = fleet.left_out[:MOST_LEFT_OUT]
    rows = [[node.name, text(node.reason)] for node in shown]
    more = _more(len(fleet.left_out), len(shown))
    return Table(("node", "why"), rows, note=more) if rows else Note(NONE_LEFT_OUT)


def _more(count: int, shown: int) -> Message | None:
    return messages.MoreInJson(count - shown, ("--json",)) if count > shown else None
