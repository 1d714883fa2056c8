"""Show how the search goes, on stderr: the fastest candidates as a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

from envkit.common.live_view import LiveView
from envkit.common.plain_table import plain_table
from envkit.messages import Message
from envkit.rendering import text
from envkit.tuning import progress_messages as messages
from envkit.tuning.trial_store import TrialStore

SHOWN = 5


class View(LiveView):
    def __init__(self, store: TrialStore, search_s: float, quiet: bool) -> None:
        """``search_s`` is the search's share of the budget in seconds; 0 where it is not limited."""
        super().__init__(quiet)
        self._store = store
        self.search_s = search_s

    def before(self, label: str) -> None:
        """Show that a worker is about to start under ``label``."""
        if self.live:
            self.live.update(Group(self._line(messages.WorkerStarts(label)), self._table()), refresh=True)

    def after_round(self, stage: str) -> None:
        """Show that a round has ended. ``stage`` is what it was for."""
        if self.live is None and not self.quiet:
            print(self._line(messages.RoundEnded(len(self._store.rounds), stage)), file=sys.stderr, flush=True)

    def _line(self, now: Message) -> Text:
        store = self._store
        ahead = next((messages.Ahead(rank.trials, rank.title) for rank in ranked(store)), None)
        share_s, failed = self.search_s or None, len(store.problems) or None
        return Text(text(messages.Progress(now, len(store.entries), store.spent_s, failed, share_s, ahead)))

    def _table(self) -> Table:
        table = plain_table(messages.PROGRESS, right=("trials",))
        for line in ranked(self._store)[:SHOWN]:
            table.add_row(str(line.trials), line.title)
        return table


def note(message: Message) -> None:
    """Print a line between the search and the confirmation."""
    print(text(message), file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Rank:
    """A candidate with its speedup so far, which is no result: the best of many was lucky too."""

    number: int
    title: str
    speedup: float
    trials: int


def ranked(store: TrialStore) -> list[Rank]:
    """Return the candidates that have had a trial and have not failed, the best first."""
    scores, trials = store.scores(), store.trials()
    best = sorted(scores, key=lambda number: (-scores[number], number))
    return [Rank(number, store.entries[number].title, math.exp(scores[number]), trials[number]) for number in best]
