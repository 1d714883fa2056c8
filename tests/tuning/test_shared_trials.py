"""What nodes know of each other's candidates, in one journal."""

from __future__ import annotations

import math

import pytest
from envkit.messages import Printed
from envkit.tuning.events import Failure, NewCandidate, Round, parse
from envkit.tuning.shared_trials import SharedTrials, publish, published, storage_in
from envkit.tuning.trial_store import BASELINE, TrialStore

from tests.records import USAGE
from tests.tuning.planted import coarse

CHOICE = {"runtime": "gnu"}


@pytest.fixture
def node(tmp_path):
    """A node's own view of the journal, and what it knows."""

    def join(place):
        return SharedTrials(storage_in(tmp_path), f"node{place}", 2, coarse()), TrialStore()

    return join


def measure(store, number, seconds, in_round=0):
    """One round with the baseline and a candidate, as a record has it."""
    store.add(NewCandidate(number=number, choice=None, shipped="mine", title="mine", environment={}))
    store.add(Round(order=[BASELINE, number]))
    for candidate, step_s in ((BASELINE, 1.0), (number, seconds)):
        event = {"event": "trial", "round": in_round, "candidate": candidate, "worker_seconds": 1.0, "step_s": [step_s]}
        store.add(parse({**event, "usage": USAGE, "seconds": step_s}))


def test_what_one_node_measures_the_other_knows(node):
    (first, own), (second, other) = node(1), node(2)
    number = first.claim(own, "a", None, "mine", "mine")
    measure(own, number, 0.5)
    first.tell(own)
    assert second.take_in(other) == {"a": number}
    assert other.ratios(number) == pytest.approx([math.log(2)])
    assert other.entries[number].shipped == "mine"
    assert not second.is_own(number)
    # and its own trials do not count twice
    first.take_in(own)
    assert own.ratios(number) == pytest.approx([math.log(2)])
    assert first.is_own(number)


def test_of_two_nodes_that_claim_the_same_the_first_has_it(node):
    (first, own), (second, other) = node(1), node(2)
    assert first.claim(own, "a", None, "mine", "mine") == 0
    assert second.claim(other, "a", None, "mine", "mine") is None
    assert second.claim(other, "b", None, "theirs", "theirs") == 2
    first.take_in(own)
    assert sorted(own.entries) == [0, 2]


def test_a_promotion_and_a_problem_are_known_to_all(node):
    (first, own), (second, other) = node(1), node(2)
    number = first.claim(own, "a", None, "mine", "mine")
    second.take_in(other)
    second.promote({number: 1})
    first.take_in(own)
    assert own.rung_of[number] == 1
    assert not first.is_own(number)
    own.add(Failure(candidate=number, round=0, problem=Printed("was killed").to_json()))
    first.tell(own)
    second.take_in(other)
    assert other.problems == {number: Printed("was killed")}


def test_what_is_said_first_counts(tmp_path):
    storage = storage_in(tmp_path)
    publish(storage, "node2", "chosen", {"best": 1})
    publish(storage_in(tmp_path), "node1", "chosen", {"best": 2})
    chosen = published(storage_in(tmp_path), "chosen", dict)
    assert list(chosen.items()) == [
        ("node2", {"best": 1}),
        ("node1", {"best": 2}),
    ]


def test_a_node_that_comes_back_leaves_what_others_promoted_to_them(node):
    (first, own), (second, other) = node(1), node(2)
    mine, theirs = (first.claim(own, name, None, name, name) for name in "ab")
    second.take_in(other)
    second.promote({theirs: 1})
    again, store = node(1)
    assert list(again.rejoin(store, coarse())) == [mine]
    assert store.rung_of == {mine: 0, theirs: 1}


def test_what_no_longer_holds_is_taken_back(node):
    (first, own), (second, other) = node(1), node(2)
    number = first.claim(own, "a", None, "mine", "mine")
    own.add(Failure(candidate=number, round=0, problem=Printed("was killed").to_json()))
    first.tell(own)
    second.take_in(other)
    assert other.problems == {number: Printed("was killed")}
    own.add(Failure(candidate=BASELINE, round=0, problem=Printed("was killed").to_json()))
    first.tell(own)
    _, third = node(3)
    second.take_in(third)
    assert third.problems == {}
