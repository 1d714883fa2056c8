"""Estimate how important each parameter is: how much of the candidates' differences its main effect explains.

The effects are fitted to candidates drawn with replacement, and judged by those that were not drawn: by how much worse
these are predicted without the parameter, as a share of their own spread. So a parameter that does nothing comes out
about 0 or below, however many levels it has. The interval is that of the draws.

References:
  L. Breiman: Random forests. Machine Learning 45 (2001), for judging a variable by what was left out of the draw.
  B. Efron: Bootstrap methods: another look at the jackknife. Annals of Statistics 7 (1979).
  F. Hutter, H. Hoos, K. Leyton-Brown: An efficient approach for assessing hyperparameter importance. ICML 2014, for
    the share of variance as the measure.
  P. H. Westfall, S. S. Young: Resampling-based multiple testing. Wiley 1993, for what holds for the best of several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envkit.tuning.main_effects import Columns, fit
from envkit.tuning.space import Choice, Space

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

DRAWS = 200
# With fewer candidates a draw leaves out too few to judge by.
LEAST_CANDIDATES = 8


@dataclass(frozen=True)
class Importance:
    """How much one parameter matters.

    As the best of several levels was lucky too, the interval of its worth is wide enough to hold all levels' worths
    together in 95% of the draws (Westfall and Young 1993).
    """

    parameter: str
    share: float  # of the variance of the log speedup, as the median of the draws; 0 or more, as are its ends
    low: float  # below it are 2.5% of the draws, and above `high` as many
    high: float
    first: str  # the first of the levels that were tried
    best: str  # the one that is predicted to be fastest
    worth: float  # how many times as fast `best` is as `first`
    worth_low: float
    worth_high: float


def importance(space: Space, choices: Sequence[Choice], scores: Sequence[float]) -> list[Importance]:
    """The parameters that were varied, the most important first; none with fewer than LEAST_CANDIDATES candidates.

    ``scores`` are the candidates' log speedups.
    """
    import numpy

    columns = Columns.of_choices(space, choices)
    if len(choices) < LEAST_CANDIDATES or not columns.of:
        return []
    rows, values = columns.matrix(choices), numpy.asarray(scores, dtype=float)
    effects, penalty = fit(rows, values)
    generator = numpy.random.default_rng(1)
    drops: list[list[float]] = []  # by draw and parameter
    weights = []  # by draw and column
    for _ in range(DRAWS):
        drawn = generator.integers(len(values), size=len(values))
        held_out = numpy.setdiff1d(numpy.arange(len(values)), drawn)
        spread = float(((values[held_out] - values[drawn].mean()) ** 2).sum()) if len(held_out) else 0.0
        if spread == 0.0:
            continue
        fitted, _ = fit(rows[drawn], values[drawn], penalty)
        residuals = values[held_out] - fitted.predict(rows[held_out])
        without = [
            residuals
            + (rows[held_out][:, parameter_columns] - fitted.middle[parameter_columns])
            @ fitted.weights[parameter_columns]
            for parameter_columns in columns.parameters.values()
        ]
        drops.append([float((errors**2).sum() - (residuals**2).sum()) / spread for errors in without])
        weights.append(fitted.weights)
    if not drops:
        return []
    shares = numpy.array(drops)
    # with a last column of zeros, which is number -1: a first level may have none, and is worth 0
    weights_and_zero: NDArray[float64] = numpy.append(effects.weights, 0.0)
    drawn_weights = numpy.pad(weights, ((0, 0), (0, 1)))
    importances = []
    for number, (parameter, levels) in enumerate(columns.levels.items()):
        level_columns = [columns.of.get((parameter, level), -1) for level in levels]
        best = int(weights_and_zero[level_columns].argmax())
        over = numpy.array([drawn_weights[:, column] for column in level_columns])
        over = over - over[0]  # the first
        farthest = numpy.abs(over - over.mean(axis=1, keepdims=True)).max(axis=0)  # of any level, by draw
        worth = weights_and_zero[level_columns[best]] - weights_and_zero[level_columns[0]]
        low, middle, high = (max(0.0, float(share)) for share in numpy.percentile(shares[:, number], (2.5, 50, 97.5)))
        # draws repeat candidates, and so shrink effects further: only their spread is used, not their middle
        few = max(2, min(sum(choice.get(parameter) == level for choice in choices) for level in levels))
        # the spread of draws with replacement from n is too small by (n - 1) / n
        about = float(numpy.percentile(farthest, 95)) * math.sqrt(few / (few - 1))
        worths = (math.exp(float(worth) + shift) for shift in (0.0, -about, about))
        importances.append(Importance(parameter, middle, low, high, levels[0], levels[best], *worths))
    return sorted(importances, key=lambda importance: -importance.share)
