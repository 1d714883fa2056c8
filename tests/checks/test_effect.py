from __future__ import annotations

import pytest
from envkit.checks.effect import Check, check, look_up, shown
from envkit.checks.effect_messages import (
    GLIBC_MALLOC,
    ChangedByProgram,
    Ignored,
    IgnoredByUnknown,
    NoComplaint,
    NoSuchSetting,
    NotAskedFor,
    ReadBy,
    RemovedByProgram,
    SetBeforeTorch,
    SetByProgram,
    TensorsBuiltIn,
    TensorsFrom,
    Value,
)
from envkit.profiles.environment import Environment

EVIDENCE = {
    "openmp": {"runtime": "gnu", "max_threads": 2, "settings": {"GOMP_SPINCOUNT": "0"}},
    "malloc": {"allocator": "glibc", "settings": {"glibc.malloc.hugetlb": 1, "background_thread": True}},
    "threads": {"error": "RuntimeError: boom"},
    "variables": {"sensitive": {}, "preloaded": {}},
}


def environment(expect=None, preload=None, variables=None):
    return Environment("p", "A test", variables or {}, preload or {}, (), expect or {}, "same")


def unmet(environment, kept=None, **variables):
    evidence = {**EVIDENCE, "variables": {"sensitive": {}, "preloaded": {}, **variables}}
    return [one for one in check(environment, evidence, kept or {}) if not one.holds]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("openmp.runtime", "gnu"),
        ("openmp.settings.GOMP_SPINCOUNT", "0"),
        ("malloc.settings.glibc.malloc.hugetlb", 1),
        ("openmp.settings.MISSING", None),
        ("openmp.nothing", None),
        ("torch.num_threads", None),
        ("threads.pinned_cpus", None),
    ],
)
def test_look_up(key, value):
    assert look_up(EVIDENCE, key) == value


@pytest.mark.parametrize(
    ("expected", "seen", "holds"),
    [
        ("close", "CLOSE", True),
        ("0", "0", True),
        ("0", 0, False),
        (0, "0", False),
        (1, True, False),
        (True, True, True),
        (2, 2, True),
        (2, 3, False),
        ("gnu", None, False),
    ],
)
def test_what_counts_as_the_same(expected, seen, holds):
    assert Check("key", expected, seen).holds is holds


def test_everything_met():
    wanted = environment(
        expect={"openmp.runtime": "gnu", "openmp.max_threads": 2},
        preload={"jemalloc": "/lib/j.so"},
        variables={"OMP_NUM_THREADS": "2", "OTHER": "x"},
    )
    assert unmet(wanted, preloaded={"/lib/j.so": "mapped"}, sensitive={"OMP_NUM_THREADS": "2"}) == []


@pytest.mark.parametrize(
    ("preloaded", "seen"),
    [
        ({}, NotAskedFor().to_json()),
        ({"/elsewhere/j.so": "mapped"}, NotAskedFor().to_json()),
        ({"/lib/j.so": "not mapped: invalid ELF header"}, "not mapped: invalid ELF header"),
    ],
)
def test_a_library_that_is_not_mapped(preloaded, seen):
    assert unmet(environment(preload={"jemalloc": "/lib/j.so"}), preloaded=preloaded) == [
        Check("preload.jemalloc", "mapped", seen)
    ]


def test_expectations_that_are_not_met():
    wanted = environment(expect={"openmp.runtime": "intel", "threads.pinned_cpus": 2})
    # the probe of the second has failed
    assert unmet(wanted) == [Check("openmp.runtime", "intel", "gnu"), Check("threads.pinned_cpus", 2, None)]


def test_what_a_worker_could_not_tell_is_neither_met_nor_not():
    evidence = {**EVIDENCE, "gpu": {"count": 1, "not_verified": {"one_queue": "the times are not clear"}}}
    unclear, missing = check(environment(expect={"gpu.one_queue": True, "gpu.work_queues": 1}), evidence, {})
    assert unclear == Check("gpu.one_queue", True, "the times are not clear", verified=False)
    assert unclear.holds
    assert missing == Check("gpu.work_queues", 1, None)  # of this it says nothing at all
    assert not missing.holds


