"""What the processes of two profiles say of a step's phases, on made-up documents."""

from __future__ import annotations

import pytest
from envkit.analysis.phase_times import batch_lines, lines, phase_times

NOISE = (0.99, 1.0, 1.0, 1.01)


def side(arm="mine", noise=NOISE, batch=None, **phases):
    """A profile's processes of two steps, which differ by ``noise`` in all times; those are in milliseconds."""
    phases = phases or {"forward": 4.0, "backward": 6.0}

    def two(ms, factor):
        return [ms * factor / 1000] * 2

    documents = [
        {
            "step_s": two(sum(phases.values()), factor),
            "phases": {name: two(ms, factor) for name, ms in phases.items()},
            "batch": batch and {"workers": 2, "parts": {name: two(ms, factor) for name, ms in batch.items()}},
        }
        for factor in noise
    ]
    return phase_times(arm, documents)


def test_phases_are_medians_over_processes_per_step():
    found = side(noise=(1.0, 3.0, 1.1))
    assert found.step_ms.median == pytest.approx(11.0)
    assert {name: one.median for name, one in found.phases.items()} == pytest.approx({"forward": 4.4, "backward": 6.6})
    assert (found.batch, found.workers, list(batch_lines(found, None))) == (None, None, [])


def test_what_each_phase_saves_has_an_interval():
    forward, backward, whole = lines(side("baseline"), side(forward=4.0, backward=3.0))
    assert (forward.name, backward.name, whole.name) == ("forward", "backward", "whole step")
    assert forward.saved.low < 0 < forward.saved.high
    assert backward.saved.estimate == pytest.approx(3.0)
    assert (backward.saved.low, backward.saved.high) == pytest.approx((5.94 - 3.03, 6.06 - 2.97))
    assert whole.saved.estimate == pytest.approx(3.0)


def test_few_processes_have_no_interval():
    few = NOISE[:3]
    assert [line.saved for line in lines(side("baseline", few), side(noise=few))] == [None] * 3


def test_one_profile_saves_nothing():
    assert [(line.other, line.saved) for line in lines(side(), None)] == [(None, None)] * 3


def test_parts_of_a_batch_and_all_of_them():
    parts = {"decode": 3.0, "collate": 1.0}
    found = list(batch_lines(side("baseline", batch=parts), side(batch={**parts, "decode": 1.0})))
    assert [(line.name, line.reference.median, line.other.median) for line in found] == [
        ("decode", 3.0, 1.0), ("collate", 1.0, 1.0), ("whole batch", 4.0, 2.0),
    ]  # fmt: skip
    assert found[-1].saved.estimate == pytest.approx(2.0)
