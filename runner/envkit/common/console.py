"""Consoles for everything printed with rich. Texts come from profiles and records: nothing in them is acted upon."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, HighlighterType, JustifyMethod, OverflowMethod, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from envkit.common.output import terminal_of
from envkit.common.printable import ACTED_UPON, harmless


class HarmlessConsole(Console):
    """Shows brackets and colons as they stand, and control characters as escapes."""

    def __init__(self, width: int | None = None, stderr: bool = False) -> None:
        super().__init__(width=width, stderr=stderr, markup=False, emoji=False)

    @property
    def file(self) -> IO[str]:
        """The terminal itself, or what is in its place: colours are control characters too."""
        return terminal_of(super().file)

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        """Return ``text`` with its escapes, so that columns of tables become wide enough for these."""
        return super().render_str(
            harmless(text),
            style=style,
            justify=justify,
            overflow=overflow,
            emoji=emoji,
            markup=markup,
            highlight=highlight,
            highlighter=highlighter,
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        # before it is broken into lines: an escape takes room, what it is of none
        if isinstance(renderable, Text) and ACTED_UPON.search(renderable.plain):
            renderable = renderable.copy()
            renderable.plain = harmless(renderable.plain)
        for segment in super().render(renderable, options):
            if segment.control or not ACTED_UPON.search(segment.text):
                yield segment
            else:
                yield segment._replace(text=harmless(segment.text))