@pytest.mark.parametrize(
    ("set_", "given", "kept", "check_"),
    [
        ({"OMP_NUM_THREADS": "2"}, {}, {}, Check("variable OMP_NUM_THREADS", "2", "not set")),
        ({"OMP_NUM_THREADS": "2"}, {"OMP_NUM_THREADS": "4"}, {}, Check("variable OMP_NUM_THREADS", "2", "4")),
        ({}, {"KMP_BLOCKTIME": "0"}, {}, Check("variable KMP_BLOCKTIME", "not set", "0")),
        ({}, {}, {"KMP_BLOCKTIME": "0"}, Check("variable KMP_BLOCKTIME", "0", "not set")),
    ],
)
def test_the_worker_must_have_been_given_these_variables_and_no_other(set_, given, kept, check_):
    assert unmet(environment(variables=set_), kept=kept, sensitive=given) == [check_]


def test_a_kept_variable_counts_unless_the_profile_sets_it():
    assert unmet(environment(), kept={"OMP_PLACES": "cores"}, sensitive={"OMP_PLACES": "cores"}) == []
    wanted = environment(variables={"OMP_PLACES": "threads"})
    assert unmet(wanted, kept={"OMP_PLACES": "cores"}, sensitive={"OMP_PLACES": "threads"}) == []


def test_evidence_without_variables_is_not_met():
    wanted = environment(preload={"jemalloc": "/lib/j.so"}, variables={"MALLOC_CONF": "a:b"})
    checks = check(wanted, {**EVIDENCE, "variables": {"error": "OSError: no /proc"}}, {})
    assert [one.key for one in checks if not one.holds] == ["preload.jemalloc", "variable MALLOC_CONF"]


# --- what holds without being expected in words ---


def openmp(**found):
    return {"openmp": {"runtime": "gnu", "max_threads": 2, **found}}


def seen(variables, evidence=None, expect=None, printed=""):
    """What is not met for a worker that was given just these variables."""
    wanted = environment(expect, variables=variables)
    document = {**EVIDENCE, **(evidence or {}), "variables": {"sensitive": variables, "preloaded": {}}}
    return [(one.key, one.expected, one.seen) for one in check(wanted, document, {}, printed) if not one.holds]


@pytest.mark.parametrize(
    ("name", "value", "runtime", "readers"),
    [
        ("MALLOC_CONF", "dirty_decay_ms:-1", "gnu", ("jemalloc",)),
        ("TCMALLOC_RELEASE_RATE", "0", "gnu", ("tcmalloc",)),
        ("MIMALLOC_VERBOSE", "1", "gnu", ("mimalloc", "mimalloc-2")),
        ("KMP_BLOCKTIME", "0", "gnu", ("intel-openmp", "llvm-openmp")),
        ("KMP_BLOCKTIME", "0", "intel", None),
        ("GOMP_SPINCOUNT", "0", "intel", ("gnu-openmp",)),
    ],
)
def test_a_variable_must_be_read_by_a_library_that_runs(name, value, runtime, readers):
    found = seen({name: value}, openmp(runtime=runtime))
    if readers is None:
        assert found == []
        return
    of_openmp = all("openmp" in reader for reader in readers)
    ignored = Ignored((f"{runtime}-openmp" if of_openmp else "glibc",))
    assert found == [(f"variable {name}", ReadBy(readers).to_json(), ignored.to_json())]


def test_a_variable_that_no_known_library_can_read():
    nothing = {"openmp": {"runtime": None}, "malloc": {}}
    said = ("variable KMP_BLOCKTIME", ReadBy(("intel-openmp", "llvm-openmp")).to_json(), IgnoredByUnknown().to_json())
    assert seen({"KMP_BLOCKTIME": "0"}, nothing) == [said]


