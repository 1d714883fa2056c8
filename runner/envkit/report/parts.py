"""Parts of reports: plain data that ``envkit.report.model`` fills in and renderers lay out.

Texts are messages; captions of a catalogue; or plain names, commands and figures. Renderers give all of them to
``envkit.rendering.text``.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from envkit.messages import Message


@dataclass(frozen=True)
class Row:
    """A labelled sentence."""

    label: str
    text: Message | str
    weight: str = "plain"  # or good, or bad
    whole: bool = False  # it has something to copy in it, and is not to be broken into lines
    output: str = ""  # what a program printed


@dataclass(frozen=True)
class Rows:
    """Labelled sentences; one without a label goes on below the one before it. Bold cells stand out."""

    rows: Sequence[Row]
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """Cells in rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[int] = ()  # the columns that stand on the right
    weights: Sequence[str] = ()  # one for each row: those of a Row, and soft for what matters less
    note: Message | None = None


@dataclass(frozen=True)
class Listing:
    """Lines that are shown as they are, and a title that says of what."""

    lines: Sequence[str]
    title: str = ""


@dataclass(frozen=True)
class Drawing:
    """A picture."""

    name: str  # in envkit.report.pictures
    title: str
    reading: str  # how to read it
    missing: str | None  # the reason why the picture could not be drawn
    words: str  # for those who have it read out to them


@dataclass(frozen=True)
class Note:
    """A paragraph."""

    text: Message | str
    weight: str = "soft"


@dataclass(frozen=True)
class Fold:
    """Parts under a title of their own, which a page folds up unless they are ``open``."""

    title: Message | str
    parts: Sequence[Part]
    open: bool = True
    weight: str = "plain"


# The name of the section that stands beside the verdict, and is the first if it is there.
CAUTIONS = "cautions"
Reason = TypeVar("Reason", bound=Hashable)
Part = Rows | Table | Listing | Drawing | Note | Fold


@dataclass(frozen=True)
class Section:
    """A part of a report with a title of its own."""

    name: str
    title: str
    parts: Sequence[Part]
    full: bool = False  # it follows after the short report


@dataclass(frozen=True)
class Report:
    """All that a renderer lays out."""

    headline: Row  # the verdict
    sections: Sequence[Section]


def labelled_once(rows: Iterable[Row]) -> list[Row]:
    """Return the rows without labels that repeat the label of the row before."""
    kept, before = list[Row](), ""
    for row in rows:
        kept.append(replace(row, label="") if row.label == before else row)
        before = row.label
    return kept


def together(reasons: Mapping[str, Reason]) -> dict[str, Reason]:
    """Return one entry for each reason: the things that share it, joined by commas, and the reason."""
    things: dict[Reason, list[str]] = {}
    for thing, reason in reasons.items():
        things.setdefault(reason, []).append(thing)
    return {", ".join(alike): reason for reason, alike in things.items()}
