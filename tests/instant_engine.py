"""An engine whose workers are not started at all: for what depends on how long workers take, and for long runs."""

from __future__ import annotations

import json
from typing import Any

from runner.engines.base import EngineOptions, Outcome, Task
from tests.simulated_worker import answer, log_start, name_of
from tests.simulation import Simulation


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

    def __call__(self, options: EngineOptions) -> InstantEngine:
        """What the registry of engines does to get one."""
        return self

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "version": "6.1", "image": "/sim/bin/python"}

    def command(self, task: Task) -> list[str]:
        return ["env", "-i", *(f"{name}={value}" for name, value in task.variables.items()), *task.arguments]

    def run(self, task: Task) -> Outcome:
        config = json.loads((self._folder / "config.json").read_text())
        arguments, environment = list(task.arguments), {**task.inherited, **task.variables}
        name = name_of(arguments, environment)
        nth = log_start(self._folder / "starts.jsonl", name, arguments, environment)
        behaviour = config["workers"].get(name, {})
        if "does" in behaviour and nth >= behaviour.get("from", 0):
            said = behaviour.get("stderr", "")
            match behaviour["does"]:
                case "interrupt":
                    raise KeyboardInterrupt
                case "exit":
                    return Outcome("", said, self.takes_s, f"ended with exit status {behaviour['status']}")
                case "problem":
                    failure = behaviour.get("failure", "ended with exit status 1")
                    return Outcome(behaviour["text"], said, self.takes_s, failure)
                case "print":
                    return Outcome(behaviour["text"], said, self.takes_s, None)
        return Outcome(json.dumps(answer(name, arguments, config, nth, environment)), "", self.takes_s, None)