@pytest.mark.parametrize(
    ("variables", "read"),
    [
        ({"MALLOC_ARENA_MAX": "2"}, False),
        ({"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2:glibc.malloc.hugetlb=1"}, False),
        ({"GLIBC_TUNABLES": "glibc.cpu.x86_non_temporal_threshold=1048576"}, True),
    ],
)
def test_what_is_for_glibc_s_malloc_under_another(variables, read):
    (name,) = variables
    found = seen(variables, {"malloc": {"allocator": "jemalloc", "settings": {}}})
    ignored = (f"variable {name}", ReadBy((GLIBC_MALLOC,)).to_json(), Ignored(("jemalloc",)).to_json())
    assert found == ([] if read else [ignored])
    assert seen(variables, {"malloc": {"allocator": "glibc", "settings": {}}}) == []
    assert seen(variables, {"malloc": {"error": "OSError: no"}}) == []  # nothing tells


def kmp(**settings):
    return {"openmp": {"runtime": "intel", "settings": settings}}


BUILT_IN = {"malloc": {"allocator": "jemalloc", "tensors": "built-in", "settings": {}}}


def test_a_preloaded_allocator_does_not_serve_tensors_where_pytorch_has_its_own():
    wanted = environment(preload={"jemalloc": "/lib/j.so", "intel-openmp": "/lib/i.so"})
    preloaded = {"preloaded": {"/lib/j.so": "mapped", "/lib/i.so": "mapped"}, "sensitive": {}}
    evidence = {**EVIDENCE, **BUILT_IN, "variables": preloaded}
    (failed,) = [one for one in check(wanted, evidence, {}) if not one.holds]
    assert failed.key == "malloc.tensors"
    assert (failed.expected, failed.seen) == (TensorsFrom("jemalloc").to_json(), TensorsBuiltIn().to_json())
    served = {**evidence, "malloc": {**BUILT_IN["malloc"], "tensors": "jemalloc"}}
    assert all(one.holds for one in check(wanted, served, {}))


@pytest.mark.parametrize(
    ("variables", "concerned"),
    [
        ({"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1073741824"}, True),
        ({"MALLOC_TRIM_THRESHOLD_": "4294967296"}, True),
        ({"GLIBC_TUNABLES": "glibc.pthread.stack_cache_size=0"}, False),
        ({"MIMALLOC_PURGE_DELAY": "-1"}, False),  # the one that is built in reads it too
    ],
)
def test_settings_of_glibc_s_malloc_do_not_concern_tensors_there(variables, concerned):
    (name,) = variables
    found = seen(variables, {"malloc": {**BUILT_IN["malloc"], "allocator": "glibc"}})
    message = (f"variable {name}", TensorsFrom(GLIBC_MALLOC).to_json(), TensorsBuiltIn().to_json())
    assert [one for one in found if one[2] == TensorsBuiltIn().to_json()] == ([message] if concerned else [])


def mimalloc(**settings):
    return {"malloc": {"allocator": "mimalloc-2", "settings": settings}}


