"""Estimate what each level of each parameter is worth by itself: fit a sum of main effects to the candidates tried.

Ridge regression on one column per level, whose penalty is chosen by generalised cross-validation: so many levels share
so few candidates that plain least squares would follow the noise.

References:
  A. E. Hoerl, R. W. Kennard: Ridge regression. Technometrics 12 (1970).
  G. H. Golub, M. Heath, G. Wahba: Generalized cross-validation as a method for choosing a good ridge parameter.
    Technometrics 21 (1979).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envkit.tuning.space import Choice, Space

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# Penalties that are tried; columns are 0 and 1.
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class Columns:
    """Which column stands for which level. Of a parameter that does not count, all columns are 0."""

    of: dict[tuple[str, str], int]
    levels: dict[str, list[str]]  # that some choices have, of each parameter that not all agree on

    @staticmethod
    def of_choices(space: Space, choices: Sequence[Choice]) -> Columns:
        """A column for each level.

        Levels of a parameter that counts only with some levels of others are compared with its first level: a column
        for that too would say no more than those of the others.
        """
        pairs: list[tuple[str, str]] = []
        levels: dict[str, list[str]] = {}
        for parameter in space.parameters:
            tried = [
                level for level in parameter.levels if any(choice.get(parameter.name) == level for choice in choices)
            ]
            if len(tried) > 1:
                levels[parameter.name] = tried
                pairs += [(parameter.name, level) for level in (tried[1:] if parameter.when else tried)]
        return Columns({pair: number for number, pair in enumerate(pairs)}, levels)

    @property
    def parameters(self) -> dict[str, list[int]]:
        """The columns of each parameter."""
        return {name: [number for (other, _), number in self.of.items() if other == name] for name in self.levels}

    def matrix(self, choices: Sequence[Choice]) -> NDArray[float64]:
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

    weights: NDArray[float64]
    middle: NDArray[float64]
    mean: float

    def predict(self, rows: NDArray[float64]) -> NDArray[float64]:
        return self.mean + (rows - self.middle) @ self.weights


def fit(rows: NDArray[float64], values: NDArray[float64], penalty: float | None = None) -> tuple[Effects, float]:
    """Fit the effects; return them and the penalty, which is chosen unless it is given."""
    import numpy

    middle, mean = rows.mean(axis=0), float(values.mean())
    centred, deviations = rows - middle, values - mean
    # candidates may be fewer than columns, or thousands where many nodes search: the smaller number counts here
    basis, size, right = numpy.linalg.svd(centred, full_matrices=False)
    along = basis.T @ deviations
    if penalty is None:
        penalty = min(PENALTIES, key=lambda candidate: _cross_validation(size**2, along, deviations, candidate))
    weights = right.T @ (size / (size**2 + penalty) * along)
    return Effects(weights, middle, mean), penalty


def predictor(space: Space, scored: Sequence[tuple[Choice, float]]) -> Callable[[Sequence[Choice]], NDArray[float64]]:
    """Fit main effects to choices and their scores; return what says of any choices how they would score: an array."""
    import numpy

    tried = [choice for choice, _ in scored]
    columns = Columns.of_choices(space, tried)
    effects, _ = fit(columns.matrix(tried), numpy.array([score for _, score in scored]))
    return lambda choices: effects.predict(columns.matrix(choices))


def over_first(
    space: Space, choices: Sequence[Choice], scores: Sequence[float]
) -> dict[tuple[str, str], tuple[float, float]]:
    """By parameter and level, how much higher the score is than with the parameter's first level, and the standard
    error of that.

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
    first = {
        parameter.name: columns.of.get((parameter.name, next(iter(parameter.levels)))) for parameter in space.parameters
    }
    estimates = {}
    for (parameter, level), column in columns.of.items():
        contrast = numpy.zeros(len(squares))
        contrast[column] += 1.0
        at = first[parameter]
        if at is not None:
            contrast[at] -= 1.0
        variance = float(contrast @ covariance @ contrast)
        estimates[parameter, level] = float(contrast @ effects.weights), max(0.0, variance) ** 0.5
    return estimates


def _cross_validation(
    squares: NDArray[float64], along: NDArray[float64], values: NDArray[float64], penalty: float
) -> float:
    """Golub, Heath and Wahba's V: the mean squared residual over the squared share of freedom that is left.

    ``squares`` are those of the columns' singular values, ``along`` the ``values`` in their directions; what the values
    have in no direction of theirs is left whatever the penalty.
    """
    count = len(values)
    kept = squares / (squares + penalty)
    outside = max(0.0, float(values @ values) - float(along @ along))
    residual = float((((1 - kept) * along) ** 2).sum()) + outside
    freedom = 1 - (1 + float(kept.sum())) / count
    return residual / count / max(freedom, 1e-6) ** 2
