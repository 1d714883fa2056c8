from __future__ import annotations

import pytest
from envkit.profiles import profile
from envkit.profiles.catalogue_messages import way_to_get
from envkit.profiles.messages import (
    BindsProcesses,
    CantBeUsed,
    CommandMissing,
    DividesByZero,
    DoesNotApply,
    LibraryMissing,
    NeedsNumber,
    TunedForOther,
)  # fmt: skip
from envkit.profiles.needs import COUNTED
from envkit.profiles.resolve import of_rank, resolve
from envkit.worker.libraries import preloadable

from tests.refusals import refusal

INSPECTION = {
    "facts": {"physical_cores": 4, "usable_cpus": 6, "numa_nodes": 1, "cpu_quota": 6.0},
    "libraries": {
        "intel-openmp": {"path": "/venv/lib/libiomp5.so", "sha256": "0"},
        "jemalloc": {"path": "/usr/lib/libjemalloc.so.2", "sha256": "1"},
    },
    "library_folders": ["/venv/lib", "/usr/lib"],
    "commands": {"numactl": "/usr/bin/numactl", "missing": None},
}


def machine(**facts):
    return {**INSPECTION, "facts": {**INSPECTION["facts"], **facts}}


@pytest.fixture
def resolved(write_profile):
    """A profile of the YAML lines given, resolved for the machine above or another, or for one of its ranks."""

    def resolve_it(text, on=INSPECTION, ranks=1):
        return resolve(profile.load(str(write_profile("some", text))), of_rank(on, ranks))

    return resolve_it


def test_values_for_this_machine(resolved):
    environment = resolved(
        "preload: [jemalloc, intel-openmp]\n"
        "env:\n  OMP_NUM_THREADS: ${physical_cores}\n  MALLOC_CONF: a:${usable_cpus // 4}\n  X: 0x10\n"
        "prefix:\n  - numactl\n  - --physcpubind=0-${physical_cores - 1}\n"
        "expect:\n  openmp.max_threads: ${physical_cores}\n  openmp.settings.X: '4'\n  openmp.runtime: gnu\n"
    )
    assert environment.variables == {
        "OMP_NUM_THREADS": "4",
        "MALLOC_CONF": "a:1",
        "X": "0x10",
        "LD_PRELOAD": "/usr/lib/libjemalloc.so.2:/venv/lib/libiomp5.so",
    }
    assert list(environment.preload) == ["jemalloc", "intel-openmp"]
    assert environment.prefix == ("numactl", "--physcpubind=0-3")
    assert environment.expect == {"openmp.max_threads": 4, "openmp.settings.X": "4", "openmp.runtime": "gnu"}


def test_nothing_preloaded_sets_no_ld_preload(resolved):
    assert resolved("").variables == {}


def test_a_missing_library_says_which_where_it_was_sought_and_how_to_get_it(resolved):
    missing = LibraryMissing("tcmalloc", ("/venv/lib", "/usr/lib"), way_to_get("tcmalloc"))
    assert refusal(resolved, "preload: [tcmalloc]\n") == CantBeUsed("some", missing)


def test_every_library_that_can_be_preloaded_says_how_to_get_it():
    assert all(way_to_get(name) for name in preloadable())
    assert way_to_get("tcmalloc") == (
        "apt-get install libtcmalloc-minimal4, or conda install -c conda-forge gperftools"
    )
    assert way_to_get("mimalloc") == (
        "pip install cmeel-mimalloc (Debian 13: libmimalloc3); it needs libatomic.so.1 (Debian: libatomic1)"
    )


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ("numa_nodes: 1", None),
        ("usable_cpus: ${physical_cores + 1}", None),
        ("numa_nodes: 2", NeedsNumber("numa_nodes", 2, 1)),
        ("usable_cpus: ${2 * physical_cores}", NeedsNumber("usable_cpus", 8, 6)),
    ],
)
def test_a_machine_without_what_a_profile_needs(resolved, needs, reason):
    text = f"needs:\n  {needs}\npreload: [jemalloc]\n"
    if reason is None:
        assert resolved(text).preload
        return
    assert refusal(resolved, text) == DoesNotApply("some", reason)


def test_what_a_profile_needs_comes_before_what_it_preloads(resolved):
    assert isinstance(refusal(resolved, "needs: {numa_nodes: 2}\npreload: [tcmalloc]\n"), DoesNotApply)


def test_arithmetic_without_a_value_here(resolved):
    found = refusal(resolved, "env:\n  X: ${usable_cpus // (numa_nodes - 1)}\n")
    assert found.problem == DividesByZero("usable_cpus // (numa_nodes - 1)")
    assert found.subject.endswith("/some.yaml")


def test_a_missing_prefix_command(resolved):
    assert refusal(resolved, "prefix: [ionice, -t]\n") == CantBeUsed("some", CommandMissing("ionice"))


