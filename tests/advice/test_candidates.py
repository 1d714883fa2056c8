"""Which profiles race: the best that are expected, and one of each allocator that is here."""

from __future__ import annotations

from dataclasses import replace

from envkit.advice.candidates import allocator_of, candidates, for_small_blocks
from envkit.advice.expected import Expected
from envkit.common.errors import InputError
from envkit.profiles import profile
from envkit.tuning.narrow import require

from tests.advice.trainings import symptoms
from tests.simulated_worker import inspection

JEMALLOC = inspection([], {})


def applies_to(machine):
    def applies(name):
        try:
            require(profile.load(name), machine)
        except InputError:
            return False
        return True

    return applies


def with_libraries(*names):
    found = {name: {"path": f"/usr/lib/{name}.so", "sha256": "0" * 64} for name in names}
    return inspection([], {"libraries": {**JEMALLOC["libraries"], **found}})


def gain(name, ratio):
    return Expected(name, ratio, ratio - 0.05, ratio + 0.05)


def test_the_allocator_of_a_profile():
    assert allocator_of("glibc-retain") == "glibc"
    assert allocator_of("jemalloc-retain-mkl") == "jemalloc"
    assert allocator_of("mimalloc-2-retain") == "mimalloc-2"
    assert allocator_of("mkl-native") is None


def test_one_of_each_allocator_that_is_here():
    here = with_libraries("tcmalloc", "mimalloc")
    chosen = candidates([gain("glibc-retain", 1.4)], [], [], applies_to(here))
    assert chosen == ["glibc-retain", "mimalloc-retain", "jemalloc-retain", "tcmalloc-retain"]
    assert candidates([gain("glibc-retain", 1.4)], [], [], applies_to(JEMALLOC)) == ["glibc-retain", "jemalloc-retain"]


def test_the_best_of_each_allocator_and_others_up_to_four():
    gains = [gain("jemalloc-retain-mkl", 1.9), gain("glibc-retain-mkl", 1.8), gain("glibc-retain", 1.5),
             gain("mkl-native", 1.1), gain("intel-omp", 1.0)]  # fmt: skip
    chosen = candidates(gains, [], [], applies_to(JEMALLOC))
    assert chosen == ["jemalloc-retain-mkl", "glibc-retain-mkl", "glibc-retain", "mkl-native"]


def test_one_without_a_number_comes_after_those_worth_trying():
    gains = [gain("glibc-retain", 1.4), gain("mkl-native", 1.0)]
    assert candidates(gains, ["jemalloc-retain"], [], applies_to(JEMALLOC)) == [
        "glibc-retain",
        "jemalloc-retain",
        "mkl-native",
    ]


def test_small_blocks_have_one_profile_of_each_mimalloc_that_is_here():
    seen = replace(symptoms(), small_share=0.6, small_per_s=1e5)
    both = applies_to(with_libraries("mimalloc", "mimalloc-2"))
    assert for_small_blocks(seen, [], both) == ["mimalloc-retain", "mimalloc-2-retain"]
    assert for_small_blocks(seen, ["mimalloc-retain", "mimalloc-2-retain"], both) == ["mimalloc", "mimalloc-2"]
    assert for_small_blocks(seen, [], applies_to(JEMALLOC)) == []
    assert for_small_blocks(symptoms(), [], both) == []


def test_what_is_excluded_does_not_race():
    chosen = candidates([gain("glibc-retain", 1.4)], [], ["jemalloc-retain"], applies_to(JEMALLOC))
    assert "jemalloc-retain" not in chosen
