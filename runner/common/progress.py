"""Show what is being measured: one progress bar on a terminal, plain lines elsewhere. Written to stderr."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from runner.common.live_view import minutes


class Progress:
    """Tells of blocks and their arms as they are measured; used as a context manager.

    The bar is drawn between samples only: drawing while a worker runs would take time from it.
    """

    def __init__(self, budget_s: float, quiet: bool) -> None:
        """``budget_s`` is the whole budget in seconds; 0 where the time needed isn't known."""
        self._budget_s = budget_s
        self._quiet = quiet
        self._bar: Bar | None = None
        if sys.stderr.isatty() and not quiet:
            texts = [TextColumn(f"{{task.{name}}}") for name in ("description", "fields[left]", "fields[standing]")]
            columns = (texts[0], BarColumn(), *texts[1:])
            self._bar = Bar(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
            self._task = self._bar.add_task("starting", total=budget_s or None, left="", standing="")

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def say(self, text: str) -> None:
        if not self._quiet:
            print(f"envkit: {text}", file=sys.stderr, flush=True)

    def start(self, stage: str, arm: str, left_s: float) -> None:
        """A worker is about to start; ``left_s`` seconds of the budget are left."""
        if self._bar:
            left = f"{minutes(left_s)} left" if self._budget_s else ""
            done = self._budget_s - left_s
            self._bar.update(self._task, description=f"{stage}, {arm}", completed=done, left=left)
            self._bar.refresh()

    def finish(self, stage: str, arm: str, step_s: float, step: str = "step") -> None:
        """A worker ended; its mean ``step`` took ``step_s`` seconds."""
        if self._bar is None and not self._quiet:
            print(f"{stage}, {arm}: {step_s * 1000:.2f} ms per {step}", file=sys.stderr, flush=True)

    def block(self, stage: str, standing: str, left_s: float | None) -> None:
        """A block is complete: how things stand, and how many seconds it will take still, if that is known."""
        if self._bar:
            self._bar.update(self._task, standing=standing)
            self._bar.refresh()
        elif not self._quiet:
            left = "" if left_s is None else f"; about {minutes(left_s)} left"
            print(f"{stage}: {standing or 'complete'}{left}", file=sys.stderr, flush=True)