# --- for one of several ranks ---


def test_a_rank_has_its_part_of_the_machine(resolved):
    assert resolved("env:\n  OMP_NUM_THREADS: ${usable_cpus}\n", ranks=2).variables == {"OMP_NUM_THREADS": "3"}
    assert of_rank(INSPECTION, 4)["facts"] == {
        "physical_cores": 1, "usable_cpus": 1, "numa_nodes": 1, "machine_numa_nodes": 1, "cpu_quota": 6.0
    }  # fmt: skip
    assert of_rank(INSPECTION, 1) is INSPECTION


def test_a_rank_has_no_more_cpus_than_its_cores():
    assert of_rank(machine(physical_cores=3), 2)["facts"]["usable_cpus"] == 2


def test_a_rank_has_no_more_cpus_than_the_smallest_part():
    """Of six CPUs, two cores have two each and two have one: a rank of two cores may have two CPUs."""
    assert of_rank(machine(cpu_quota=None), 2)["facts"]["usable_cpus"] == 2
    assert of_rank(machine(cpu_quota=None, usable_cpus=8), 2)["facts"]["usable_cpus"] == 4


def test_a_rank_has_as_many_threads_as_cores_unless_a_profile_says_otherwise(resolved):
    text = "env:\n  X: 1\nexpect:\n  openmp.runtime: gnu\n"
    found = resolved(text, ranks=2)
    assert found.variables == {"X": "1", "OMP_NUM_THREADS": "2"}
    assert found.expect == {"openmp.max_threads": 2, "openmp.runtime": "gnu"}
    assert resolved(text).variables == {"X": "1"}


def test_what_a_profile_needs_is_a_ranks_part_but_for_the_machines_nodes(resolved):
    found = resolved("needs: {numa_nodes: 2}\n", machine(numa_nodes=2), ranks=2)
    assert found.variables == {"OMP_NUM_THREADS": "2"}
    found = refusal(lambda: resolved("needs: {usable_cpus: 4}\n", ranks=2))
    assert found == DoesNotApply("some", NeedsNumber("usable_cpus", 4, 3))


@pytest.mark.parametrize(
    "prefix",
    [
        "[taskset, -c, '0']", "[taskset, '1']", "[nice, taskset, '1']", "[numactl, --cpunodebind=0]",
        "[numactl, -C, '0']", "[numactl, --localalloc, --cpubind=0]", "[numactl, --membind=0]",
    ],
)  # fmt: skip
def test_a_rank_can_not_choose_where_it_runs(resolved, prefix):
    assert isinstance(refusal(lambda: resolved(f"prefix: {prefix}\n", ranks=2)).reason, BindsProcesses)


@pytest.mark.parametrize("prefix", ["numactl --interleave=all", "env -u X", "numactl --localalloc"])
def test_a_prefix_that_leaves_the_cpus_alone_goes_with_ranks(resolved, prefix):
    words = prefix.split()
    there = {**INSPECTION, "commands": {"numactl": "/usr/bin/numactl", "env": "/usr/bin/env"}}
    assert resolved(f"prefix: [{', '.join(words)}]\n", there, ranks=2).prefix == tuple(words)


# --- GPUs ---


@pytest.mark.parametrize("facts", [{}, {"gpus": 0}])
def test_gpus_that_were_not_looked_for_are_none(resolved, facts):
    found = refusal(resolved, "needs: {gpus: 1}\n", machine(**facts))
    assert found == DoesNotApply("some", NeedsNumber("gpus", 1, 0, COUNTED["gpus"]))


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_rank_has_one_gpu_and_what_a_profile_needs_is_the_machines(resolved, ranks):
    text = "needs: {gpus: 2}\nenv:\n  OMP_NUM_THREADS: ${physical_cores // gpus}\n"
    assert resolved(text, machine(gpus=2), ranks).variables == {"OMP_NUM_THREADS": "2"}
    found = refusal(resolved, text, machine(gpus=1), ranks)
    assert found == DoesNotApply("some", NeedsNumber("gpus", 2, 1, COUNTED["gpus"]))


def test_a_rank_has_no_gpu_where_there_is_none():
    assert of_rank(machine(gpus=0), 2)["facts"]["gpus"] == 0


def test_a_profile_that_was_tuned_for_another_processor_does_not_apply(resolved):
    text = "cpu: AMD EPYC 7B13\nenv: {A: '1'}\n"
    assert resolved(text, {**INSPECTION, "fingerprint": {"cpu_model": "AMD EPYC 7B13"}}).variables == {"A": "1"}
    found = refusal(resolved, text, {**INSPECTION, "fingerprint": {"cpu_model": "Xeon"}})
    assert (found.profile, found.reason) == ("some", TunedForOther("AMD EPYC 7B13", "Xeon"))
