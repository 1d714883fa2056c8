"""Why a training takes longer than it must."""

from __future__ import annotations

from dataclasses import replace

import pytest
from envkit.advice.messages import GenericMatrixCode, KernelTime, NativeMatrixCode
from envkit.advice.reasons import REASONS, why_not, why_to_try
from envkit.profiles import profile
from envkit.rendering import text

from tests.advice.trainings import symptoms


def codes(profile, symptoms):
    return [reason.code for reason in why_to_try(profile, symptoms)]


def test_a_profile_is_tried_for_what_it_takes_away():
    seen = symptoms(system_share=0.3, matrix=0.4)
    assert codes("glibc-retain-mkl", seen) == ["page-faults", "generic-matrix-code"]
    assert codes("mkl-native", seen) == ["generic-matrix-code"]
    assert codes("glibc-retain", seen) == ["page-faults"]
    assert codes("intel-omp", seen) == []


def test_reasons_are_in_the_users_terms():
    seen = symptoms(system_share=0.3, matrix=0.4)
    said = [reason.seen(seen) for reason in why_to_try("glibc-retain-mkl", seen)]
    assert said == [KernelTime(pytest.approx(0.3), pytest.approx(5000)), GenericMatrixCode(pytest.approx(0.4))]
    assert text(said[0]) == "30% of its CPU time is the kernel's, with 5,000 page faults a step"


def test_page_faults_of_a_process_whose_steps_are_not_seen():
    seen = replace(symptoms(system_share=0.3), steps=None, faults_per_s=2000.0)
    (said,) = [reason.seen(seen) for reason in why_to_try("glibc-retain", seen)]
    assert said == KernelTime(pytest.approx(0.3), faults_per_s=2000.0)
    assert text(said) == "30% of its CPU time is the kernel's, with 2,000 page faults a second"


def test_why_a_profile_can_not_help():
    seen = symptoms(system_share=0.01, matrix=0.4, dispatch="native")
    assert codes("glibc-retain-mkl", seen) == []
    said = why_not("glibc-retain-mkl", seen)
    kernel, matrix = said.clauses
    assert (kernel.share, matrix) == (pytest.approx(0.01), NativeMatrixCode())
    assert text(why_not("intel-omp", seen)) == "runnable threads waited for a CPU in 1% of their time"


def test_many_small_operators_are_a_reason_for_an_allocator_of_small_blocks():
    seen = replace(symptoms(system_share=0.01), small_share=0.54, small_per_s=90_000.0)
    assert codes("mimalloc-retain", seen) == ["small-blocks"]
    assert codes("jemalloc-retain", seen) == []
    (said,) = [reason.seen(seen) for reason in why_to_try("mimalloc-retain", seen)]
    assert text(said) == "54% of a step is in operators of less than 20 us each, 90,000 of them a second"
    assert codes("mimalloc-retain", replace(seen, small_share=0.3)) == []
    assert codes("mimalloc-retain", replace(seen, small_share=None)) == []


def test_the_kernel_has_other_work_than_page_faults():
    seen = replace(symptoms(system_share=0.5), faults_per_s=900.0)
    assert codes("glibc-retain", seen) == []


def test_what_was_not_seen_is_no_reason_and_none_against():
    seen = replace(symptoms(), operators=None, generic_matrix_code=None)
    assert codes("mkl-native", seen) == []
    assert why_not("mkl-native", seen) is None


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.code)
def test_mends_are_profiles_that_are_shipped(reason):
    assert set(reason.mends) <= set(profile.names())
