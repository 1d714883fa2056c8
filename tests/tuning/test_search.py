"""What the search finds, where the truth is planted; and that a killed one goes on as it would have done."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from envkit.common.errors import InputError
from envkit.tuning import narrow, search, space_file
from envkit.tuning.messages import TooManyCandidates
from envkit.tuning.search import Candidate
from envkit.tuning.space import choices, nearest, profile
from envkit.tuning.trial_store import BASELINE, Entry

from tests.tuning.planted import Planted, coarse, planted, read_space, resolve

GRID_BLOCKS = 8
# Events before a round, and those with which a tuning ends and goes on.
PREPARING = ("candidate", "promoted", "end", "resume")


@pytest.fixture
def space():
    return coarse()


def test_a_quarter_of_the_grid_s_trials_finds_a_candidate_within_3_percent_of_its_optimum(space):
    grid = list(choices(space))
    quarter = (len(grid) + 1) * GRID_BLOCKS / 4
    lost, trials = [], []
    for seed in range(20):
        truth = planted(space, seed)
        run = Planted(space, truth, quarter, seed).run()
        lost.append(max(map(truth, grid)) - truth(run.best))
        trials.append(len(run.trials))
    assert len(grid) == 36
    assert max(trials) <= quarter
    assert sum(one <= math.log(1.03) for one in lost) >= 18, sorted(lost)[-5:]


def test_a_search_that_was_killed_at_any_trial_goes_on_as_it_would_have_done(space):
    whole = Planted(space, planted(space, 3), 60).run()
    for stopped in (0, 1, 8, 25, len(whole.trials) - 1):
        cut = Planted(space, planted(space, 3), 60).run(stop_after=stopped)
        assert len(cut.trials) == stopped
        again = Planted(space, planted(space, 3), 60, events=cut.events).run()
        assert again.events == whole.events


def once(events):
    """Without what a search that goes on records again, because the round that it was for had not begun."""
    kept = []
    for event in events:
        if event["event"] not in PREPARING or event not in kept:
            kept.append(event)
    return kept


@pytest.mark.parametrize("stopped", [4, 9, 17, -1])
def test_a_search_that_was_killed_between_the_candidates_of_a_round_finds_the_same(space, stopped):
    whole = Planted(space, planted(space, 3), 60).run()
    numbered = [place for place, event in enumerate(whole.events) if event["event"] == "candidate"]
    again = Planted(space, planted(space, 3), 60, events=whole.events[: numbered[stopped] + 1]).run()
    assert once(again.events) == whole.events


def test_another_seed_searches_elsewhere(space):
    one, other = (Planted(space, planted(space, 3), 30, seed).run() for seed in (1, 2))
    assert [entry.choice for entry in one.search.store.entries.values()] != [
        entry.choice for entry in other.search.store.entries.values()
    ]


def test_every_round_has_the_baseline_once_and_its_order_is_random(space):
    run = Planted(space, planted(space, 1), 74).run()
    rounds = [event["order"] for event in run.events if event["event"] == "round"]
    assert all(order.count(BASELINE) == 1 for order in rounds)
    assert len({order.index(BASELINE) for order in rounds}) > 2


def test_the_better_third_gets_more_trials_and_a_handful_the_most(space):
    truth = planted(space, 1)
    store = Planted(space, truth, 74).run().search.store
    trials, scores = store.trials(), store.scores()
    once = [number for number in scores if trials[number] == 1]
    assert len(once) > len(scores) / 3
    assert len(store.finalists) == search.FINALISTS
    assert min(trials[number] for number in store.finalists) >= search.LEAST_FINALS
    average = sum(truth(store.entries[number].choice) for number in once) / len(once)
    assert all(truth(store.entries[number].choice) > average for number in store.finalists)


def test_what_failed_is_counted_and_never_tried_again(space):
    def fails(choice):
        return "ended with exit status 3" if choice["runtime"] == "intel" else None

    run = Planted(space, lambda choice: 0.1 if choice["runtime"] == "intel" else 0.0, 74, fails=fails).run()
    failed = [event["candidate"] for event in run.events if event["event"] == "failure"]
    assert failed
    assert len(failed) == len(set(failed)) == len(run.search.store.problems)
    assert run.best["runtime"] == "gnu"


def test_where_every_candidate_fails_nothing_is_the_best(space):
    run = Planted(space, planted(space, 1), 74, fails=lambda choice: "ended with exit status 3").run()
    assert run.search.best() is None
    assert len(run.search.store.problems) == len(run.search.store.entries)


def test_a_small_space_is_searched_through_and_then_the_finals_begin(tmp_path):
    text = "parameters:\n  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000, 5000]}\n"
    space = read_space(tmp_path, text)
    run = Planted(space, lambda choice: 0.2 if choice["spin"] == "1000" else 0.0, 60).run()
    # the choice that sets nothing is the baseline, which is not a candidate
    assert sorted(entry.choice["spin"] for entry in run.search.store.entries.values()) == ["0", "1000", "5000"]
    assert run.best == {"spin": "1000"}


def test_the_finals_of_a_small_space_take_no_longer_than_its_candidates_do(tmp_path):
    """It has four choices, so the finals have five arms with the baseline, and not the seven that larger ones may."""
    text = "parameters:\n  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000, 5000]}\n"
    space = read_space(tmp_path, text)
    first_round, another = 4, 2
    finals = search.LEAST_FINALS * 5
    begun = Planted(space, lambda choice: 0.0, 60).run(stop_after=first_round)
    assert begun.search.least_budget_s == pytest.approx(
        (first_round + another + finals) / (search.EXPLORING + search.FINALS)
    )
    run = Planted(space, lambda choice: 0.2 if choice["spin"] == "1000" else 0.0, first_round + another + finals).run()
    assert run.best == {"spin": "1000"}
    assert len(run.trials) <= first_round + another + finals


def test_choices_that_come_to_the_same_are_tried_once(tmp_path):
    text = "parameters:\n  a: {choices: {x: {env: {OMP_DYNAMIC: true}}, y: {env: {OMP_DYNAMIC: true}}, z: }}\n"
    run = Planted(read_space(tmp_path, text), lambda choice: 0.1, 30).run()
    assert len(run.search.store.entries) == 1


def test_exhaustive_tries_every_candidate_in_each_of_the_rounds(space):
    run = Planted(space, planted(space, 1), 0, blocks=3).run()
    store = run.search.store
    assert (len(store.entries), len(store.rounds)) == (35, 3)  # one of the 36 is the baseline but for its name
    assert set(store.trials().values()) == {3}


def test_a_kill_while_the_candidates_are_numbered_loses_none_of_them(space):
    whole = Planted(space, planted(space, 1), 0, blocks=1).run()
    numbered = [event for event in whole.events if event["event"] == "candidate"][:9]
    again = Planted(space, planted(space, 1), 0, blocks=1, events=numbered).run()
    assert once(again.events) == whole.events


def test_a_disturbed_trial_of_the_baseline_is_repeated_and_lifts_nobody(space):
    def disturbed(events=(), stop_after=None):
        run = Planted(space, lambda choice: 0.0, 0, blocks=1, events=events)
        run.interference = {0: 0.5}
        return run.run(stop_after)

    calm, run = Planted(space, lambda choice: 0.0, 0, blocks=1).run(), disturbed()
    baselines = [event for event in run.trials if event["candidate"] == BASELINE]
    assert [round(event["step_s"][0], 1) for event in baselines] == [1.6, 1.0]
    assert max(run.search.store.scores().values()) == max(calm.search.store.scores().values()) < 0.3
    cut = disturbed(stop_after=len(run.trials) - 1)
    assert disturbed(cut.events).events == run.events


def test_what_is_kept_for_the_confirmation_is_left_over(space):
    run = Planted(space, planted(space, 1), 74)
    run.search.reserve = lambda dearest_s: run.search.budget_s - 50
    run.run()
    assert 45 <= len(run.trials) <= 50
    assert run.search.store.finalists


def test_more_is_kept_where_a_faster_candidate_takes_longer(space):
    asked = []

    def reserve(dearest_s):
        asked.append(dearest_s)
        return 0.0

    run = Planted(space, planted(space, 1), 20)
    run.search.reserve = reserve
    run.run()
    assert (asked[0], asked[-1]) == (0.0, 1.0)  # before any trial, and after
    best = run.search.best()
    run.search.store.trials_s_of[best].append(4.0)
    trials = run.search.store.trials_s_of[best]
    assert run.search.reserve_s == 0.0
    assert asked[-1] == pytest.approx((len(trials) - 1 + 4) / len(trials))


@pytest.mark.parametrize(("noise", "best"), [(0.0, 0), (0.4, 1)])
def test_of_shipped_finalists_only_the_best_can_be_preferred_for_being_known(space, noise, best):
    """The second best is surely worse than the candidate of the space, and the third too noisy to tell."""
    run = Planted(space, planted(space, 1), 30)
    store = run.search.store
    store.entries = {0: Entry(0, {"runtime": "intel"}, None, "its own"), 1: Entry(1, None, "second", "second"),
                     2: Entry(2, None, "third", "third")}  # fmt: skip
    store.finalists = [0, 1, 2]
    swing = (0.3, -0.3, 0.3, -0.3, 0.3, -0.3)
    store.step_s = [{BASELINE: 1.0, 0: 0.5, 1: 0.52 * math.exp(noise * one), 2: 0.54 * math.exp(one)} for one in swing]
    assert run.search.best() == best
    assert run.search.best(shipped=True) == 1


def test_the_shipped_profiles_for_which_there_was_no_time_are_known(space):
    made = [profile(space, choice, f"profile-{number}") for number, choice in enumerate(choices(space))]
    shipped = [Candidate(one, resolve(one)) for one in made[1:] if one is not None]
    run = Planted(space, planted(space, 1), 30, shipped=shipped).run()
    seen = [entry.shipped for entry in run.search.store.entries.values()]
    names = [one.profile.name for one in shipped]
    assert run.search.untried
    assert [*seen, *run.search.untried] == names  # in the order given
    assert Planted(space, planted(space, 1), 300, shipped=shipped).run().search.untried == []


def test_exhaustive_refuses_a_space_too_large_for_it():
    space = space_file.read(space_file.find("default"))
    baseline = resolve(profile(space, {}, "baseline"))
    with pytest.raises(InputError) as caught:
        narrow.require_candidates(space, baseline, {}, one_by_one=True, alone=True)
    assert caught.value.message == TooManyCandidates(str(space.path), 500)
    narrow.require_candidates(space, baseline, {}, one_by_one=False, alone=True)


def test_where_the_first_few_rounds_all_fail_it_is_given_up(space):
    run = Planted(space, planted(space, 1), 500, fails=lambda choice: "ended with exit status 3").run()
    assert search.MOST_FAILURES <= len(run.search.store.problems) < search.MOST_FAILURES + search.ROUND


def test_a_shipped_profile_that_the_space_has_teaches_the_search(tmp_path):
    text = """parameters:
  allocator: {choices: {glibc: , jemalloc: {preload: [jemalloc]}}}
  thp: {when: {allocator: [jemalloc]}, variable: MALLOC_CONF, key: thp, values: [unset, always]}
  decay: {when: {allocator: [jemalloc]}, variable: MALLOC_CONF, key: dirty_decay_ms, values: [unset, -1, 60000]}
  wait: {variable: OMP_WAIT_POLICY, values: [unset, passive]}
