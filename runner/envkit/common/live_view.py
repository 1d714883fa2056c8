"""A live view on a terminal's stderr; nothing elsewhere or with --quiet."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TypeVar

from rich.live import Live

from envkit.common import output
from envkit.common.console import HarmlessConsole

Self = TypeVar("Self", bound="LiveView")


class LiveView:
    """Used as a context manager. Nothing is drawn by itself: while a worker runs it would take time from it."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.live: Live | None = None
        if sys.stderr.isatty() and not quiet:
            self.live = Live(console=HarmlessConsole(stderr=True), auto_refresh=False, transient=True)

    def __enter__(self: Self) -> Self:
        if self.live:
            self.live.start()
            output.guard()  # its own streams would act upon what is printed meanwhile
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()


def minutes(seconds: float) -> str:
    """``1:05`` for 65 seconds."""
    total = round(seconds)
    return f"{total // 60}:{total % 60:02}"
