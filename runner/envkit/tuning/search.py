"""Search: choose the next round of trials by what is known so far, and run it.

A round is one trial of the baseline and of each of several candidates, in random order, so that what disturbs the
machine disturbs them alike. Candidates have one trial at first, and the better third of them gets more; at the end a
few are tried side by side until the search's share of the time is used up.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import Protocol

from envkit.common.errors import InputError
from envkit.profiles.environment import Environment
from envkit.profiles.profile import Profile
from envkit.stats.interval import log_ratios
from envkit.tuning import events
from envkit.tuning.events import Append, Event
from envkit.tuning.main_effects import over_first, predictor
from envkit.tuning.messages import CandidateGone
from envkit.tuning.narrow import identity
from envkit.tuning.proposals import RUNGS, STARTUP, all_choices, promoted, propose
from envkit.tuning.shared_trials import Alone, Peers
from envkit.tuning.space import Choice, Space, allowed, choices, nearest, profile
from envkit.tuning.trial_store import BASELINE, TrialStore

# Shares of the time budget; what is left is for the confirmation.
EXPLORING, FINALS = 0.45, 0.20
# The same of each of several nodes: of one another they have the finals and the confirmation sooner.
EXPLORING_TOGETHER, FINALS_TOGETHER = 0.60, 0.15
# Candidates in a round, beside the baseline: fewer would mean more trials of the baseline, more would learn later.
ROUND = 6
FINALISTS = 3
# At most: the best shipped one, the one of which most is expected, and the best one without what does nothing.
MORE_FINALISTS = 3
# A level that is worth less than this over its parameter's first one counts as worth nothing. And of the finalists that
# are so near the best one, or within one standard error of it, that with the fewest settings is chosen: what does
# nothing is not to be in a profile (the rule of one standard error: L. Breiman, J. Friedman, R. Olshen, C. Stone:
# Classification and regression trees, 1984, section 3.4.3).
NEGLIGIBLE = math.log(1.01)
SIGNIFICANT_ERRORS = 2.0  # standard errors by which an effect is above 0
# Rounds of the finals: so many at least, whatever the time, and at most.
LEAST_FINALS, MOST_FINALS = 3, 12
# Where so many candidates failed and none did not, the search is given up.
MOST_FAILURES = 18
# What a round is for, as records name it: trials that candidates still lack, the finals, or one trial of everything.
TRIALS, FINAL, GRID = "trials", "finals", "grid"


@dataclass(frozen=True)
class Candidate:
    """Something that can be measured: a profile and what it comes to here."""

    profile: Profile
    environment: Environment


class RunTrial(Protocol):
    """Run a trial of a candidate (or of the baseline, by its number) in a round; return the event of it."""

    def __call__(self, in_round: int, number: int, environment: Environment) -> Event: ...


@dataclass
class Search:
    """``candidates`` has those of the store, by number."""

    space: Space
    baseline: Candidate
    shipped: Sequence[Candidate]  # compete beside those of the space
    resolve: Callable[[Profile], Environment]  # raises InputError for a profile that can't apply
    store: TrialStore
    append: Append
    budget_s: float  # the whole budget, in seconds of workers
    seed: int | str
    blocks: int = 0  # above 0: each candidate of the space is measured so often, and nothing is searched
    # How many seconds at least to leave for the confirmation, given those that a trial of its dearest arm may take.
    reserve: Callable[[float], float] = lambda dearest_s: 0.0
    peers: Peers = field(default_factory=Alone)

    def __post_init__(self) -> None:
        self.candidates: dict[int, Candidate] = {}
        self._exhausted = False  # whether all choices of the space are candidates
        self._taken = {identity(self.baseline.environment): BASELINE}
        shipped = {candidate.profile.name: candidate for candidate in self.shipped}
        for entry in self.store.entries.values():  # of an interrupted search
            made = shipped[entry.shipped] if entry.shipped is not None else self._made(entry.choice or {})
            if made is None:
                raise InputError(CandidateGone(str(self.space.path), entry.number, entry.title))
            self._taken[identity(made.environment)] = entry.number
            self.candidates[entry.number] = made

    def run(self, trial: RunTrial, after_round: Callable[[str], None] = lambda stage: None) -> None:
        """Measure until the search's share of the budget is used up, or there is nothing left to measure."""
        self.finish_round(trial)
        while (stage := self.begin_round()) is not None:
            self.finish_round(trial)
            after_round(stage)

    def begin_round(self) -> str | None:
        """Choose the candidates of the next round; what it is for, or None at the end."""
        self._take_in()
        step = self.next_round()
        if step is None:
            return None
        order, stage = step
        random.Random(f"{self.seed}:{len(self.store.rounds)}").shuffle(order)
        self._record("round", round=len(self.store.rounds), order=order, stage=stage)
        return stage

    def _take_in(self) -> None:
        claimed = self.peers.take_in(self.store)
        self._taken |= {key: number for key, number in claimed.items() if key not in self._taken}

    def finish_round(self, trial: RunTrial) -> None:
        """Run the trials that the last round lacks."""
        while missing := self.store.missing():
            made = self.baseline if missing[0] == BASELINE else self.candidates[missing[0]]
            self.store.add(trial(len(self.store.rounds) - 1, missing[0], made.environment))
        self.peers.tell(self.store)

    def next_round(self) -> tuple[list[int], str] | None:
        """The candidates of the next round, and what it is for; None at the end."""
        if self.blocks:
            return self._grid()
        if not self.store.finalists:
            chosen = self._exploring()
            if chosen:
                return [BASELINE, *chosen], TRIALS
            finalists = self._finalists()
            finalists = [number for number in finalists if self.candidate(number)]
            if not finalists:
                return None
            finalists += self._simpler(finalists)
            self._record("finalists", candidates=finalists)
        return self._finals()

    @property
    def reserve_s(self) -> float:
        """Return the seconds kept to confirm any candidate that seems faster than the baseline."""
        faster = [number for number, score in self.store.scores().items() if score > 0]
        return self.reserve(max(map(self.store.trial_s_of, faster), default=0.0))

    @property
    def share_s(self) -> float:
        """How many seconds the search may take, exploring and finals together."""
        return max(0.0, min(sum(self._shares) * self.budget_s, self.budget_s - self.reserve_s))

    @property
    def least_budget_s(self) -> float:
        """The budget with room for one candidate, the finals and a confirmation, by what trials cost so far."""
        explored_s = self.store.spent_s + 2 * self.store.trial_s
        finals_s = self._finals_s
        searched_s = explored_s + finals_s
        exploring, finals = self._shares
        return max(explored_s / exploring, searched_s / (exploring + finals), searched_s + self.reserve_s)

    @property
    def _shares(self) -> tuple[float, float]:
        """Return the shares of exploring and of the finals."""
        return (EXPLORING, FINALS) if self.peers.nodes == 1 else (EXPLORING_TOGETHER, FINALS_TOGETHER)

    @property
    def _finals_s(self) -> float:
        """Return what the shortest finals take, with the baseline."""
        return self._least_finals * (self._most_finalists + 1) * self.store.trial_s

    @cached_property
    def _most_finalists(self) -> int:
        """The most candidates that the finals can have: a small space makes fewer than there is room for."""
        possible, most = all_choices(self.space), FINALISTS + MORE_FINALISTS
        return most if possible is None else min(most, len(possible) + len(self.shipped))

    @property
    def _least_finals(self) -> int:
        """Rounds of the finals on this node: several nodes have the fewest together."""
        return math.ceil(LEAST_FINALS / self.peers.nodes)

    @property
    def untried(self) -> list[str]:
        """The shipped profiles for which the budget had no room."""
        return [candidate.profile.name for candidate in self.shipped if self._admit(candidate)]

    def best(self, shipped: bool | None = None) -> int | None:
        """The best candidate of the finals, of all or only of those that are shipped (or are not)."""
        scores, trials = self.store.scores(), self.store.trials()
        entries = self.store.entries
        wanted = [number for number in scores if shipped is None or (entries[number].shipped is not None) == shipped]
        most = [number for number in wanted if number in self.store.finalists] or [
            number for number in wanted if trials[number] == max(trials[other] for other in wanted)
        ]
        top = max(most, key=lambda number: (scores[number], -number), default=None)
        if top not in self.store.finalists:
            return top
        near = [number for number in most if number == top or self._is_near(number, top)]
        shipped_ones = [number for number in most if entries[number].shipped is not None]
        by_score = sorted(shipped_ones, key=lambda number: (-scores[number], number))
        worse = by_score[1:]  # than another that is as well known
        near = [number for number in near if number not in worse]
        return min(near, key=lambda number: (self._settings(number), -scores[number], number))

    def _is_near(self, number: int, top: int) -> bool:
        """Return whether what is better about ``top`` is negligible or uncertain, by the rounds that had both.

        Most of these are finals. The trials that brought a candidate there were lucky ones.
        """
        shared = [of_round for of_round in self.store.step_s if number in of_round and top in of_round]
        better = log_ratios([times[number] for times in shared], [times[top] for times in shared])
        if len(better) < LEAST_FINALS:
            return False
        return fmean(better) <= max(NEGLIGIBLE, stdev(better) / math.sqrt(len(better)))

    def _settings(self, number: int) -> int:
        """How many parameters have another level than their first; 0 for a shipped profile, which is known."""
        entry = self.store.entries[number]
        if entry.shipped is not None or entry.choice is None:
            return 0
        first = {parameter.name: next(iter(parameter.levels)) for parameter in self.space.parameters}
        return sum(level != first[name] for name, level in entry.choice.items())

    def _simpler(self, finalists: list[int]) -> list[int]:
        """The best finalist of the space without the levels whose main effect is negligible, if that is new."""
        store = self.store
        of_finalists = (store.entries[number].choice for number in finalists)
        choice = next((choice for choice in of_finalists if choice is not None), None)
        scored = store.scored()
        if choice is None or len(scored) < STARTUP:
            return []
        effects = over_first(self.space, [choice for choice, _ in scored], [score for _, score in scored])
        simpler: Choice = {}
        for parameter in self.space.parameters:
            if parameter.counts(simpler):
                first, level = next(iter(parameter.levels)), choice.get(parameter.name)
                value, error = effects.get((parameter.name, level or first), (0.0, 0.0))
                is_needed = value > max(NEGLIGIBLE, SIGNIFICANT_ERRORS * error)
                simpler[parameter.name] = level if level is not None and is_needed else first
        made = self._made(simpler) if allowed(self.space, simpler) else None
        number = self._add(made, simpler, None) if made is not None and self._admit(made) else None
        return [] if number is None else [number]

    def _record(self, event: str, **fields: object) -> None:
        self.store.add(events.parse(self.append(event, **fields)))

    def _exploring(self) -> list[int]:
        """Candidates for one more trial each: those that still lack some, those that go up, and then new ones."""
        store = self.store
        if not store.alive and len(store.problems) >= MOST_FAILURES:
            return []
        explored_s = min(self._shares[0] * self.budget_s, self.share_s - self._finals_s)
        left_s = explored_s - store.spent_s
        room = ROUND if store.trial_s == 0 else min(ROUND, int(left_s / store.trial_s) - 1)
        if room < 1:
            return []
        trials, scores = store.trials(), store.scores()
        promotions = {
            number: rung for number, rung in promoted(scores, store.rung_of, trials).items() if self.candidate(number)
        }
        if promotions:
            self._record("promoted", rungs={str(number): rung for number, rung in promotions.items()})
            self.peers.promote(promotions)
        unfinished = [
            number
            for number in store.alive
            if trials[number] < RUNGS[store.rung_of[number]] and self.peers.is_own(number)
        ]
        unfinished.sort(key=lambda number: (-store.rung_of[number], -scores.get(number, 0.0), number))
        unfinished = unfinished[:room]
        chosen = unfinished + self._new(room - len(unfinished))
        if not chosen:  # others may just have claimed what this node would have
            self._take_in()
        return chosen or self._of_others(room)

    def _of_others(self, room: int) -> list[int]:
        """Where nothing is left to claim, candidates of other nodes that lack trials still, those with fewest first."""
        trials = self.store.trials()
        unfinished = [
            number for number in self.store.alive if trials[number] < RUNGS[-1] and not self.peers.is_own(number)
        ]
        unfinished = [
            number
            for number in sorted(unfinished, key=lambda number: (trials[number], number))
            if self.candidate(number)
        ]
        return unfinished[:room]

    def _new(self, count: int) -> list[int]:
        """Up to ``count`` candidates that had no trial yet, the shipped ones first."""
        numbers: list[int] = []
        for made in self.shipped:
            if len(numbers) < count and self._admit(made):
                number = self._add(made, self._choice_of(made), made.profile.name)
                numbers += [] if number is None else [number]
        if len(numbers) < count:
            numbers += self._proposed(count - len(numbers))
        return numbers

    def _proposed(self, count: int) -> list[int]:
        if self._exhausted:
            return []
        made: dict[str, Candidate] = {}

        def admit(choice: Choice) -> bool:
            candidate = self._made(choice)
            if candidate is None or not self._admit(candidate) or identity(candidate.environment) in made:
                return False
            made[identity(candidate.environment)] = candidate
            return True

        store = self.store
        # another stream of chance for each round, and the same one for the same round
        seed = random.Random(f"{self.seed}:propose:{len(store.rounds)}").randrange(2**31)
        proposed = propose(self.space, store.known(), admit, count, seed)
        # in a large space chance may find something yet
        self._exhausted = len(proposed) < count and all_choices(self.space) is not None
        numbers = [
            self._add(candidate, choice, None) for candidate, choice in zip(made.values(), proposed, strict=True)
        ]
        return [number for number in numbers if number is not None]

    def _finalists(self) -> list[int]:
        """The best few of those with the most trials, the best shipped one, and the one of which most is expected."""
        scores, rung_of = self.store.scores(), self.store.rung_of
        ranked = sorted(scores, key=lambda number: (-min(rung_of[number], 1), -scores[number], number))
        finalists = ranked[:FINALISTS]
        shipped = [number for number in ranked if self.store.entries[number].shipped is not None]
        more = shipped[:1] + self._expected_best(scores)
        return finalists + [number for number in dict.fromkeys(more) if number not in finalists]

    def _expected_best(self, scores: Mapping[int, float]) -> list[int]:
        """The candidate of which main effects expect most: of many, those that scored best were lucky."""
        choices = {number: choice for number in scores if (choice := self.store.entries[number].choice) is not None}
        if len(choices) < STARTUP:
            return []
        predicted = predictor(self.space, [(choice, scores[number]) for number, choice in choices.items()])
        expected = predicted(list(choices.values()))
        return [list(choices)[int(expected.argmax())]]

    def _finals(self) -> tuple[list[int], str] | None:
        store = self.store
        alive = [number for number in store.finalists if number not in store.problems]
        done = len(store.rounds) - store.finals_from
        cost = store.trial_s * (len(alive) + 1)
        over = store.spent_s + cost > self.share_s
        # where there is but one, nothing is left to choose, and the confirmation measures it
        if len(alive) < 2 or done >= MOST_FINALS or (over and done >= self._least_finals):
            return None
        return [BASELINE, *alive], FINAL

    def _grid(self) -> tuple[list[int], str] | None:
        if not self.store.rounds:  # a kill may have left only some of them numbered
            for choice in choices(self.space):
                made = self._made(choice)
                if made is not None and self._admit(made):
                    self._add(made, choice, None)
        alive = self.store.alive
        if len(self.store.rounds) >= self.blocks or not alive:
            return None
        return [BASELINE, *alive], GRID

    def _choice_of(self, shipped: Candidate) -> Choice | None:
        """The choice that comes to a shipped profile, if there is one: the search then learns from its trials."""
        choice = nearest(self.space, shipped.profile)
        made = self._made(choice) if choice is not None and allowed(self.space, choice) else None
        return choice if made is not None and identity(made.environment) == identity(shipped.environment) else None

    def _made(self, choice: Choice) -> Candidate | None:
        """The candidate of a choice; None where its settings contradict each other or can't apply."""
        made = profile(self.space, choice, "candidate")
        if made is None:
            return None
        try:
            return Candidate(made, self.resolve(made))
        except InputError:
            return None

    def _admit(self, made: Candidate) -> bool:
        """Return whether it is neither the baseline nor another candidate under another name."""
        return identity(made.environment) not in self._taken

    def candidate(self, number: int) -> Candidate | None:
        """A candidate, which another node may have claimed; None where it can't be measured here."""
        if number not in self.candidates:
            entry = self.store.entries[number]
            shipped = {candidate.profile.name: candidate for candidate in self.shipped}
            made = shipped.get(entry.shipped) if entry.shipped is not None else self._made(entry.choice or {})
            if made is None:
                return None
            self._keep(number, made, entry.choice, entry.shipped)
        return self.candidates[number]

    def _add(self, made: Candidate, choice: Choice | None, shipped: str | None) -> int | None:
        """The number of a new candidate; None where another node has just claimed the same one."""
        key = identity(made.environment)
        number = self.peers.claim(self.store, key, choice, shipped, shipped or made.profile.title)
        if number is not None:
            self._taken[key] = number
            self._keep(number, made, choice, shipped)
        return number

    def _keep(self, number: int, made: Candidate, choice: Choice | None, shipped: str | None) -> None:
        self.candidates[number] = made
        title = shipped or made.profile.title
        environment = made.environment.to_json()
        self._record("candidate", number=number, choice=choice, shipped=shipped, title=title, environment=environment)
