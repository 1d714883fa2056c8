"""Show what is being measured on stderr: one line that narrows on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from envkit.common.live_view import LiveView, minutes
from envkit.common.running_messages import StageDone, WorkerDone
from envkit.messages import Message
from envkit.rendering import text

# A terminal of fewer columns has no room for a bar.
NARROW = 70
# Without a terminal, so many seconds pass between lines.
EVERY_S = 30.0


def say(message: Message) -> None:
    """Print a message on stderr, in a line of its own."""
    print(text(message), file=sys.stderr)


class Progress(LiveView):
    """Shows blocks and their arms as they are measured."""

    def __init__(self, budget_s: float, quiet: bool) -> None:
        """``budget_s`` is the whole budget in seconds; 0 if the time needed isn't known."""
        super().__init__(quiet)
        self._budget_s = budget_s
        self._printed_s = time.monotonic()
        described, remaining, standing = (
            TextColumn(f"{{task.{name}}}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
            for name in ("description", "fields[left]", "fields[standing]")
        )
        narrow = self.live is not None and self.live.console.width < NARROW
        columns = (described, standing) if narrow else (described, BarColumn(bar_width=10), remaining, standing)
        self._bar = Bar(*columns, auto_refresh=False)
        self._left = self._standing = ""
        self._task = self._bar.add_task("starting", total=budget_s or None, left="", standing="")

    def _draw(self, stage: str, completed_s: float | None = None) -> None:
        if self.live:
            self._bar.update(
                self._task, description=stage, completed=completed_s, left=self._left, standing=self._standing
            )
            self.live.update(self._bar, refresh=True)

    def _print(self, message: Message) -> None:
        """Print a line, unless the one before it is too recent."""
        now = time.monotonic()
        if self.live is None and not self.quiet and now - self._printed_s >= EVERY_S:
            self._printed_s = now
            print(text(message), file=sys.stderr, flush=True)

    def say(self, message: Message) -> None:
        """Print a message in a line of its own."""
        if not self.quiet:
            print(f"envkit: {text(message)}", file=sys.stderr, flush=True)

    def start(self, stage: str, arm: str, left_s: float) -> None:
        """Show that a worker is about to start; ``left_s`` seconds of the budget are left."""
        self._left = f"{minutes(left_s)} left" if self._budget_s else ""
        stage = stage if self._standing else f"{stage}, {arm}"
        self._draw(stage, self._budget_s - left_s)

    def finish(self, stage: str, arm: str, step_s: float, step: str = "step") -> None:
        """Show that a worker ended; its mean ``step`` took ``step_s`` seconds."""
        self._print(WorkerDone(stage, arm, step_s * 1000, step))

    def block(self, stage: str, standing: Message | None, left_s: float | None) -> None:
        """Show that a block is complete: how things stand, and the seconds until the end if these are known."""
        self._standing = text(standing) if standing else ""
        self._draw(stage)
        self._print(StageDone(stage, standing, None if left_s is None else minutes(left_s)))
