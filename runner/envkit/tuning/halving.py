"""Choose who gets more trials: the better third of those that had as many, on each rung.

Candidates come in one after another, and not all at once as in plain successive halving, so one is promoted as soon as
it is among the best 1 / ETA of those that got as far as it did. No candidate waits for a rung to be full.

References:
  K. Jamieson, A. Talwalkar: Non-stochastic best arm identification and hyperparameter optimization. AISTATS 2016.
  L. Li, K. Jamieson, A. Rostamizadeh, E. Gonina, M. Hardt, B. Recht, A. Talwalkar: A system for massively parallel
    hyperparameter tuning (asynchronous successive halving). MLSys 2020.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# How many trials a candidate needs, all together, to be compared with the others on the same rung.
RUNGS = (1, 3)
ETA = 3


def promoted(
    scores: Mapping[int, float], rung_of: Mapping[int, int], trials: Mapping[int, int], rungs: Sequence[int] = RUNGS
) -> dict[int, int]:
    """Candidates that go up now, with the rung that each goes to.

    ``scores`` (higher is better) are those of the candidates that have not failed; ``rung_of`` is the rung that each is
    on, ``trials`` how many it has had. A candidate is ranked on its rung, and goes up, once it has all trials of it.
    """
    going: dict[int, int] = {}
    for rung in range(len(rungs) - 1):
        reached = [
            one for one in scores if rung_of[one] > rung or (rung_of[one] == rung and trials[one] >= rungs[rung])
        ]
        best = sorted(reached, key=lambda one: (-scores[one], one))[: len(reached) // ETA]
        going |= {one: rung + 1 for one in best if rung_of[one] == rung}
    return going
