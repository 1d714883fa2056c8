"""Which settings a profile has, and what of it stays where one of them is alone or missing."""

from __future__ import annotations

import pytest
from envkit.profiles import ablation, profile
from envkit.profiles.ablation import Setting
from envkit.tuning import profile_file


def setting(taken, name):
    return next(one for one in ablation.settings(taken) if one.name == name)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("baseline", {}),
        ("glibc-retain", {"GLIBC_TUNABLES": None}),
        ("gnu-omp", {"OMP_NUM_THREADS": None, "OMP_PLACES": None, "OMP_PROC_BIND": None, "GOMP_SPINCOUNT": None}),
        ("intel-omp", {"intel-openmp": None, "KMP_AFFINITY": "intel-openmp", "KMP_BLOCKTIME": "intel-openmp",
                       "OMP_NUM_THREADS": None}),
        ("intel-omp-jemalloc-retain", {"intel-openmp": None, "KMP_AFFINITY": "intel-openmp",
                                       "KMP_BLOCKTIME": "intel-openmp", "jemalloc": None, "MALLOC_CONF": "jemalloc",
                                       "OMP_NUM_THREADS": None}),
        ("tcmalloc-retain", {"tcmalloc": None, "TCMALLOC_RELEASE_RATE": "tcmalloc",
                             "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES": "tcmalloc", "THP_MEM_ALLOC_ENABLE": None}),
        ("mimalloc-retain-mkl", {"mimalloc": None, "MIMALLOC_PURGE_DELAY": "mimalloc", "mkl-dispatch": None}),
        ("mimalloc-2-retain", {"mimalloc-2": None, "MIMALLOC_ALLOW_DECOMMIT": "mimalloc-2",
                               "MIMALLOC_LARGE_OS_PAGES": "mimalloc-2"}),
        ("one-socket", {"OMP_NUM_THREADS": None, "numactl --cpunodebind=0 --membind=0": None}),
    ],
)  # fmt: skip
def test_the_settings_and_which_library_they_need(name, wanted):
    found = ablation.settings(profile.load(name))
    assert [(one.name, one.needs) for one in found] == [*wanted.items()]


def test_without_a_library_nothing_is_left_that_needs_it():
    taken = profile.load("intel-omp")
    left = ablation.without(taken, setting(taken, "intel-openmp"))
    assert (left.preload, [*left.env], [*left.expect]) == ((), ["OMP_NUM_THREADS"], ["openmp.max_threads"])
    assert (left.name, left.extends) == ("intel-omp-without-intel-openmp", None)


def test_alone_a_variable_has_the_library_that_it_needs():
    taken = profile.load("intel-omp")
    left = ablation.alone(taken, setting(taken, "KMP_BLOCKTIME"))
    assert (left.preload, left.env) == (("intel-openmp",), {"KMP_BLOCKTIME": "0"})
    assert left.expect == {"openmp.runtime": "intel", "openmp.blocktime_ms": 0}
    assert left.name == "intel-omp-only-intel-openmp-KMP_BLOCKTIME"
    assert setting(taken, "KMP_BLOCKTIME").alone == "intel-openmp + KMP_BLOCKTIME"
    assert setting(taken, "OMP_NUM_THREADS").alone == "OMP_NUM_THREADS alone"


@pytest.mark.parametrize(
    ("name", "missing", "gone"),
    [
        # how many threads are pinned follows from how many there are
        ("intel-omp", "OMP_NUM_THREADS", {"openmp.max_threads", "threads.pinned_cpus"}),
        ("intel-omp", "KMP_AFFINITY", {"threads.pinned_cpus"}),
        # the runtime that is there anyway is expected of no setting
        ("gnu-omp", "GOMP_SPINCOUNT", {"openmp.settings.GOMP_SPINCOUNT"}),
        ("gnu-omp-glibc-retain", "OMP_PLACES", {"openmp.places"}),
        ("gnu-omp-glibc-retain", "GLIBC_TUNABLES", {
            "malloc.settings.glibc.malloc.mmap_threshold", "malloc.settings.glibc.malloc.trim_threshold",
            "malloc.settings.glibc.malloc.hugetlb", "memory.huge_pages",
        }),
        # huge pages come of several settings together
        ("mimalloc-2-retain", "MIMALLOC_ALLOW_DECOMMIT", {
            "malloc.settings.MIMALLOC_ALLOW_DECOMMIT", "memory.huge_pages",
        }),
        ("mimalloc-retain-mkl", "mkl-dispatch", {"mkl.dispatch"}),
        ("interleave", "numactl --interleave=all", {"memory.numa_policy"}),
        # what no variable of the profile is known to show is expected of all of it alone
        ("tcmalloc-retain", "THP_MEM_ALLOC_ENABLE", {
            "malloc.settings.TCMALLOC_AGGRESSIVE_DECOMMIT", "torch.huge_page_tensors", "memory.huge_pages",
        }),
    ],
)  # fmt: skip
def test_only_what_still_applies_is_expected(name, missing, gone):
    taken = profile.load(name)
    left = ablation.without(taken, setting(taken, missing))
    assert taken.expect.keys() - left.expect.keys() == gone
    assert left.expect.items() <= taken.expect.items()


def test_each_shipped_profile_s_parts_can_be_written_and_read(tmp_path):
    for name in profile.names():
        taken = profile.load(name)
        for one in ablation.settings(taken):
            for part in (ablation.alone(taken, one), ablation.without(taken, one)):
                path = tmp_path / f"{part.name}.yaml"
                path.write_bytes(profile_file.to_yaml(profile_file.document(part)))
                read = profile.load(str(path))
                assert (read.preload, read.env, read.prefix) == (part.preload, part.env, part.prefix), part.name
                assert (read.expect, read.needs, read.numerics) == (part.expect, part.needs, part.numerics), part.name


def test_a_variable_that_nobody_knows_is_a_setting_too(write_profile):
    taken = profile.load(str(write_profile("mine", "preload: [jemalloc]\nenv: {OWN: 1, MALLOC_CONF: 'thp:always'}\n")))
    found = ablation.settings(taken)
    assert found == [
        Setting("jemalloc", "library"),
        Setting("MALLOC_CONF", "variable", "jemalloc"),
        Setting("OWN", "variable"),
    ]


def test_a_part_of_any_text_is_a_profile(write_profile, tmp_path):
    """Its title names the setting, and a title is one line without control characters."""
    whole = profile.load(str(write_profile("odd", 'prefix: [env, "A=x\\e[31my\\nz"]\n')))
    part = ablation.alone(whole, *ablation.settings(whole))
    path = tmp_path / f"{part.name}.yaml"
    profile_file.write(part, path)
    loaded = profile.load(str(path))
    assert (loaded.prefix, loaded.title) == (whole.prefix, "Of odd: env A=x\\x1b[31my z alone")
