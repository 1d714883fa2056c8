"""Predict the gain of a profile from a training's symptoms: fitted to a gallery of trainings.

The coefficients, and what they were fitted to, are in ``expected.json``, which ``benchmarks/advice.py`` writes. A fit
is linear: the logarithm of the speedup is an intercept and a coefficient for each feature (``symptoms.FEATURES``).
Around it is a range in which 70% of the truths lie, by what a fit without a training says of that training
(docs/advise.md).
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.advice import machine
from envkit.advice.symptoms import FEATURES, Symptoms
from envkit.common import codec
from envkit.profiles.inspection import Inspection

FILE = Path(__file__).with_suffix(".json")
# What is expected must be as much above 1 before a profile is worth trying.
LEAST_GAIN = 0.03


@dataclass(frozen=True)
class Expected:
    """How many times as fast a training is expected to be under a profile; ``low`` and ``high`` hold 70% of truths."""

    profile: str
    gain: float
    low: float
    high: float

    @property
    def cautious(self) -> float:
        """The gain less half of the doubt: of many noisy ones the first was lucky too, the noisier the more."""
        return math.sqrt(self.gain * self.low)

    @property
    def is_worth_trying(self) -> bool:
        return self.gain >= 1 + LEAST_GAIN


@dataclass(frozen=True)
class Fit:
    """The logarithm of a profile's gain: ``intercept``, and a coefficient for each feature; +- ``half_width``."""

    coefficients: Mapping[str, float]  # by the feature's name
    intercept: float
    half_width: float

    def of(self, values: Mapping[str, float | None]) -> float | None:
        """The logarithm of the gain; None where a feature was not seen."""
        total = self.intercept
        for name, coefficient in self.coefficients.items():
            value = values.get(name)
            if value is None:
                return None
            total += coefficient * value
        return total


@dataclass(frozen=True)
class Fitted:
    """All fits, and what they come from. A profile's fits are in an order: the first that can be used is the best."""

    machines: Sequence[str]
    measured: str
    trainings: Sequence[str]
    fits: Mapping[str, Sequence[Fit]]  # by profile

    @property
    def machine(self) -> str:
        """The machines in one line."""
        return "; ".join(self.machines)

    @property
    def features(self) -> set[str]:
        """The names of all features that a fit uses."""
        return {name for fits in self.fits.values() for fit in fits for name in fit.coefficients}

    @staticmethod
    def from_json(document: Mapping[str, object]) -> Fitted:
        return codec.parse(document, Fitted)


@functools.cache
def fitted() -> Fitted:
    """Return what the kit has."""
    return Fitted.from_json(json.loads(FILE.read_text()))


def features(symptoms: Symptoms) -> dict[str, float | None]:
    """Each feature's value, or None."""
    return {feature.name: feature.value(symptoms) for feature in FEATURES}


def of_machine(inspection: Inspection, by: Fitted | None = None) -> Mapping[str, float | None]:
    """Return the features of a machine. The cost of a page fault takes half a second, so only if a fit uses it."""
    fault_s = machine.page_fault_s() if "fault_us" in (by or fitted()).features else None
    return machine.features(machine.machine_of(inspection), fault_s)


def expected(
    symptoms: Symptoms,
    profiles: Iterable[str],
    by: Fitted | None = None,
    here: Mapping[str, float | None] | None = None,
) -> list[Expected]:
    """Return what is expected of each profile, the most first with caution; skip those not measured on the gallery.

    ``here`` has the features of the machine (``of_machine``); fits that use them are left out without it.
    """
    fits, values = (by or fitted()).fits, {**features(symptoms), **(here or {})}
    gains = []
    for profile in profiles:
        logarithms = ((fit.of(values), fit.half_width) for fit in fits.get(profile, ()))
        first = next(((value, half) for value, half in logarithms if value is not None), None)
        if first is not None:
            value, half = first
            gains.append(Expected(profile, *map(math.exp, (value, value - half, value + half))))
    return sorted(gains, key=lambda gain: -gain.cautious)
