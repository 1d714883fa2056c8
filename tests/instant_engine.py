"""An engine whose workers are not started at all: for what depends on how long workers take, and for long runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from envkit import engines
from envkit.engines import turns
from envkit.engines.base import Engine, EngineOptions, Launch, Outcome
from envkit.engines.local import LocalEngine
from envkit.engines.messages import ExitStatus
from envkit.messages import from_json
from envkit.worker.request import Inspect, WorkerRequest

from tests.simulated_worker import answer, log_start, name_of
from tests.simulation import Simulation


@dataclass
class Answered:
    """A worker of an InstantEngine."""

    engine: InstantEngine
    launch: Launch

    def has_ended(self) -> bool:
        return True

    def is_ready(self, wait_s: float) -> bool:
        return True

    def give_turn(self) -> None:
        pass

    def wait(self) -> Outcome:
        return self.engine.run(self.launch)

    def end(self) -> None:
        pass


def replace_engine(monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[EngineOptions], Engine]) -> None:
    """Have ``--engine NAME`` choose what ``make`` returns, in this test. Workers take the time that their engine says.

    The time in which they wait for their turn is that of this process, which a busy machine makes seconds long. So the
    clock of turns stands still, unless the engine is the real one.
    """
    clock = time if make is LocalEngine else SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(turns, "time", clock)
    monkeypatch.setitem(engines.ENGINES, name, replace(engines.ENGINES[name], make=make))


def answer_inspections(monkeypatch: pytest.MonkeyPatch, simulation: Simulation) -> None:
    """Have this process answer when the local engine looks into the simulation's interpreter.

    Nearly every command does that first, and to start a process for it takes as long as all else in a short test.
    Workers that measure are started, and an interpreter that is to fail.
    """
    start = LocalEngine.run

    def run(engine: LocalEngine, launch: Launch) -> Outcome:
        config = simulation.config("inspect")
        if not isinstance(launch.work, Inspect) or engine.describe()["image"] != str(simulation.python) or not config:
            return start(engine, launch)
        assert launch.request is not None
        work, environment = launch.request.to_json()["work"], {**launch.inherited, **launch.variables}
        nth = log_start(simulation.folder / "starts.jsonl", "inspect", work, environment)
        return Outcome(json.dumps(answer("inspect", work, config, nth, environment)), "", 0.02, None)

    monkeypatch.setattr(LocalEngine, "run", run)


class InstantEngine:
    """Answers at once as the simulation's workers would, and says that each took exactly ``takes_s`` seconds.

    Of what workers can do wrong there are ``exit``, ``problem`` and ``print``, and ``interrupt``: Ctrl-C while it runs.
    """

    name = "local"
    options = frozenset({"python"})

    def __init__(self, simulation: Simulation) -> None:
        self._folder = simulation.folder
        self.given = EngineOptions()
        self.takes_s = 1.0
        self._slower: tuple[int, float] | None = None
        self._runs = 0

    def __call__(self, options: EngineOptions) -> InstantEngine:
        """What the registry of engines does to get one."""
        return self

    def slower_after(self, workers: int, factor: float) -> None:
        """Have all workers after so many take ``factor`` times as long."""
        self._slower = (self._runs + workers, factor)

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "version": "6.1", "image": "/sim/bin/python"}

    def command(self, launch: Launch) -> list[str]:
        return ["env", "-i", *(f"{name}={value}" for name, value in launch.variables.items()), "worker", "-"]

    def request(self, launch: Launch) -> WorkerRequest | None:
        return launch.request

    def start(self, launch: Launch) -> Answered:
        """A worker that was started ahead is not waited for: it answers when its turn comes."""
        return Answered(self, replace(launch, ahead=False))

    def run(self, launch: Launch) -> Outcome:
        self._runs += 1
        if self._slower is not None and self._runs > self._slower[0]:
            self.takes_s *= self._slower[1]
            self._slower = None
        config = json.loads((self._folder / "config.json").read_text())
        assert launch.request is not None
        work, environment = launch.request.to_json()["work"], {**launch.inherited, **launch.variables}
        name = name_of(work, environment)
        nth = log_start(self._folder / "starts.jsonl", name, work, environment)
        behaviour = config["workers"].get(name, {})
        if "does" in behaviour and nth >= behaviour.get("from", 0):
            said = behaviour.get("stderr", "")
            match behaviour["does"]:
                case "interrupt":
                    raise KeyboardInterrupt
                case "exit":
                    return Outcome("", said, self.takes_s, ExitStatus(behaviour["status"]))
                case "problem":
                    failure = from_json(behaviour["failure"]) if "failure" in behaviour else ExitStatus(1)
                    return Outcome(behaviour["text"], said, self.takes_s, failure)
                case "print":
                    return Outcome(behaviour["text"], said, self.takes_s, None)
        return Outcome(json.dumps(answer(name, work, config, nth, environment)), "", self.takes_s, None)
