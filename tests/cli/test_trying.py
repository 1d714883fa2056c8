"""What trying an arm once says of it, without the caller's values."""

from __future__ import annotations

import pytest
from envkit.bench.messages import WorkerEnded
from envkit.bench.private_values import of_message
from envkit.cli.trying import _quotes
from envkit.cli.workload_messages import TrialFailed, TrialNotInEffect
from envkit.engines.messages import ExitStatus, NotStarted
from envkit.messages import Printed


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            TrialFailed(Printed("said a-secret-value"), "at a-secret-value"),
            TrialFailed(Printed("said $TOKEN"), "at $TOKEN"),
        ),
        (TrialFailed(NotStarted("no a-secret-value"), "oh"), TrialFailed(NotStarted("no $TOKEN"), "oh")),
        (TrialNotInEffect("k", "5", "seen a-secret-value"), TrialNotInEffect("k", "5", "seen $TOKEN")),
    ],
)
def test_values_of_the_caller_are_replaced_by_names(message, expected):
    assert of_message(message, {"TOKEN": "a-secret-value"}, {}) == expected


def test_a_message_quotes_a_line_that_is_in_its_fields_or_in_those_of_one_in_it():
    failed = WorkerEnded(NotStarted("oh: no such image"))
    assert _quotes(failed, "no such image")
    assert not _quotes(failed, "no such thing")
    assert not _quotes(WorkerEnded(ExitStatus(3)), "no such image")
