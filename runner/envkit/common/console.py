"""Consoles for everything printed with rich. Texts come from profiles and records: nothing in them is acted upon."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from envkit.common.printable import harmless


class HarmlessConsole(Console):
    """Shows brackets and colons as they stand, and control characters as pictures."""

    def __init__(self, width: int | None = None, stderr: bool = False) -> None:
        super().__init__(width=width, stderr=stderr, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text):  # before it is broken into lines: a picture takes room, what it is of none
            renderable = renderable.copy()
            renderable.plain = harmless(renderable.plain)
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless(segment.text))
