"""The order in which a search tries the shipped profiles: those first of which the most is expected.

The expectation follows from a trial of the baseline, which shows where a training's time goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envkit.advice.expected import expected
from envkit.advice.symptoms import of_sample
from envkit.engines.measurement import Measurement
from envkit.tuning.search import Candidate


def gains(trial: Measurement, shipped: Sequence[Candidate]) -> dict[str, float]:
    """By how many times each profile is expected to make the training of a trial as fast, the most first.

    Profiles of which nothing is known are not in it. On a GPU that is all: nothing was learnt there.
    """
    if trial.evidence.get("gpu"):
        return {}
    found = expected(of_sample(trial), [one.profile.name for one in shipped])
    return {one.profile: round(one.gain, 4) for one in found}


def by_gain(shipped: Sequence[Candidate], expected: Mapping[str, float]) -> list[Candidate]:
    """Return those with the most expected of them first; all others after them, in the order in which they were."""
    names = sorted(expected, key=lambda name: -expected[name])
    place = {name: number for number, name in enumerate(names)}
    return sorted(shipped, key=lambda one: place.get(one.profile.name, len(place)))
