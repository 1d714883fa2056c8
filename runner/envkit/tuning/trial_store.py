"""The knowledge of a search: its candidates, the results of trials, and failures. Rebuilt from the record's events."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean

from envkit.bench.events import Resume
from envkit.checks.interference import interference_in
from envkit.messages import Message, from_json
from envkit.profiles.environment import Environment
from envkit.stats.interval import middle_of
from envkit.tuning.events import End, Event, Failure, Finalists, NewCandidate, Promotion, Round, Trial, WarmUp
from envkit.tuning.narrow import identity
from envkit.tuning.space import Choice

BASELINE = -1  # stands for the baseline where other numbers stand for candidates
# Events before a round, and those with which a tuning ends and goes on.
PREPARING = (NewCandidate, Promotion, End, Resume)


def disturbed(trial: Trial | WarmUp) -> list[Message]:
    """Return what disturbed a trial from outside."""
    return interference_in(trial.usage, trial.seconds)


@dataclass(frozen=True)
class Entry:
    """A candidate as the record has it: a profile that is ``shipped`` under this name, or a choice in the space."""

    number: int
    choice: Choice | None
    shipped: str | None
    title: str


@dataclass
class TrialStore:
    """The candidates and their trials. Times are means of a trial's steps in seconds, by round and candidate; a
    candidate with a problem has failed.
    """

    entries: dict[int, Entry] = field(default_factory=dict)
    rounds: list[list[int]] = field(default_factory=list)  # the candidates of each, in the order of their trials
    step_s: list[dict[int, float]] = field(default_factory=list)  # by round
    problems: dict[int, Message] = field(default_factory=dict)
    failed_in: dict[int, int] = field(default_factory=dict)  # by candidate, the round of its problem
    rung_of: dict[int, int] = field(default_factory=dict)
    finalists: list[int] = field(default_factory=list)
    finals_from: int = 0  # the first round of the finals
    spent_s: float = 0.0
    trials_s_of: dict[int, list[float]] = field(default_factory=dict)  # of whole workers, warm-ups too, by candidate
    repeat: bool = False  # whether the last round needs one more trial of the baseline
    # Log speedups that other nodes measured, each beside its own baseline, by candidate.
    elsewhere: dict[int, list[float]] = field(default_factory=dict)

    @staticmethod
    def of(events: Iterable[Event]) -> TrialStore:
        """Leave out the candidates of a round that did not begin, as a kill can leave: they will be numbered again."""
        store, events = TrialStore(), list(events)
        settled = [number for number, event in enumerate(events) if not isinstance(event, PREPARING)]
        for event in events[: max(settled, default=-1) + 1]:
            store.add(event)
        return store

    def add(self, event: Event) -> None:
        """Take in an event; one that is not about the search changes only the time that was spent."""
        self.spent_s += event.worker_seconds
        match event:
            case NewCandidate(number=number):
                self.entries[number] = Entry(number, event.choice, event.shipped, event.title)
                self.rung_of.setdefault(number, 0)
            case Round():
                self.rounds.append(event.order)
                self.step_s.append({})
                self.repeat = False
            case Trial():
                self._add_trial(event)
            case WarmUp():
                self.trials_s_of.setdefault(BASELINE, []).append(event.worker_seconds)
            case Failure():
                self._add_failure(event)
            case Promotion():
                self.rung_of |= {int(number): rung for number, rung in event.rungs.items()}
            case Finalists():
                self.finalists, self.finals_from = event.candidates, len(self.rounds)

    def _add_trial(self, trial: Trial) -> None:
        of_round = self.step_s[trial.round]
        if trial.candidate == BASELINE:
            # all others of the round are compared with it; its second trial counts, whatever disturbed that
            self.repeat = BASELINE not in of_round and bool(disturbed(trial))
        of_round[trial.candidate] = fmean(trial.step_s)
        self.trials_s_of.setdefault(trial.candidate, []).append(trial.worker_seconds)

    def _add_failure(self, failure: Failure) -> None:
        if failure.candidate != BASELINE:  # the baseline is tried again when the search goes on
            self.problems.setdefault(failure.candidate, from_json(failure.problem))
            if failure.round is not None:
                self.failed_in.setdefault(failure.candidate, failure.round)
        elif failure.round is not None:
            # where the baseline fails too, those that failed shortly before it need not be at fault: try them again
            for number in [number for number, at in self.failed_in.items() if at >= failure.round - 1]:
                del self.problems[number], self.failed_in[number]

    @property
    def trial_s(self) -> float:
        """Return what one more trial will cost, in seconds of a worker; 0 before the first."""
        return fmean(itertools.chain(*self.trials_s_of.values())) if self.trials_s_of else 0.0

    def trial_s_of(self, number: int) -> float:
        """Return what a trial of a candidate costs on average, in seconds of a worker; of all if it had none here."""
        return fmean(self.trials_s_of[number]) if number in self.trials_s_of else self.trial_s

    @property
    def alive(self) -> list[int]:
        return [number for number in self.entries if number not in self.problems]

    def missing(self) -> list[int]:
        """The candidates of the last round that lack a trial and have not failed, in order; a kill can leave some.

        A baseline that was disturbed from outside is there once more, at the end.
        """
        if not self.rounds:
            return []
        done = self.step_s[-1]
        missing = [number for number in self.rounds[-1] if number not in done and number not in self.problems]
        return [*missing, BASELINE] if self.repeat else missing

    def ratios(self, number: int) -> list[float]:
        """For each round with a trial of both, the log of the baseline's time over the candidate's, on any node."""
        return self.own_ratios(number) + self.elsewhere.get(number, [])

    def own_ratios(self, number: int) -> list[float]:
        """The same of the rounds here."""
        both = [of_round for of_round in self.step_s if BASELINE in of_round and number in of_round]
        return [math.log(of_round[BASELINE] / of_round[number]) for of_round in both]

    def scores(self) -> dict[int, float]:
        """The Hodges-Lehmann estimate of each candidate's log speedup; of those that have one and have not failed."""
        ratios = {number: self.ratios(number) for number in self.alive}
        return {number: _estimate(tuple(sorted(of_number))) for number, of_number in ratios.items() if of_number}

    def known(self) -> list[tuple[Choice, float | None]]:
        """The choices of the space that have a score, and None in its place for those that failed."""
        scores = self.scores()
        judged = [entry for number, entry in self.entries.items() if number in scores or number in self.problems]
        return [(entry.choice, scores.get(entry.number)) for entry in judged if entry.choice is not None]

    def scored(self) -> list[tuple[Choice, float]]:
        """The same without those that failed."""
        return [(choice, score) for choice, score in self.known() if score is not None]

    def trials(self) -> dict[int, int]:
        """The number of rounds with a trial of each candidate and of the baseline."""
        return {number: len(self.ratios(number)) for number in self.entries}


