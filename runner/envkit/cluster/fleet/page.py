"""What was found of a fleet as one page that needs nothing else: no network, no scripts, no other file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from envkit.cluster.fleet import picture, sentences
from envkit.cluster.fleet.findings import Fleet, Kind, NodeVerdict, Result
from envkit.rendering import text

# Of these a page has no more, or a browser takes long to show it; the JSON document has all.
MOST_NODES, MOST_VALUES, MOST_LEFT_OUT = 500, 12, 500
READING = (
    "How many nodes take how much more time per step than the middle node of their kind. The height grows with the "
    "logarithm from ten nodes on. Beyond the dotted line is more than is allowed."
)
READING_SLOW = "Each square is a slow node's time, and the line through it its interval."


@dataclass(frozen=True)
class Drawn:
    """A picture at both widths, and how to read it."""

    reading: str
    wide: Markup
    narrow: Markup


@dataclass(frozen=True)
class Table:
    """``rows`` have their cells, and whether they are marked; ``more`` says how many are not shown, or nothing."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[list[str], bool]]
    more: str = ""


def page(fleet: Fleet) -> str:
    """The page. The same records at the same place always give the same bytes."""
    environment = Environment(
        loader=PackageLoader("envkit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    slow = fleet.of(NodeVerdict.SLOW)
    in_words = " ".join(text(row.text) for row in sentences.summary(fleet))
    found = f"{text(sentences.headline(fleet).text)}; the figures are in the table below"
    return environment.get_template("fleet.html.j2").render(
        place=fleet.place,
        profiles=", ".join(fleet.profiles),
        headline=sentences.headline(fleet),
        advice=sentences.advice(fleet),
        summary=sentences.summary(fleet),
        certainty=sentences.certainty(fleet),
        spread=_drawn(picture.spread, fleet, READING, f"Histogram of the nodes' times. {in_words}"),
        intervals=_drawn(picture.intervals, fleet, READING_SLOW, found) if slow else None,
        nodes=_nodes([*slow, *fleet.of(NodeVerdict.NOT_JUDGED)]),
        differences=[_differences(kind, len(fleet.kinds) > 1) for kind in fleet.kinds if kind.differences],
        no_cause=sentences.NO_CAUSE,
        left_out=_left_out(fleet),
    )


def _drawn(draw: Callable[[Fleet, bool, str], str], fleet: Fleet, reading: str, words: str) -> Drawn:
    """``words`` are in the place of the picture for those who don't see it."""
    wide, narrow = (Markup(draw(fleet, is_narrow, words)) for is_narrow in (False, True))
    return Drawn(reading, wide, narrow)


def _nodes(results: list[Result]) -> Table:
    shown = results[:MOST_NODES]
    rows = [([*sentences.slow_row(one), sentences.unusual(one)], False) for one in shown]
    return Table("", (*sentences.SLOW_HEADER, "unlike most in"), rows, _more(len(results), len(shown)))


def _differences(kind: Kind, named: bool) -> Table:
    rows = [row for fact in kind.differences for row in sentences.difference_rows(fact, MOST_VALUES)]
    return Table(kind.name if named else "", sentences.DIFFERENCE_HEADER, rows)


def _left_out(fleet: Fleet) -> Table:
    shown = fleet.left_out[:MOST_LEFT_OUT]
    rows = [([one.name, one.reason], False) for one in shown]
    return Table("", ("node", "why"), rows, _more(len(fleet.left_out), len(shown)))


def _more(count: int, shown: int) -> str:
    return f"{count - shown:,} more are in the JSON document." if count > shown else ""
