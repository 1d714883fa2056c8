from __future__ import annotations

import pytest
from envkit.common.errors import InputError
from envkit.profiles import profile
from envkit.profiles.resolve import GET, of_rank, resolve
from envkit.worker.image.libraries import FILE_NAMES

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
    with pytest.raises(InputError) as caught:
        resolved("preload: [tcmalloc]\n")
    assert str(caught.value) == (
        "profile 'some' preloads tcmalloc, which is not installed (looked in /venv/lib, /usr/lib); "
        "get it with: apt-get install libtcmalloc-minimal4, or conda install -c conda-forge gperftools"
    )


def test_every_library_that_can_be_asked_for_says_how_to_get_it():
    assert GET.keys() == FILE_NAMES.keys()


@pytest.mark.parametrize(
    ("needs", "refusal"),
    [
        ("numa_nodes: 1", None),
        ("usable_cpus: ${physical_cores + 1}", None),
        ("numa_nodes: 2", "numa_nodes to be 2 or more, and here it is 1"),
        ("usable_cpus: ${2 * physical_cores}", "usable_cpus to be 8 or more, and here it is 6"),
    ],
)
def test_a_machine_without_what_a_profile_needs(resolved, needs, refusal):
    text = f"needs:\n  {needs}\npreload: [jemalloc]\n"
    if refusal is None:
        assert resolved(text).preload
        return
    with pytest.raises(InputError) as caught:
        resolved(text)
    expected = f"profile 'some' needs {refusal}: it does not apply to this machine; choose another"
    assert str(caught.value) == expected


def test_what_a_profile_needs_comes_before_what_it_preloads(resolved):
    with pytest.raises(InputError, match="needs numa_nodes"):
        resolved("needs: {numa_nodes: 2}\npreload: [tcmalloc]\n")


def test_arithmetic_without_a_value_here(resolved):
    with pytest.raises(InputError, match=r"some.yaml: .*divides by zero on this machine"):
        resolved("env:\n  X: ${usable_cpus // (numa_nodes - 1)}\n")


def test_a_missing_prefix_command(resolved):
    with pytest.raises(InputError, match="profile 'some' starts workers with 'missing', which is not installed"):
        resolved("prefix: [missing, -x]\n")


# --- for one of several ranks ---


def test_a_rank_has_its_part_of_the_machine(resolved):
    assert resolved("env:\n  OMP_NUM_THREADS: ${usable_cpus}\n", ranks=2).variables == {"OMP_NUM_THREADS": "3"}
    assert of_rank(INSPECTION, 4)["facts"] == {
        "physical_cores": 1, "usable_cpus": 1, "numa_nodes": 1, "machine_numa_nodes": 1, "cpu_quota": 6.0
    }  # fmt: skip
    assert of_rank(INSPECTION, 1) is INSPECTION


def test_a_rank_has_no_more_cpus_than_its_cores():
    assert of_rank(machine(physical_cores=3), 2)["facts"]["usable_cpus"] == 2


def test_a_rank_has_as_many_threads_as_cores_unless_a_profile_says_otherwise(resolved):
    text = "env:\n  X: 1\nexpect:\n  openmp.runtime: gnu\n"
    found = resolved(text, ranks=2)
    assert found.variables == {"X": "1", "OMP_NUM_THREADS": "2"}
    assert found.expect == {"openmp.max_threads": 2, "openmp.runtime": "gnu"}
    assert resolved(text).variables == {"X": "1"}


def test_what_a_profile_needs_is_a_ranks_part_but_for_the_machines_nodes(resolved):
    found = resolved("needs: {numa_nodes: 2}\n", machine(numa_nodes=2), ranks=2)
    assert found.variables == {"OMP_NUM_THREADS": "2"}
    with pytest.raises(InputError, match="needs usable_cpus to be 4 or more, and here it is 3"):
        resolved("needs: {usable_cpus: 4}\n", ranks=2)


@pytest.mark.parametrize(
    "prefix",
    [
        "[taskset, -c, '0']", "[/usr/bin/taskset, '1']", "[nice, taskset, '1']", "[numactl, --cpunodebind=0]",
        "[numactl, -C, '0']", "[numactl, --localalloc, --cpubind=0]", "[/usr/bin/numactl, --membind=0]",
    ],
)  # fmt: skip
def test_a_rank_can_not_choose_where_it_runs(resolved, prefix):
    with pytest.raises(InputError, match=r"says where to run \(.*\), and each process gets CPUs of its own; leave one"):
        resolved(f"prefix: {prefix}\n", ranks=2)


@pytest.mark.parametrize("prefix", ["numactl --interleave=all", "env -C /tmp", "numactl --localalloc"])
def test_a_prefix_that_leaves_the_cpus_alone_goes_with_ranks(resolved, prefix):
    words = prefix.split()
    there = {**INSPECTION, "commands": {"numactl": "/usr/bin/numactl", "env": "/usr/bin/env"}}
    assert resolved(f"prefix: [{', '.join(words)}]\n", there, ranks=2).prefix == tuple(words)


# --- GPUs ---


@pytest.mark.parametrize("facts", [{}, {"gpus": 0}])
def test_gpus_that_were_not_looked_for_are_none(resolved, facts):
    with pytest.raises(InputError) as caught:
        resolved("needs: {gpus: 1}\n", machine(**facts))
    assert str(caught.value) == (
        "profile 'some' needs gpus to be 1 or more, and here it is 0 (those that training on --device cuda could use): "
        "it does not apply to this machine; choose another"
    )


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_rank_has_one_gpu_and_what_a_profile_needs_is_the_machines(resolved, ranks):
    text = "needs: {gpus: 2}\nenv:\n  OMP_NUM_THREADS: ${physical_cores // gpus}\n"
    assert resolved(text, machine(gpus=2), ranks).variables == {"OMP_NUM_THREADS": "2"}
    with pytest.raises(InputError, match="needs gpus to be 2 or more, and here it is 1 "):
        resolved(text, machine(gpus=1), ranks)


def test_a_rank_has_no_gpu_where_there_is_none():
    assert of_rank(machine(gpus=0), 2)["facts"]["gpus"] == 0


def test_a_profile_that_was_tuned_for_another_processor_does_not_apply(resolved):
    text = "cpu: AMD EPYC 7B13\nenv: {A: '1'}\n"
    assert resolved(text, {**INSPECTION, "fingerprint": {"cpu_model": "AMD EPYC 7B13"}}).variables == {"A": "1"}
    with pytest.raises(InputError) as raised:
        resolved(text, {**INSPECTION, "fingerprint": {"cpu_model": "Xeon"}})
    assert str(raised.value).startswith(
        "profile 'some' was tuned for AMD EPYC 7B13, and this is Xeon: it does not apply"
    )
