"""Who else searches the same space: nobody, or other nodes, with which a search shares its candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from envkit.tuning.space import Choice, Space
from envkit.tuning.trial_store import TrialStore


class Peers(Protocol):
    """``nodes`` is how many search, this one among them."""

    @property
    def nodes(self) -> int: ...

    def rejoin(self, store: TrialStore, space: Space) -> Sequence[int]:
        """Begin, or go on after an interruption, with what others have found.

        ``space`` is what can be chosen from here. Return the numbers of the candidates that this node is to measure,
        which its record need not have.
        """
        ...

    def take_in(self, store: TrialStore) -> Mapping[str, int]:
        """Put into ``store`` what others have found since; return the numbers of all candidates by their identity."""
        ...

    def claim(self, store: TrialStore, key: str, choice: Choice | None, shipped: str | None, title: str) -> int | None:
        """The number of a new candidate, which this node then measures; None where another was faster."""
        ...

    def is_own(self, number: int) -> bool:
        """Whether it is this node that gives a candidate the trials that it lacks."""
        ...

    def promote(self, rungs: Mapping[int, int]) -> None:
        """Say that this node gives these candidates the trials of their next rungs."""
        ...

    def tell(self, store: TrialStore) -> None:
        """Say what was measured here so far: what holds no longer is taken back."""
        ...


class Alone:
    """One node has all to itself, and counts its candidates."""

    nodes = 1

    def rejoin(self, store: TrialStore, space: Space) -> Sequence[int]:
        return ()

    def take_in(self, store: TrialStore) -> Mapping[str, int]:
        return {}

    def claim(self, store: TrialStore, key: str, choice: Choice | None, shipped: str | None, title: str) -> int | None:
        return len(store.entries)

    def is_own(self, number: int) -> bool:
        return True

    def promote(self, rungs: Mapping[int, int]) -> None:
        pass

    def tell(self, store: TrialStore) -> None:
        pass
