"""Whether what was measured came as advised."""

from __future__ import annotations

import pytest
from envkit.advice.expected import Expected
from envkit.analysis.summary import summarise
from envkit.report.advised import proof

from tests.report.planted import disturbed
from tests.reports import events_of
from tests.simulation import times

# ``mine`` takes half the time.
MEASURED = {"mine": {"seconds": times(0.5)}, "baseline": {"seconds": times(1.0)}}


@pytest.mark.parametrize(
    ("low", "gain", "high", "said"),
    [
        (1.8, 2.0, 2.2, "Proved, as expected: "),
        (1.1, 1.2, 1.3, "Proved, and more than expected: "),
        (2.5, 3.0, 3.5, "Proved, and less than expected: "),
    ],
)
def test_a_proof_says_how_it_compares(low, gain, high, said):
    text = proof(Expected("mine", gain, low, high), summarise(events_of(7, **MEASURED)))
    assert text.startswith(said)
    assert text.endswith(f"and {gain:.2f}x ({low:.2f} to {high:.2f}) was expected.")


def test_what_is_not_surely_faster_is_not_proved():
    alike = {"mine": {"seconds": times(1.0)}, "baseline": {"seconds": times(1.0)}}
    text = proof(Expected("mine", 1.5, 1.4, 1.6), summarise(events_of(7, **alike)))
    assert text.startswith("Not proved: ")


def test_what_was_measured_beside_a_load_is_not_proved():
    events = disturbed(events_of(7, **MEASURED), *range(7))
    text = proof(Expected("mine", 2.0, 1.8, 2.2), summarise(events))
    assert text.startswith("Not proved: measured while the hypervisor withheld 2 of 4 CPUs, 2.00x (")
    assert text.endswith(" was expected. Measure again without that load.")
