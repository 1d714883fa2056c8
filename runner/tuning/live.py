"""Show how the search goes: the best so far as a table on a terminal, plain lines elsewhere. Written to stderr."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

from runner.live_view import LiveView, minutes
from runner.tuning.board import Board

SHOWN = 5


class View(LiveView):
    def __init__(self, board: Board, search_s: float, quiet: bool) -> None:
        """``search_s`` is the search's share of the budget in seconds; 0 where it is not limited."""
        super().__init__(quiet)
        self._board = board
        self.search_s = search_s

    def before(self, what: str) -> None:
        """A worker is about to start under ``what``."""
        if self.live:
            self.live.update(Group(*self._lines(f"now: {what}"), self._table()), refresh=True)

    def after_round(self, stage: str) -> None:
        """A round has ended."""
        if self.live is None and not self.quiet:
            for line in self._lines(f"round {len(self._board.rounds)}, {stage}"):
                print(line, file=sys.stderr, flush=True)

    def _lines(self, begin: str) -> list[Text]:
        board = self._board
        spent = f", {minutes(board.spent_s)} of {minutes(self.search_s)} for the search" if self.search_s else ""
        failed = f", {len(board.problems)} failed" if board.problems else ""
        best = next(iter(ranked(board)), None)
        found = f"; best so far {best}" if best else ""
        return [Text(f"{begin}: {len(board.entries)} candidates{failed}{spent}{found}")]

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("speedup", justify="right")
        table.add_column("looks", justify="right")
        table.add_column("candidate")
        for line in ranked(self._board)[:SHOWN]:
            table.add_row(f"{line.speedup:.3f}", str(line.looks), line.title)
        return table


@dataclass(frozen=True)
class Rank:
    """A candidate with its speedup so far, which is no result: the best of many was lucky too."""

    number: int
    title: str
    speedup: float
    looks: int

    def __str__(self) -> str:
        return f"{self.speedup:.3f} in {self.looks} look{'' if self.looks == 1 else 's'}: {self.title}"


def ranked(board: Board) -> list[Rank]:
    """The candidates that have been looked at and have not failed, the best first."""
    scores, looks = board.scores(), board.looks()
    best = sorted(scores, key=lambda one: (-scores[one], one))
    return [Rank(one, board.entries[one].title, math.exp(scores[one]), looks[one]) for one in best]
