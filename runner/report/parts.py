"""What reports are made of: plain data that ``runner.report.model`` fills in and renderers lay out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A labelled sentence. ``weight`` is ``good``, ``bad`` or ``plain``.

    ``whole`` has something to copy in it, and is not to be broken into lines. ``output`` is what a program printed.
    """

    label: str
    text: str
    weight: str = "plain"
    whole: bool = False
    output: str = ""


@dataclass(frozen=True)
class Rows:
    """Labelled sentences; one without a label goes on below the one before it. Those that are ``bold`` stand out."""

    rows: Sequence[Row]
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """``numbers`` are the columns that stand on the right. ``weights``, one for each row, are those of a `Row`, and
    ``soft`` for what matters less."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[int] = ()
    weights: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class Listing:
    """Lines that are shown as they are; ``title`` says of what."""

    lines: Sequence[str]
    title: str = ""


@dataclass(frozen=True)
class Drawing:
    """A picture, by its name in ``runner.report.pictures``, or why it is ``missing``.

    ``reading`` says how to read it, and ``words`` is for those who have it read out to them.
    """

    name: str
    title: str
    reading: str
    missing: str | None
    words: str


@dataclass(frozen=True)
class Note:
    """A paragraph."""

    text: str
    weight: str = "soft"


@dataclass(frozen=True)
class Fold:
    """Parts under a title of their own, which a page folds up unless they are ``open``."""

    title: str
    parts: Sequence[Part]
    open: bool = True
    weight: str = "plain"


Part = Rows | Table | Listing | Drawing | Note | Fold


@dataclass(frozen=True)
class Section:
    """``full`` ones follow after the short report."""

    name: str
    title: str
    parts: Sequence[Part]
    full: bool = False


@dataclass(frozen=True)
class Report:
    """``headline`` is the verdict, ``title`` what was compared with what."""

    headline: Row
    title: str
    sections: Sequence[Section]
