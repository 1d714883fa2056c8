"""Runs of several profiles whose times are planted."""

from __future__ import annotations

import random

import pytest


@pytest.fixture
def measure_several(cli, simulation, instant, write_profile, run_folder):
    """Measure profiles that take so much longer than the baseline, each with noise of its own, in two minutes.

    ``behaviour`` says, by name, how workers behave besides.
    """

    def plant(factors, behaviour=None):
        paths = []
        for name, factor in {"baseline": 1.0, **factors}.items():
            generator = random.Random(name)
            seconds = [round(factor * generator.lognormvariate(0, 0.06), 4) for _ in range(97)]
            simulation.worker(name, seconds=seconds, **(behaviour or {}).get(name, {}))
            paths += [write_profile(name, f"env: {{SIMULATED: {name}}}\n")] if name in factors else []

        def run(*options, length=("--budget", "120s")):
            fixed = ["--python", simulation.python, "--data", "synthetic", "--seed", 7, "--steps", 3]
            return cli("bench", *paths, *fixed, *length, "--output", run_folder, *options)

        return run

    return plant
