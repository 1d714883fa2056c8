"""Whether what was measured came as advised."""

from __future__ import annotations

import pytest
from envkit.advice.expected import Expected
from envkit.analysis.messages import WhileStolen
from envkit.report.advised import proof
from envkit.report.messages import advised as messages

from tests.records import conclude
from tests.report.planted import disturbed
from tests.reports import events_of
from tests.simulation import times

# ``mine`` takes half the time.
MEASURED = {"mine": {"seconds": times(0.5)}, "baseline": {"seconds": times(1.0)}}


@pytest.mark.parametrize(
    ("low", "gain", "high", "kind"),
    [
        (1.8, 2.0, 2.2, messages.Proved),
        (1.1, 1.2, 1.3, messages.MoreThanExpected),
        (2.5, 3.0, 3.5, messages.LessThanExpected),
    ],
)
def test_a_proof_says_how_it_compares(low, gain, high, kind):
    found = proof(Expected("mine", gain, low, high), conclude(events_of(7, **MEASURED)))
    assert (type(found), found.profile, found.expected) == (kind, "mine", messages.Range(gain, low, high))
    assert found.measured.ratio == pytest.approx(2.0, abs=0.005)


def test_what_is_not_surely_faster_is_not_proved():
    alike = {"mine": {"seconds": times(1.0)}, "baseline": {"seconds": times(1.0)}}
    found = proof(Expected("mine", 1.5, 1.4, 1.6), conclude(events_of(7, **alike)))
    assert (type(found), found.expected) == (messages.Unproved, messages.Range(1.5, 1.4, 1.6))
    assert found.measured.ratio == pytest.approx(1.0, abs=0.005)


def test_what_was_measured_beside_a_load_is_not_proved():
    events = disturbed(events_of(7, **MEASURED), *range(7))
    found = proof(Expected("mine", 2.0, 1.8, 2.2), conclude(events))
    assert (type(found), found.load) == (messages.Unproved, WhileStolen(2.0, 4.0))
    assert found.expected == messages.Range(2.0, 1.8, 2.2)
    assert found.measured.ratio == pytest.approx(2.0, abs=0.005)
