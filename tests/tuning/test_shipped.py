"""In which order shipped profiles are tried, by what is expected of them."""

from __future__ import annotations

import math

from envkit.advice.expected import Expected
from envkit.common import codec
from envkit.engines.measurement import Measurement
from envkit.tuning import shipped as shipped_profiles
from envkit.tuning.search import Candidate
from envkit.tuning.shipped import by_gain, gains
from envkit.tuning.space import choices, profile
from envkit.tuning.trial_store import BASELINE
from envkit.worker.request import Train

from tests.simulated_worker import sample
from tests.tuning.planted import Planted, coarse, planted, resolve
from tests.worker_runs import document_of


def shipped():
    space = coarse()
    made = [profile(space, choice, f"profile-{number}") for number, choice in enumerate(choices(space))]
    return space, [Candidate(one, resolve(one)) for one in made[1:] if one is not None]


def names(candidates):
    return [one.profile.name for one in candidates]


def test_the_most_expected_first_and_then_those_of_which_nothing_is():
    _, given = shipped()
    ordered = by_gain(given, {"profile-3": 0.9, "profile-20": 1.2, "profile-12": 1.4, "no-longer-there": 2.0})
    assert names(ordered[:3]) == ["profile-12", "profile-20", "profile-3"]
    assert names(ordered[3:]) == [name for name in names(given) if name not in names(ordered[:3])]
    assert by_gain(given, {}) == given


def test_what_is_expected_follows_from_what_a_trial_used(monkeypatch):
    seen = []

    def of(symptoms, profiles):
        seen.append(symptoms)
        return [Expected(name, 1.25, 1.1, 1.4) for name in list(profiles)[:1]]

    monkeypatch.setattr(shipped_profiles, "expected", of)
    _, given = shipped()
    trial = sample(document_of(Train("cnn", "synthetic", steps=10)), {"seconds": [2.0]}, 0, {})
    assert gains(codec.parse(trial, Measurement), given) == {given[0].profile.name: 1.25}
    assert (seen[0].system_share, seen[0].faults_per_s) == (0.2, 500)
    # what was learnt on CPUs says nothing of a training on a GPU
    on_gpu = {**trial, "evidence": {**trial["evidence"], "gpu": {"name": "a GPU"}}}
    assert gains(codec.parse(on_gpu, Measurement), given) == {}


def test_the_best_is_tried_in_the_first_round_where_it_is_expected():
    space, given = shipped()
    truth = planted(space, 2)
    worst_first = sorted(given, key=lambda one: truth(choice_of(space, one)))
    expected = {one.profile.name: math.exp(truth(choice_of(space, one))) for one in given}
    best = worst_first[-1].profile.name

    def first_round(candidates):
        store = Planted(space, truth, 60, shipped=candidates).run().search.store
        return [store.entries[number].shipped for number in store.rounds[0] if number != BASELINE]

    assert best not in first_round(worst_first)
    assert best in first_round(by_gain(worst_first, expected))


def choice_of(space, candidate):
    return list(choices(space))[int(candidate.profile.name.removeprefix("profile-"))]