@pytest.mark.parametrize(
    ("variables", "evidence", "unmet"),
    [
        ({"OMP_NUM_THREADS": "2"}, {}, []),
        ({"OMP_NUM_THREADS": "2,1"}, {}, []),
        ({"OMP_NUM_THREADS": "4"}, {}, [("openmp.max_threads", 4, 2)]),
        ({"OMP_NUM_THREADS": "4"}, {"openmp": {"error": "OSError: no"}}, []),  # nothing tells
        ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0x1"}, {}, []),
        ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=2"}, {}, [("malloc.settings.glibc.malloc.hugetlb", 2, 1)]),
        (
            {"MALLOC_CONF": "background_thread:false,dirty_decay_ms:-1,thp:always"},
            {"malloc": {"allocator": "jemalloc",
                        "settings": {"background_thread": True, "dirty_decay_ms": -1, "thp": "always"}}},
            [("malloc.settings.background_thread", False, True)],
        ),
        ({"CUBLAS_WORKSPACE_CONFIG": ":16:8:4096:2"}, {"gpu": {"cublas_workspace_bytes": 8519680}}, []),
        ({"CUBLAS_WORKSPACE_CONFIG": ":16:8"}, {"gpu": {"cublas_workspace_bytes": 33554432}},
         [("gpu.cublas_workspace_bytes", 131072, 33554432)]),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "4"}, {"gpu": {"work_queues": 8}}, [("gpu.work_queues", 4, 8)]),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "4"}, {"gpu": {"not_verified": {"work_queues": "too old"}}}, []),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, {"gpu": {"settings": {"expandable_segments": False}}},
         [("gpu.settings.expandable_segments", True, False)]),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, {"gpu": {"settings": {"expandable_segments": True}}}, []),
        ({"OMP_UNKNOWN": "4"}, {}, []),
        # a tunable that the loader does not list: of another version, or another processor
        ({"GLIBC_TUNABLES": "glibc.cpu.name=generic"}, {},
         [("malloc.settings.glibc.cpu.name", "generic", NoSuchSetting().to_json())]),
        ({"KMP_PLAIN_BARRIER": "2"}, kmp(KMP_PLAIN_BARRIER="2,3"), []),
        ({"KMP_PLAIN_BARRIER": "2,2"}, kmp(KMP_PLAIN_BARRIER="2,3"),
         [("openmp.settings.KMP_PLAIN_BARRIER", "2,2", "2,3")]),
        # distributed barriers take the place of all others
        ({"KMP_PLAIN_BARRIER_PATTERN": "Hyper"}, kmp(KMP_PLAIN_BARRIER_PATTERN="dist,dist"),
         [("openmp.settings.KMP_PLAIN_BARRIER_PATTERN", "hyper", "dist")]),
        # what only other versions have; what it does not list of all versions' may be an older name of another
        ({"MIMALLOC_PURGE_DELAY": "-1"}, mimalloc(MIMALLOC_DECOMMIT_DELAY=25),
         [("malloc.settings.MIMALLOC_PURGE_DELAY", "-1", NoSuchSetting().to_json())]),
        ({"MIMALLOC_ALLOW_DECOMMIT": "0"}, mimalloc(MIMALLOC_PURGE_DELAY=10),
         [("malloc.settings.MIMALLOC_ALLOW_DECOMMIT", "0", NoSuchSetting().to_json())]),
        ({"MIMALLOC_EAGER_COMMIT": "0"}, mimalloc(MIMALLOC_PURGE_DELAY=10),
         [("malloc.settings.MIMALLOC_EAGER_COMMIT", "0", NoSuchSetting().to_json())]),
        ({"MIMALLOC_PURGE_DELAY": "-1"}, mimalloc(MIMALLOC_PURGE_DELAY=-1), []),
        ({"MIMALLOC_LARGE_OS_PAGES": "1"}, mimalloc(MIMALLOC_PURGE_DELAY=-1), []),
        ({"MIMALLOC_PURGE_DELAY": "-1"}, mimalloc(), []),  # nothing tells
        # what wins over a wait policy is seen
        ({"OMP_WAIT_POLICY": "passive"}, openmp(wait_policy="passive"), []),
        ({"OMP_WAIT_POLICY": "PASSIVE"}, openmp(wait_policy="passive"), []),
        ({"OMP_WAIT_POLICY": "passive"}, openmp(wait_policy="neither"),
         [("openmp.wait_policy", "passive", "neither")]),
        ({"OMP_WAIT_POLICY": "active"}, openmp(wait_policy="passive"), [("openmp.wait_policy", "active", "passive")]),
        ({"OMP_WAIT_POLICY": "active"}, openmp(wait_policy=None), []),
    ],
)  # fmt: skip
def test_a_value_must_be_in_force(variables, evidence, unmet):
    assert seen(variables, evidence) == unmet


