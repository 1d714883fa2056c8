"""That what shipped profiles expect tells whether they are in effect, held against a real worker without any."""

from __future__ import annotations

import pytest
from envkit.checks.effect import Check, look_up
from envkit.common.errors import InputError
from envkit.profiles import profile
from envkit.profiles.resolve import resolve
from envkit.worker.image import inspect

from tests.engines.test_local import document_of, start_worker

# What sets a number of threads that may be the default on this machine, and nothing else.
THREADS_ALONE = {"physical-cores", "smt"}
# Sets the instructions that are the default on a processor without AVX-512.
AVX2_ALONE = "aten-avx2"


@pytest.fixture(scope="module")
def inspection():
    return inspect(())


@pytest.fixture(scope="module")
def evidence():
    """Of a worker that was given nothing."""
    return document_of(start_worker("synthetic"))["evidence"]


def told_apart(inspection, evidence):
    """Return the profiles that apply by an ``inspection``, each with whether ``evidence`` lacks what it expects."""
    found = {}
    as_by_default = {*THREADS_ALONE, *([AVX2_ALONE] if evidence["torch"]["cpu_capability"] == "AVX2" else [])}
    for name in profile.names():
        try:
            expect = resolve(profile.load(name), inspection).expect
        except InputError:  # it does not apply here, or lacks a library
            continue
        if expect and name not in as_by_default:
            found[name] = not all(Check(key, value, look_up(evidence, key)).holds for key, value in expect.items())
    return found


def test_what_a_profile_expects_is_not_so_without_it(evidence, inspection):
    """Else it would count as in effect whatever happens to its settings."""
    found = told_apart(inspection, evidence)
    assert len(found) > 3
    assert all(found.values()), found


@pytest.mark.parametrize(("vendor", "dispatch"), [("GenuineIntel", "native"), ("AuthenticAMD", "generic")])
def test_so_it_is_on_another_maker_s_processor(evidence, inspection, vendor, dispatch):
    """MKL asks who made the processor: what this one's takes by itself, that one's takes where it is told to."""
    there = {**inspection, "facts": {**inspection["facts"], "cpu_vendor": vendor}}
    found = told_apart(there, {**evidence, "mkl": {**evidence["mkl"], "dispatch": dispatch}})
    assert all(found.values()), found
    assert ("mkl-native" in found) == (vendor == "AuthenticAMD" and "mkl-dispatch" in inspection["libraries"])