@lru_cache(maxsize=4096)
def _estimate(ratios: tuple[float, ...]) -> float:
    """Return what many nodes measured of many candidates is asked for again and again."""
    return middle_of(ratios)


def merged(records: Sequence[Sequence[Event]]) -> TrialStore:
    """The candidates and trials of these records. Their numbers mean the same in all, but for two that nodes claimed
    at once, which become one; finalists are those that at least half of the nodes with any had.
    """
    together = TrialStore()
    first: dict[str, int] = {}
    names: dict[int, int] = {BASELINE: BASELINE}
    candidates = [event for events in records for event in events if isinstance(event, NewCandidate)]
    for event in sorted(candidates, key=lambda event: event.number):
        key = identity(Environment.from_json(event.environment))
        names[event.number] = first.setdefault(key, event.number)
    finals: Counter[int] = Counter()
    deciding = 0
    for events in records:
        store = TrialStore.of(events)
        offset = len(together.rounds)
        together.entries |= {names[number]: entry for number, entry in store.entries.items() if names[number] == number}
        together.rounds += [[names[number] for number in order] for order in store.rounds]
        together.step_s += [{names[number]: time for number, time in times.items()} for times in store.step_s]
        together.problems |= {names[number]: text for number, text in store.problems.items()}
        together.failed_in |= {names[number]: offset + at for number, at in store.failed_in.items()}
        for number, rung in store.rung_of.items():
            together.rung_of[names[number]] = max(rung, together.rung_of.get(names[number], 0))
        for number, seconds in store.trials_s_of.items():
            together.trials_s_of.setdefault(names[number], []).extend(seconds)
        together.spent_s += store.spent_s
        finals.update({names[number] for number in store.finalists})
        deciding += bool(store.finalists)
    together.finalists = sorted(number for number, times in finals.items() if 2 * times >= deciding)
    return together