def test_what_is_expected_in_words_is_not_said_twice():
    assert seen({"OMP_NUM_THREADS": "4"}, expect={"openmp.max_threads": 4}) == [("openmp.max_threads", 4, 2)]


COMPLAINT = "libgomp: Invalid value for environment variable OMP_PLACES"


def test_a_complaint_about_what_the_profile_sets_is_a_failure():
    failed = seen({"OMP_PLACES": "x"}, printed=f"chatter\n{COMPLAINT}\n{COMPLAINT}\n")
    assert failed == [("stderr", NoComplaint().to_json(), COMPLAINT)]


def test_a_complaint_about_what_it_does_not_set_is_none():
    assert seen({"OMP_NUM_THREADS": "2"}, printed=f"{COMPLAINT}\n") == []
    assert seen({}, printed=f"{COMPLAINT}\n") == []


def test_a_complaint_that_names_nothing_fails_where_nothing_proves_the_setting():
    """libgomp says of OMP_PROC_BIND what it is, and nothing of OMP_DISPLAY_ENV."""
    line = "libgomp: Affinity not supported on this configuration"
    assert seen({"OMP_NUM_THREADS": "2"}, printed=line) == []
    assert seen({"OMP_DISPLAY_ENV": "true"}, printed=line) == [("stderr", NoComplaint().to_json(), line)]
    bound = {"OMP_PROC_BIND": "close"}
    assert seen(bound, printed=line) == [("stderr", NoComplaint().to_json(), line)]
    expect = {"openmp.proc_bind": "close"}
    assert seen(bound, openmp(proc_bind="CLOSE"), expect, printed=line) == []


@pytest.mark.parametrize(
    "text", ["", "chatter about libgomp: all is well", "OMP: Info #276: omp_set_nested routine deprecated",
             "<jemalloc>: -- Set conf value: thp:always",
             "OMP: Warning #190: Forking a process while a parallel region is active is potentially unsafe."],
)  # fmt: skip
def test_other_output_is_no_complaint(text):
    variables = {"OMP_DISPLAY_ENV": "true", "MALLOC_ARENA_MAX": "1"}
    assert seen(variables, printed=text) == []


# --- a program that changes its own environment ---


def changed(variables, evidence=None, expect=None, **values):
    """What is not met, or not verified, for a worker that was given these variables and has changed some since."""
    wanted = environment(expect, variables=variables)
    found = {"sensitive": variables, "preloaded": {}, "changed": values}
    document = {**EVIDENCE, **(evidence or {}), "variables": found}
    return [one for one in check(wanted, document, {}) if not (one.holds and one.verified)]


@pytest.mark.parametrize("name", ["LD_PRELOAD", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "PYTHONMALLOC"])
@pytest.mark.parametrize("now", [None, "other"])
def test_what_is_read_at_the_start_stays(name, now):
    value = "glibc.malloc.hugetlb=1" if name == "GLIBC_TUNABLES" else "1"
    assert changed({name: value}, **{name: {"now": now, "at_torch": now}}) == []


@pytest.mark.parametrize(
    ("seen", "did"),
    [
        ({"now": "3", "at_torch": "3"}, SetByProgram(Value("3"), "OMP_NUM_THREADS", "3")),
        ({"now": "4", "at_torch": "3"}, SetByProgram(Value("3"), "OMP_NUM_THREADS", "3")),
        ({"now": "3"}, SetByProgram(Value("3"), "OMP_NUM_THREADS", "3")),
        ({"now": None, "at_torch": None}, RemovedByProgram(Value("3"), "OMP_NUM_THREADS")),
    ],
)
def test_what_is_read_late_is_as_the_library_says_and_the_program_is_named(seen, did):
    given = {"OMP_NUM_THREADS": "4"}
    assert changed(given, openmp(max_threads=4), OMP_NUM_THREADS=seen) == []
    found = changed(given, openmp(max_threads=3), OMP_NUM_THREADS=seen)
    assert found == [Check("openmp.max_threads", 4, did.to_json())]
    expected = changed(given, openmp(max_threads=3), {"openmp.max_threads": 4}, OMP_NUM_THREADS=seen)
    assert expected == found


