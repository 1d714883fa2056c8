"""Which candidates a search tries side by side in the end."""

from __future__ import annotations

from dataclasses import replace

from envkit.tuning.search import FINALISTS, Candidate
from envkit.tuning.space import choices, profile

from tests.tuning.planted import Planted, coarse, resolve


def test_of_shipped_profiles_that_are_not_among_the_best_only_the_best_one_is_a_finalist():
    space = coarse()
    made = profile(space, list(choices(space))[1], "mine")
    assert made is not None
    others = [replace(made, name=name, env={"OMP_NESTED": name}) for name in ("a", "b", "c")]  # not of this space
    run = Planted(
        space, lambda choice: 0.3 * bool(choice), 90, shipped=[Candidate(one, resolve(one)) for one in others]
    )
    store = run.run().search.store
    scores = store.scores()
    shipped = [number for number, entry in store.entries.items() if entry.shipped is not None]
    assert len(scores.keys() & {*shipped}) > 1
    finalists = [number for number in store.finalists if number in shipped]
    assert len(store.finalists) > FINALISTS
    assert finalists == [max(shipped, key=lambda number: scores.get(number, -1.0))]