"""
    space = read_space(tmp_path, text)
    choice = {"allocator": "jemalloc", "thp": "always", "decay": "-1", "wait": "unset"}
    made = profile(space, choice, "shipped")
    assert nearest(space, made) == choice
    reordered = replace(made, env={"MALLOC_CONF": "dirty_decay_ms:-1,thp:always"})
    more = replace(made, name="more", env={**made.env, "OMP_DYNAMIC": "true"})
    shipped = [Candidate(one, resolve(one)) for one in (reordered, more)]
    entries = Planted(space, lambda choice: 0.0, 30, shipped=shipped).run().search.store.entries
    assert [entries[number].choice for number in (0, 1)] == [choice, None]


def test_what_does_nothing_is_not_in_what_is_found(tmp_path):
    levels = {"GOMP_SPINCOUNT": [0, 1000], "OMP_DYNAMIC": ["true"], "OMP_PROC_BIND": ["close"],
              "MKL_DYNAMIC": ["false"], "PYTHONMALLOC": ["malloc"], "OMP_WAIT_POLICY": ["active", "passive"],
              "OMP_NESTED": ["true"]}  # fmt: skip
    lines = [f"  {name}: {{variable: {name}, values: {['unset', *values]}}}\n" for name, values in levels.items()]
    space = read_space(tmp_path, "parameters:\n" + "".join(lines))
    effects = {("GOMP_SPINCOUNT", "1000"): 0.2, ("OMP_PROC_BIND", "close"): 0.1}
    alone = 0
    for seed in range(8):
        run = Planted(space, lambda choice: sum(effects.get(pair, 0.0) for pair in choice.items()), 100, seed).run()
        turned = {pair for pair in run.best.items() if pair[1] != "unset"}
        assert turned >= effects.keys()
        alone += turned == effects.keys()
    assert alone >= 5


def test_where_the_best_scores_were_luck_the_finals_have_what_main_effects_expect(tmp_path):
    names = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "MALLOC_ARENA_MAX", "OMP_NUM_THREADS")
    lines = [f"  {name}: {{variable: {name}, values: [unset, 1, 2, 3]}}\n" for name in names]
    space = read_space(tmp_path, "parameters:\n" + "".join(lines))
    tried = []

    def truth(choice):
        """The first three are lucky until the finals."""
        if choice not in tried:
            tried.append(choice)
        luck = 1.0 if choice in tried[:3] and not run.search.store.finalists else 0.0
        return luck + 0.1 * sum(level == "3" for level in choice.values())

    run = Planted(space, truth, 150)
    assert run.run().best == dict.fromkeys(names, "3")
