"""What profiles are expected to gain."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from envkit.advice import machine
from envkit.advice.expected import Fit, Fitted, expected, fitted, of_machine
from envkit.advice.machine import Machine, features
from envkit.advice.symptoms import FEATURES
from envkit.profiles import profile

from tests.advice.trainings import symptoms
from tests.simulated_worker import inspection

FITS = Fitted(
    machines=("here",), measured="2026-11-01", trainings=("one", "two"),
    fits={
        "retain": [Fit({"matrix": 1.0}, 0.0, 0.1), Fit({"kernel": 1.0}, 0.05, 0.2), Fit({}, 0.2, 0.3)],
        "costly": [Fit({}, -0.1, 0.05)],
    },
)  # fmt: skip


def test_the_fit_that_knows_most_is_taken():
    seen = symptoms(system_share=0.3)
    (found,) = expected(replace(seen, operators=None), ["retain"], FITS)
    assert (found.gain, found.low, found.high) == pytest.approx([math.exp(value) for value in (0.35, 0.15, 0.55)])
    (found,) = expected(seen, ["retain"], FITS)
    assert (found.gain, found.low) == pytest.approx([math.exp(0.4), math.exp(0.3)])


def test_the_most_is_first_and_what_is_not_known_is_left_out():
    found = expected(symptoms(), ["costly", "unknown", "retain"], FITS)
    assert [one.profile for one in found] == ["retain", "costly"]
    assert [one.is_worth_trying for one in found] == [True, False]


def test_of_two_that_promise_alike_the_surer_comes_first():
    fits = {"sure": [Fit({}, 0.30, 0.05)], "noisy": [Fit({}, 0.32, 0.2)]}
    found = expected(symptoms(), fits, replace(FITS, fits=fits))
    assert [one.profile for one in found] == ["sure", "noisy"]


def test_the_kits_own_fits_are_of_profiles_and_features_that_are_there():
    known = fitted()
    assert set(known.fits) <= set(profile.names())
    assert len(known.trainings) >= 12
    names = {one.name for one in FEATURES} | {*features(Machine("", 0, 0, "CPU", 2, 2), None)}
    for fits in known.fits.values():
        assert all(set(fit.coefficients) <= names for fit in fits)
        assert all(fit.half_width > 0 for fit in fits)
        assert set(fits[-1].coefficients) <= {"kernel"}, "the last is for what is seen from outside"


def test_a_fit_with_a_term_of_the_machine_needs_its_features(monkeypatch):
    monkeypatch.setattr(machine, "page_fault_s", lambda: 2.5e-7)
    fits = replace(FITS, fits={"retain": [Fit({"kernel": 1.0, "fault_us": 0.5}, 0.0, 0.1), Fit({}, 0.2, 0.3)]})
    seen = symptoms(system_share=0.3)
    (with_machine,) = expected(seen, ["retain"], fits, of_machine(inspection([], {}), fits))
    assert with_machine.gain > math.exp(0.3)
    (without,) = expected(seen, ["retain"], fits)
    assert without.gain == pytest.approx(math.exp(0.2))
    assert of_machine(inspection([], {}), FITS)["fault_us"] is None, "nothing asks for it, so nothing is timed"


def test_more_of_a_symptom_promises_more_of_what_takes_it_away():
    """Whatever the trainings are that it is fitted to."""
    little, much = (symptoms(system_share=share, matrix=0.0) for share in (0.01, 0.4))
    gains = [{one.profile: one.gain for one in expected(seen, fitted().fits)} for seen in (little, much)]
    assert gains[1]["glibc-retain"] >= gains[0]["glibc-retain"]
