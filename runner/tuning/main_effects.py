"""What each label of each knob is worth by itself: a sum of main effects, fitted to the candidates that were looked at.

Ridge regression on one column per label, whose penalty is chosen by generalised cross-validation: so many labels share
so few candidates that plain least squares would follow the noise.

References:
  A. E. Hoerl, R. W. Kennard: Ridge regression. Technometrics 12 (1970).
  G. H. Golub, M. Heath, G. Wahba: Generalized cross-validation as a method for choosing a good ridge parameter.
    Technometrics 21 (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.tuning.space import Choice, Space

# Penalties that are tried; columns are 0 and 1.
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class Columns:
    """Which column stands for which label; a knob that does not count has none of its labels."""

    of: dict[tuple[str, str], int]

    @staticmethod
    def of_choices(space: Space, choices: Sequence[Choice]) -> Columns:
        """A column for each label that some of the choices have, but for knobs that all agree on.

        A knob that counts with some labels of others only is held against its first label: a column for that too
        would say no more than those of the others.
        """
        found: list[tuple[str, str]] = []
        for knob in space.knobs:
            labels = [label for label in knob.labels if any(one.get(knob.name) == label for one in choices)]
            if len(labels) > 1:
                found += [(knob.name, label) for label in (labels[1:] if knob.when else labels)]
        return Columns({pair: number for number, pair in enumerate(found)})

    @property
    def knobs(self) -> dict[str, list[int]]:
        """The columns of each knob."""
        found: dict[str, list[int]] = {}
        for (knob, _), number in self.of.items():
            found.setdefault(knob, []).append(number)
        return found

    def matrix(self, choices: Sequence[Choice]) -> Any:
        import numpy

        rows = numpy.zeros((len(choices), len(self.of)))
        for row, choice in enumerate(choices):
            for pair in choice.items():
                if pair in self.of:
                    rows[row, self.of[pair]] = 1.0
        return rows


@dataclass(frozen=True)
class Effects:
    """``weights`` by column; ``middle`` is the columns' means, at which the prediction is ``mean``."""

    weights: Any
    middle: Any
    mean: float

    def predict(self, rows: Any) -> Any:
        return self.mean + (rows - self.middle) @ self.weights


def fit(rows: Any, values: Any, penalty: float | None = None) -> tuple[Effects, float]:
    """The effects and the penalty that was chosen, unless it is given."""
    import numpy

    middle, mean = rows.mean(axis=0), float(values.mean())
    centred, rest = rows - middle, values - mean
    alike = centred @ centred.T  # there are fewer candidates than columns
    if penalty is None:
        size, turned = numpy.linalg.eigh(alike)
        along = turned.T @ rest
        penalty = min(PENALTIES, key=lambda one: _cross_validation(numpy.clip(size, 0, None), along, one))
    weights = centred.T @ numpy.linalg.solve(alike + penalty * numpy.eye(len(values)), rest)
    return Effects(weights, middle, mean), penalty


def over_first(
    space: Space, choices: Sequence[Choice], scores: Sequence[float]
) -> dict[tuple[str, str], tuple[float, float]]:
    """By knob and label, how much higher the score is than with the knob's first label, and the standard error of that.

    The error is that of ridge regression with the penalty taken as given (Hoerl and Kennard, equation 4.4).
    """
    import numpy

    columns, values = Columns.of_choices(space, choices), numpy.asarray(scores, dtype=float)
    rows = columns.matrix(choices)
    effects, penalty = fit(rows, values)
    centred = rows - effects.middle
    squares = centred.T @ centred
    shrunk = numpy.linalg.inv(squares + penalty * numpy.eye(len(squares)))
    freedom = len(values) - 1 - float(numpy.trace(shrunk @ squares))
    residual = float(((values - effects.predict(rows)) ** 2).sum()) / max(freedom, 1.0)
    covariance = residual * shrunk @ squares @ shrunk
    first = {knob.name: columns.of.get((knob.name, next(iter(knob.labels)))) for knob in space.knobs}
    found = {}
    for (knob, label), column in columns.of.items():
        contrast = numpy.zeros(len(squares))
        contrast[column] += 1.0
        at = first[knob]
        if at is not None:
            contrast[at] -= 1.0
        variance = float(contrast @ covariance @ contrast)
        found[knob, label] = float(contrast @ effects.weights), max(0.0, variance) ** 0.5
    return found


def _cross_validation(size: Any, along: Any, penalty: float) -> float:
    """Golub, Heath and Wahba's V: the mean squared residual over the squared share of freedom that is left.

    ``size`` are the eigenvalues of the candidates' products with each other, ``along`` the values in their directions.
    """
    kept = size / (size + penalty)
    residual = float((((1 - kept) * along) ** 2).sum())
    freedom = 1 - (1 + float(kept.sum())) / len(along)
    return residual / len(along) / max(freedom, 1e-6) ** 2
