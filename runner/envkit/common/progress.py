"""Show what is being measured: one progress bar on a terminal, plain lines elsewhere. Written to stderr."""

from __future__ import annotations

import sys
from typing import Any

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from envkit.common.live_view import LiveView, minutes


class Progress(LiveView):
    """Tells of blocks and their arms as they are measured."""

    def __init__(self, budget_s: float, quiet: bool) -> None:
        """``budget_s`` is the whole budget in seconds; 0 where the time needed isn't known."""
        super().__init__(quiet)
        self._budget_s = budget_s
        texts = [
            TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[left]", "fields[standing]")
        ]
        self._bar = Bar(texts[0], BarColumn(), *texts[1:], auto_refresh=False)
        self._task = self._bar.add_task("starting", total=budget_s or None, left="", standing="")

    def _draw(self, **changed: Any) -> None:
        if self.live:
            self._bar.update(self._task, **changed)
            self.live.update(self._bar, refresh=True)

    def say(self, text: str) -> None:
        if not self.quiet:
            print(f"envkit: {text}", file=sys.stderr, flush=True)

    def start(self, stage: str, arm: str, left_s: float) -> None:
        """A worker is about to start; ``left_s`` seconds of the budget are left."""
        left = f"{minutes(left_s)} left" if self._budget_s else ""
        self._draw(description=f"{stage}, {arm}", completed=self._budget_s - left_s, left=left)

    def finish(self, stage: str, arm: str, step_s: float, step: str = "step") -> None:
        """A worker ended; its mean ``step`` took ``step_s`` seconds."""
        if self.live is None and not self.quiet:
            print(f"{stage}, {arm}: {step_s * 1000:.2f} ms per {step}", file=sys.stderr, flush=True)

    def block(self, stage: str, standing: str, left_s: float | None) -> None:
        """A block is complete: how things stand, and how many seconds it will take still, if that is known."""
        self._draw(standing=standing)
        if self.live is None and not self.quiet:
            left = "" if left_s is None else f"; about {minutes(left_s)} left"
            print(f"{stage}: {standing or 'complete'}{left}", file=sys.stderr, flush=True)
