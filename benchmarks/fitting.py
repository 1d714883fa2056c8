"""Fit what profiles gain to what is seen of trainings, and judge the fits by trainings that taught them nothing.

A fit of one profile is a ridge regression of the logarithm of the gain on a few features: with as few trainings as
there are, coefficients are held back by as much as predicts best when each training in turn is left out. The features
of a fit are chosen in the same way. A range is as wide as 70% of the errors that are made of trainings left out.

References:
  A. E. Hoerl, R. W. Kennard: Ridge regression: biased estimation for nonorthogonal problems. Technometrics 12 (1970).
  M. Stone: Cross-validatory choice and assessment of statistical predictions. J. R. Statistical Society B 36 (1974).
  R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani: Predictive inference with the jackknife+. Annals of
    Statistics 49 (2021).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envkit.advice.expected import Fit

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
WITHIN = 0.70
# What is seen from outside, and what the worker and the profiler see besides. Of each the choices.
OUTSIDE: tuple[tuple[str, ...], ...] = ((), ("kernel",))
WATCHED = (*OUTSIDE, ("kernel", "matrix"), ("kernel", "matrix", "small"), ("kernel", "matrix", "outside"))
# By what is known of a training, the most first.
KNOWN = {"by its steps": WATCHED, "from outside": OUTSIDE}
# What is known of a machine (``advice.machine.features``); of each fit at most one, as there are few machines. MKL's
# code path is not among them: the feature "matrix" is 0 where MKL takes the processor's own code.
MACHINE_TERMS = ("intel", "shared_cores", "fault_us")

Features = Mapping[str, float | None]  # a training's features


@dataclass(frozen=True)
class Ridge:
    """Coefficients of standardised features."""

    names: tuple[str, ...]
    means: NDArray[float64]
    scales: NDArray[float64]
    coefficients: NDArray[float64]
    intercept: float

    def predict(self, features: Features) -> float:
        import numpy

        values = numpy.array([features[name] for name in self.names], dtype=float)
        return float(self.intercept + ((values - self.means) / self.scales) @ self.coefficients)


def ridge(names: tuple[str, ...], penalty: float, trainings: Sequence[Features], gains: Sequence[float]) -> Ridge:
    """Fit ``gains``, logarithms, one for each of the ``trainings``."""
    import numpy

    matrix = numpy.array([[features[name] for name in names] for features in trainings], dtype=float).reshape(
        len(trainings), len(names)
    )
    means, scales = matrix.mean(axis=0), matrix.std(axis=0)
    scales[scales == 0] = 1.0
    standard = (matrix - means) / scales
    target = numpy.asarray(gains, dtype=float)
    inner = standard.T @ standard + penalty * numpy.eye(len(names))
    coefficients = numpy.linalg.solve(inner, standard.T @ (target - target.mean())) if names else numpy.zeros(0)
    return Ridge(names, means, scales, coefficients, float(target.mean()))


def errors(
    names: tuple[str, ...],
    penalty: float,
    trainings: Sequence[Features],
    gains: Sequence[float],
    groups: Sequence[str] = (),
) -> list[float]:
    """Return the error in each training of a fit without it, and without others of its group.

    ``groups`` names the training of each, if some are the same training on several machines.
    """
    residuals = []
    for held_out in range(len(trainings)):
        others = [place for place in range(len(trainings)) if place != held_out]
        others = [place for place in others if not groups or groups[place] != groups[held_out]]
        made = ridge(names, penalty, [trainings[place] for place in others], [gains[place] for place in others])
        residuals.append(gains[held_out] - made.predict(trainings[held_out]))
    return residuals


def best(
    choices: Sequence[tuple[str, ...]],
    trainings: Sequence[Features],
    gains: Sequence[float],
    groups: Sequence[str] = (),
) -> tuple[Ridge, float]:
    """Return the fit with the smallest errors, and half the width of its range; ``groups`` is as for ``errors``.

    A choice with a feature that was not seen of all trainings is left out.
    """
    usable = [names for names in choices if all(features[name] is not None for features in trainings for name in names)]
    tried = [(names, penalty) for names in usable for penalty in (PENALTIES if names else PENALTIES[:1])]
    errors_of = {choice: errors(*choice, trainings, gains, groups) for choice in tried}
    names, penalty = min(tried, key=lambda choice: sum(error**2 for error in errors_of[choice]))
    return ridge(names, penalty, trainings, gains), half_width(errors_of[names, penalty])


def half_width(residuals: Sequence[float]) -> float:
    """Return the half width within which 70% of trainings to come lie: the error at place 0.7 (n + 1) of n."""
    place = min(len(residuals), math.ceil(WITHIN * (len(residuals) + 1)))
    return sorted(map(abs, residuals))[place - 1]


def with_machine(choices: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return the choices, and each of them with a term of the machine besides; those come last."""
    return (*choices, *((*names, term) for term in MACHINE_TERMS for names in choices))


def as_fit(made: Ridge, half: float) -> Fit:
    """Return the same fit for features that are not standardised."""
    coefficients = {
        name: round(float(value), 6) for name, value in zip(made.names, made.coefficients / made.scales, strict=True)
    }
    intercept = made.intercept - float((made.means / made.scales) @ made.coefficients) if made.names else made.intercept
    return Fit(coefficients, round(intercept, 6), round(half, 6))
