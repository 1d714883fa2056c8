"""The shipped profiles that compete beside a space's candidates, and the order in which they are tried.

A trial of the baseline shows where a training's time goes. The profiles of which most is expected by it come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.advice.expected import expected
from envkit.advice.symptoms import of_sample
from envkit.bench.study import REFERENCE_PROFILE
from envkit.common.errors import InputError
from envkit.engines.measurement import Measurement
from envkit.profiles import profile
from envkit.profiles.inspection import Inspection
from envkit.tuning.narrow import LeftOut, NotTried, differs, require, why
from envkit.tuning.search import Candidate


def shipped(
    folder: Path,
    inspection: Inspection,
    numerics: str,
    first: Sequence[str],
    not_tried: NotTried = lambda ranks: None,
) -> tuple[list[Candidate], list[LeftOut]]:
    """The profiles in ``folder`` that can have an effect here, and those that can't, with the reason.

    They are in the order in which to try them if no more is known: a short budget has no room for all.
    """
    candidates: list[Candidate] = []
    left_out = []
    for name in profile.names(folder):
        if name == REFERENCE_PROFILE:
            continue
        loaded = profile.load(name, folder)
        reason = not_tried(loaded.ranks)
        if reason is None:
            try:
                environment = require(loaded, inspection)
                reason = differs(loaded.numerics, numerics)
            except InputError as error:
                reason = why(error)
        if reason is None:
            candidates.append(Candidate(loaded, environment))
        else:
            left_out.append(LeftOut(f"profile {name}", reason))
    return in_order(candidates, first), left_out


def in_order(shipped: Sequence[Candidate], first: Sequence[str]) -> list[Candidate]:
    """Return those named in ``first``, then those that set more."""
    place = {name: number for number, name in enumerate(first)}

    def rank(candidate: Candidate) -> tuple[int, int, str]:
        return (
            place.get(candidate.profile.name, len(place)),
            -len(candidate.environment.variables),
            candidate.profile.name,
        )

    return sorted(shipped, key=rank)


def gains(trial: Measurement, shipped: Sequence[Candidate]) -> dict[str, float]:
    """By how many times each profile is expected to make the training of a trial as fast, the most first.

    Profiles of which nothing is known are not in it. On a GPU that is all: nothing was learnt there.
    """
    if trial.evidence.get("gpu"):
        return {}
    expectations = expected(of_sample(trial), [candidate.profile.name for candidate in shipped])
    return {gain.profile: round(gain.gain, 4) for gain in expectations}


def by_gain(shipped: Sequence[Candidate], expected: Mapping[str, float]) -> list[Candidate]:
    """Return those with the most expected of them first; all others after them, in the order in which they were."""
    names = sorted(expected, key=lambda name: -expected[name])
    place = {name: number for number, name in enumerate(names)}
    return sorted(shipped, key=lambda candidate: place.get(candidate.profile.name, len(place)))
