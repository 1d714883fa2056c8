"""What was found of a fleet as one page that needs nothing else: no network, no scripts, no other file."""

from __future__ import annotations

from collections.abc import Sequence

from envkit.cluster.fleet import picture, sentences
from envkit.cluster.fleet.findings import Fleet, Kind, NodeVerdict, Result
from envkit.rendering import text
from envkit.report import html
from envkit.report.parts import Drawing, Fold, Note, Part, Report, Row, Rows, Section, Table

# Of these a page has no more, or a browser takes long to show it; the JSON document has all.
MOST_NODES, MOST_VALUES, MOST_LEFT_OUT = 500, 12, 500
READING = (
    "How many nodes take how much more time per step than the middle node of their kind. The height grows with the "
    "logarithm from ten nodes on. Beyond the dotted line is more than is allowed."
)
READING_SLOW = "Each square is a slow node's time, and the line through it its interval."
SPREAD, INTERVALS = "How far nodes differ", "Slow nodes"
DRAWN = {SPREAD: picture.spread, INTERVALS: picture.intervals}


def page(fleet: Fleet) -> str:
    """Return the page. The same records at the same place always give the same bytes."""

    def drawn(drawing: Drawing, narrow: bool) -> str:
        return DRAWN[drawing.name](fleet, narrow, drawing.words)

    title = f"{', '.join(fleet.profiles)} on a fleet"
    return html.render(Report(sentences.headline(fleet), title, _sections(fleet)), drawn)


def _sections(fleet: Fleet) -> list[Section]:
    slow = fleet.of(NodeVerdict.SLOW)
    in_words = " ".join(text(row.text) for row in sentences.summary(fleet))
    found = f"{text(sentences.headline(fleet).text)}; the figures are in the table below"
    spread = Drawing(SPREAD, SPREAD, READING, None, f"Histogram of the nodes' times. {in_words}")
    intervals = [Drawing(INTERVALS, INTERVALS, READING_SLOW, None, found)] if slow else []
    differences = [_differences(kind, len(fleet.kinds) > 1) for kind in fleet.kinds if kind.differences]
    said = sentences.NO_CAUSE if differences else "Nothing that is recorded of machines and images."
    return [
        Section("found", "What was found", [Rows(sentences.advice(fleet)), spread]),
        Section("spread", SPREAD, [Rows(sentences.summary(fleet))]),
        Section("certainty", "How sure this is", [Rows(sentences.certainty(fleet))]),
        Section("records", "", [Rows([Row("records", fleet.place)])]),
        Section("nodes", INTERVALS if slow else "Nodes", [*intervals, *_nodes(fleet, slow)], full=True),
        Section("differences", "What differs between nodes", [*differences, Note(said)], full=True),
        Section("left-out", "Nodes that can't be compared", [_left_out(fleet)], full=True),
    ]


def _nodes(fleet: Fleet, slow: Sequence[Result]) -> list[Part]:
    results = [*slow, *fleet.of(NodeVerdict.NOT_JUDGED)]
    if not results:
        return [Note("None is slow.")]
    shown = results[:MOST_NODES]
    rows = [[*sentences.slow_row(one), sentences.unusual(one)] for one in shown]
    return [Table((*sentences.SLOW_HEADER, "unlike most in"), rows, note=_more(len(results), len(shown)))]


def _differences(kind: Kind, named: bool) -> Part:
    found = [row for fact in kind.differences for row in sentences.difference_rows(fact, MOST_VALUES)]
    weights = ["bad" if marked else "plain" for _, marked in found]
    table = Table(sentences.DIFFERENCE_HEADER, [cells for cells, _ in found], weights=weights)
    return Fold(kind.name, [table]) if named else table


def _left_out(fleet: Fleet) -> Part:
    shown = fleet.left_out[:MOST_LEFT_OUT]
    rows = [[one.name, text(one.reason)] for one in shown]
    more = _more(len(fleet.left_out), len(shown))
    return Table(("node", "why"), rows, note=more) if rows else Note("None.")


def _more(count: int, shown: int) -> str:
    return f"{count - shown:,} more are in the JSON document." if count > shown else ""
