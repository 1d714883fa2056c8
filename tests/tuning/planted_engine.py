"""Workers whose time depends on what their environment sets, as it is planted: for tunings from the command line."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from envkit.cli import tuning
from envkit.engines.base import Launch, Outcome

from tests.instant_engine import InstantEngine, replace_engine
from tests.simulated_worker import answer, launched, log_start, name_of
from tests.simulation import Simulation

NOISE = 0.01
Variables = Mapping[str, str]
Gain = Callable[[Variables], float]
SMALL_SPACE = """\
name: small
title: A test
parameters:
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000, 5000, 10000]}
  wait: {variable: OMP_WAIT_POLICY, values: [unset, passive]}
  bind: {variable: OMP_DYNAMIC, values: [unset, true]}
"""
# Under this name the gain is told on what a training runs: `` on 2 ranks``, or nothing for one process.
WHERE = "where"


class PlantedEngine(InstantEngine):
    """``gain`` is the log speedup of an environment; ``misbehave`` may raise, or say why a worker fails.

    ``other`` has fields that replace those of a sample's document.
    """

    def __init__(self, simulation: Simulation, gain: Gain) -> None:
        super().__init__(simulation)
        self.gain = gain
        self.misbehave: Callable[[Variables], str | None] = lambda variables: None
        self.other: Callable[[Variables], dict[str, Any]] = lambda variables: {}
        self.trained = 0

    def run(self, launch: Launch) -> Outcome:
        assert launch.request is not None
        work = launch.request.to_json()["work"]
        trained, where = launched(work)
        if trained["kind"] != "train":
            return super().run(launch)
        self.trained += 1
        failure = self.misbehave(launch.variables)
        if failure is not None:
            return Outcome("", "simulated trouble", self.takes_s, failure)
        environment = {**launch.inherited, **launch.variables}
        log_start(self._folder / "starts.jsonl", name_of(work, environment), work, environment)
        padding = len(launch.variables.get("ENVKIT_PADDING", ""))  # another one for each sample
        noise = random.Random(f"{sorted(launch.variables.items())}{padding}").gauss(0, NOISE)
        document = answer("baseline", work, {"workers": {}}, 0, environment)
        seconds = math.exp(noise - self.gain({**launch.variables, WHERE: where}))
        document |= {"seconds": seconds, "step_s": [seconds / 3] * 3, **self.other(launch.variables)}
        return Outcome(json.dumps(document), "", self.takes_s, None)


def planted(monkeypatch: pytest.MonkeyPatch, simulation: Simulation, gain: Gain) -> PlantedEngine:
    """Have such workers in the place of the local engine's."""
    made = PlantedEngine(simulation, gain)
    replace_engine(monkeypatch, "local", made)
    return made


def ship(monkeypatch: pytest.MonkeyPatch, folder: Path, write_profile: Callable[..., Path], **profiles: str) -> Path:
    """Have a baseline and these profiles compete, in the place of the kit's."""
    folder.mkdir()
    for name, settings in {"baseline": "", **profiles}.items():
        write_profile(name, settings, folder=folder)
    monkeypatch.setattr(tuning, "SHIPPED_FOLDER", folder)
    return folder
