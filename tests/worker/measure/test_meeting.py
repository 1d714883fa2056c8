"""Processes begin together, go on until the last is done, and leave what they measured; here threads stand for them."""

from __future__ import annotations

import threading

import pytest
from envkit.worker.errors import WorkerError
from envkit.worker.measure import meeting
from envkit.worker.measure.meeting import Meeting, samples
from envkit.worker.messages import OthersMissing

from tests.processes import PATIENCE_S


def test_who_comes_first_waits_for_the_others(tmp_path):
    here = [threading.Event() for _ in range(2)]

    def come(event):
        Meeting(tmp_path, 3).begin()
        event.set()

    early = [threading.Thread(target=come, args=(event,)) for event in here]
    for one in early:
        one.start()
    assert not any(event.wait(0.1) for event in here)
    Meeting(tmp_path, 3).begin()
    assert all(event.wait(PATIENCE_S) for event in here)
    for one in early:
        one.join()


def test_nobody_waits_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(meeting, "PATIENCE_S", 0.05)
    with pytest.raises(WorkerError) as caught:
        Meeting(tmp_path, 2).begin()
    assert caught.value.message == OthersMissing(0.05)


def test_who_is_done_goes_on_until_the_last_is(tmp_path):
    quick, slow = (Meeting(tmp_path, 2) for _ in range(2))
    assert [quick.others_train(3), quick.others_train(4)] == [True, True]
    assert not slow.others_train(3)
    assert not quick.others_train(5)


def test_each_leaves_its_document_with_the_steps_that_it_was_to_take(tmp_path):
    for name, steps in (("a", 3), ("b", 4)):
        one = Meeting(tmp_path, 2)
        one.others_train(steps)
        one.others_train(steps + 1)
        one.leave({"name": name})
    assert sorted((one["name"], one["own_steps"]) for one in samples(tmp_path)) == [("a", 3), ("b", 4)]
