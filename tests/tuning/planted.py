"""Spaces and searches whose truth is known: times are made from planted effects and planted noise, at once."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from envkit.messages import Printed
from envkit.profiles.environment import Environment
from envkit.profiles.profile import Profile
from envkit.tuning import search, space_file
from envkit.tuning.events import Event, parse, parse_all
from envkit.tuning.search import Candidate, Search
from envkit.tuning.space import Choice, Space, profile
from envkit.tuning.trial_store import BASELINE, TrialStore

from tests.records import USAGE

Truth = Callable[[Choice], float]
NOISE = 0.02


def write_space(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\ntitle: A test\n{text}")
    return path


def read_space(folder: Path, text: str) -> Space:
    """The space of these lines behind a name and a title."""
    return space_file.read(write_space(folder, text))


def planted(space: Space, seed: int) -> Truth:
    """The log speedup of each choice: a main effect of each level, and what only the combination has."""
    chance = random.Random(seed)
    effects = {}
    for parameter in space.parameters:
        size = chance.choice([0.02, 0.1, 0.25])
        effects.update({(parameter.name, level): chance.gauss(0, size) for level in parameter.levels})

    def truth(choice: Choice) -> float:
        own = random.Random(f"{seed}:{sorted(choice.items())}").gauss(0, 0.02)
        return sum(effects[pair] for pair in choice.items()) + own

    return truth


def resolve(made: Profile) -> Environment:
    """Without looking at any machine."""
    variables = {**made.env, "PRELOADED": ",".join(made.preload)}
    return Environment(made.name, made.title, variables, {}, made.prefix, {}, made.numerics)


class Planted:
    """One search: ``events`` is its record so far. ``fails`` says of a choice why its trial fails, if it does."""

    def __init__(
        self,
        space: Space,
        truth: Truth,
        trials: float,
        seed: int = 1,
        events: Sequence[dict[str, Any]] = (),
        fails: Callable[[Choice], str | None] = lambda choice: None,
        blocks: int = 0,
        shipped: Sequence[Candidate] = (),
    ) -> None:
        """``trials`` is the search's share of the budget, in trials of one second each."""
        self.events = list(events)
        self._truth, self._fails, self._seed = truth, fails, seed
        # by round: how much slower the first trial of the baseline is, and counters say that something disturbed it
        self.interference: dict[int, float] = {}
        base = profile(space, {}, "baseline")
        assert base is not None
        self.search = Search(
            space=space, baseline=Candidate(base, resolve(base)), shipped=shipped, resolve=resolve,
            store=TrialStore.of(parse_all(self.events)), append=self._append,
            budget_s=trials / (search.EXPLORING + search.FINALS),
            seed=seed, blocks=blocks,
        )  # fmt: skip

    def run(self, stop_after: int | None = None) -> Planted:
        """Search to the end, or until so many trials are recorded: then as a kill would leave it."""
        self._stop_after = stop_after
        with contextlib.suppress(InterruptedError):
            self.search.run(self._trial)
        return self

    def _append(self, event: str, **fields: Any) -> dict[str, Any]:
        self.events.append({"event": event, **fields})
        return self.events[-1]

    def _trial(self, in_round: int, number: int, environment: Environment) -> Event:
        if self._stop_after is not None and len(self.trials) >= self._stop_after:
            raise InterruptedError
        choice = {} if number == BASELINE else self.search.store.entries[number].choice or {}
        where = {"round": in_round, "candidate": number, "worker_seconds": 1.0}
        problem = None if number == BASELINE else self._fails(choice)
        if problem is not None:
            return parse(self._append("failure", **where, problem=Printed(problem).to_json(), stderr=""))
        # the machine's own speed drifts, and each trial has noise, now and then a lot of it
        chance = random.Random(f"{self._seed}:{in_round}:{number}")
        noise = chance.gauss(0, NOISE) * (5 if chance.random() < 0.05 else 1)
        gain = 0.0 if number == BASELINE else self._truth(choice)
        hit = number == BASELINE and in_round in self.interference and not self._tried(in_round)
        noise += self.interference.get(in_round, 0.0) if hit else 0.0
        usage = {**USAGE, "throttle_events": 3 if hit else 0}
        step_s = [math.exp(0.05 * math.sin(in_round) - gain + noise)]
        return parse(self._append("trial", **where, step_s=step_s, seconds=step_s[0], usage=usage))

    def _tried(self, in_round: int) -> bool:
        return any(event["round"] == in_round and event["candidate"] == BASELINE for event in self.trials)

    @property
    def trials(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] in ("trial", "failure")]

    @property
    def best(self) -> Choice:
        number = self.search.best()
        assert number is not None
        return self.search.store.entries[number].choice or {}


def coarse() -> Space:
    return space_file.read(space_file.find("coarse"))