def test_what_no_library_tells_of():
    """Whoever reads it does so when torch is imported, or later."""
    given = {"TORCH_SHOW_CPP_STACKTRACES": "1"}
    before = changed(given, TORCH_SHOW_CPP_STACKTRACES={"now": "0", "at_torch": "0"})
    assert before == [Check("variable TORCH_SHOW_CPP_STACKTRACES", "1", SetBeforeTorch("0").to_json())]
    for seen in ({"now": "0"}, {"now": "0", "at_torch": "1"}):
        (later,) = changed(given, TORCH_SHOW_CPP_STACKTRACES=seen)
        assert (later.holds, later.verified) == (True, False)
        assert later.seen == ChangedByProgram("0").to_json()
        assert shown(later.seen) == ChangedByProgram("0")
    (set_back,) = changed(given, TORCH_SHOW_CPP_STACKTRACES={"now": "1", "at_torch": "0"})
    assert not set_back.verified
    # numpy may have brought an MKL, which read it before torch was imported
    (of_others,) = changed({"MKL_DYNAMIC": "1"}, MKL_DYNAMIC={"now": "0", "at_torch": "0"})
    assert not of_others.verified


def test_a_runtime_that_does_not_tell_which_value_it_read():
    """Said once: by the setting where that is expected, and by the variable otherwise."""
    untold = openmp(not_verified={"settings": "why", "wait_policy": "why"})
    (one,) = changed(
        {"GOMP_SPINCOUNT": "0"}, untold, {"openmp.settings.GOMP_SPINCOUNT": "0"}, GOMP_SPINCOUNT={"now": "1"}
    )
    assert one == Check("openmp.settings.GOMP_SPINCOUNT", "0", "why", verified=False)
    (one,) = changed({"GOMP_SPINCOUNT": "0"}, untold, GOMP_SPINCOUNT={"now": "1"})
    assert (one.key, one.verified) == ("variable GOMP_SPINCOUNT", False)


def test_what_the_program_changes_that_is_not_the_profile_s():
    assert changed({}, OMP_NUM_THREADS={"now": "4", "at_torch": "4"}) == []


def test_what_a_command_that_left_no_evidence_can_show():
    """Its preloads and variables were seen from outside; what else is expected of it was not seen."""
    given = {"KMP_BLOCKTIME": "0", "LD_PRELOAD": "/lib/x.so"}
    profile = environment({"openmp.runtime": "intel"}, {"x": "/lib/x.so"}, given)
    outside = {"preloaded": {"/lib/x.so": "mapped"}}
    evidence = {"variables": {"sensitive": given, **outside}, "not_observed": "why", "seconds": 0.0}
    checks = {one.key: one for one in check(profile, evidence, {})}
    assert checks["preload.x"].holds
    assert checks["openmp.runtime"] == Check("openmp.runtime", "intel", "not seen")
    assert not checks["openmp.runtime"].holds
    given = {"LD_PRELOAD": "/lib/x.so"}
    nothing = environment({}, {"x": "/lib/x.so"}, given)
    seen = {"variables": {"sensitive": given, **outside}, "not_observed": "why"}
    assert all(one.holds for one in check(nothing, seen, {}))


def test_what_else_the_profile_sets_is_compared_where_it_was_asked_for():
    profile = environment(variables={"GREETING": "hello", "OTHER": "x"})
    assert unmet(profile, named={"GREETING": "hello"}) == []
    assert unmet(profile, named={"GREETING": None}) == [Check("variable GREETING", "hello", "not set")]
    assert unmet(profile, named={"GREETING": ""}) == [Check("variable GREETING", "hello", "")]
