"""Show how the search goes: the best so far as a table on a terminal, plain lines elsewhere. Written to stderr."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

from envkit.common.live_view import LiveView, minutes
from envkit.common.plain_table import plain_table
from envkit.tuning.trial_store import TrialStore

SHOWN = 5


class View(LiveView):
    def __init__(self, store: TrialStore, search_s: float, quiet: bool) -> None:
        """``search_s`` is the search's share of the budget in seconds; 0 where it is not limited."""
        super().__init__(quiet)
        self._store = store
        self.search_s = search_s

    def before(self, what: str) -> None:
        """Show that a worker is about to start under ``what``."""
        if self.live:
            self.live.update(Group(*self._lines(f"now: {what}"), self._table()), refresh=True)

    def after_round(self, stage: str) -> None:
        """Show that a round has ended. ``stage`` is what it was for."""
        if self.live is None and not self.quiet:
            for line in self._lines(f"round {len(self._store.rounds)}, {stage}"):
                print(line, file=sys.stderr, flush=True)

    def _lines(self, begin: str) -> list[Text]:
        store = self._store
        spent = f", {minutes(store.spent_s)} of {minutes(self.search_s)} for the search" if self.search_s else ""
        failed = f", {len(store.problems)} failed" if store.problems else ""
        best = next(iter(ranked(store)), None)
        found = f"; best so far {best}" if best else ""
        return [Text(f"{begin}: {len(store.entries)} candidates{failed}{spent}{found}")]

    def _table(self) -> Table:
        table = plain_table(("speedup", "trials", "candidate"), right=("speedup", "trials"))
        for line in ranked(self._store)[:SHOWN]:
            table.add_row(f"{line.speedup:.3f}", str(line.trials), line.title)
        return table


@dataclass(frozen=True)
class Rank:
    """A candidate with its speedup so far, which is no result: the best of many was lucky too."""

    number: int
    title: str
    speedup: float
    trials: int

    def __str__(self) -> str:
        return f"{self.speedup:.3f} in {self.trials} trial{'' if self.trials == 1 else 's'}: {self.title}"


def ranked(store: TrialStore) -> list[Rank]:
    """The candidates that have had a trial and have not failed, the best first."""
    scores, trials = store.scores(), store.trials()
    best = sorted(scores, key=lambda one: (-scores[one], one))
    return [Rank(one, store.entries[one].title, math.exp(scores[one]), trials[one]) for one in best]
