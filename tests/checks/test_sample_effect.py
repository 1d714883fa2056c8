"""Processes of a command that inherit fewer CPUs than the command has, under a profile that binds threads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from envkit.checks.effect_messages import (
    CompiledNothing,
    Cpus,
    InheritedCpus,
    NoSuchSetting,
    OwnCpus,
    ReadBy,
    ThreadsOnOneCpu,
)
from envkit.checks.sample_effect import check_sample, judged, most_cpus
from envkit.profiles.environment import Environment


def process(started_on, masks, pid=7):
    threads = {"count": sum(masks.values()), "masks": masks, "started_on": started_on}
    return {"pid": pid, "argv": ["python", f"{pid}.py"], "evidence": {"variables": {}, "threads": threads}}


def environment(**variables):
    return Environment("mine", "A test", variables, {}, (), {}, "same")


PARENT = process("0,1,2,3", {"0": 1, "1": 1, "2": 1, "3": 1}, pid=1)
BOUND = {"GOMP_CPU_AFFINITY": "0-3"}


def failing(document, given, cpus=4):
    checks = judged(document, environment(**given), {}, (), cpus).checks
    return {one.key: (one.expected, one.seen) for one in checks if one.key.startswith("threads.")}


def test_a_process_that_inherits_one_cpu_fails():
    assert most_cpus([PARENT["evidence"], process("0", {"0": 1})["evidence"]]) == 4
    assert failing(process("0", {"0": 1}), BOUND) == {
        "threads.started_on": (Cpus(4).to_json(), InheritedCpus(1).to_json())
    }
    assert failing(PARENT, BOUND) == {}


def test_several_threads_on_one_cpu_fail():
    assert failing(process("0,1,2,3", {"2": 4}), BOUND) == {
        "threads.masks": (OwnCpus().to_json(), ThreadsOnOneCpu(4, "2").to_json())
    }


@pytest.mark.parametrize("document", [process("0", {"0": 1}), process("0,1,2,3", {"2": 4})])
def test_where_the_profile_binds_nothing_it_is_the_command_s_own_choice(document):
    assert failing(document, {}) == {}


def test_earlier_records_do_not_say_where_a_process_began():
    old = {"pid": 1, "argv": ["python"], "evidence": {"variables": {}, "threads": {"masks": {"0": 1}}}}
    assert failing(old, BOUND, cpus=most_cpus([old["evidence"]])) == {}


def test_of_a_measured_command_the_process_is_named():
    sample = {**PARENT, "other_processes": [process("0", {"0": 1})], "stderr": ""}
    failed = [one for one in check_sample(environment(**BOUND), sample, {}) if one.key.startswith("threads.")]
    assert [one.key for one in failed] == ["threads.started_on (process 7: python 7.py)"]


@pytest.mark.parametrize(
    ("seen", "missing"), [("mapped", []), ("not mapped: cannot open", ["not mapped: cannot open"])]
)
def test_a_library_of_the_caller_s_that_is_kept_must_be_mapped(seen, missing):
    path = "/site/lib.so"
    variables = {"sensitive": {"LD_PRELOAD": path}, "preloaded": {path: seen}}
    sample = {"pid": 7, "argv": [], "evidence": {"variables": variables}, "stderr": ""}
    kept = {"LD_PRELOAD": path}
    for kind in (sample, {**sample, "other_processes": []}):  # a workload of the kit's, and a user's own command
        failed = [one.seen for one in check_sample(environment(), kind, kept) if not one.holds]
        assert failed == missing
    # one that the command itself preloads is its own affair
    sample |= {"other_processes": []}
    assert all(one.holds for one in check_sample(environment(), sample, {}))


def test_of_many_processes_that_fail_alike_the_first_are_named():
    others = [process("0", {"0": 1}, pid=pid) for pid in range(7, 11)]
    sample = {**PARENT, "other_processes": others, "stderr": ""}
    failed = [one.key for one in check_sample(environment(**BOUND), sample, {}) if one.key.startswith("threads.")]
    assert failed == ["threads.started_on (processes 7, 8, 9…: python 7.py)"]


def test_a_list_that_the_command_added_to_is_in_effect():
    wanted, added = "glibc.malloc.hugetlb=1", "glibc.rtld.optional_static_tls=8192"

    def failing_with(value):
        document = process("0-3", {"0-3": 4})
        document["evidence"]["variables"] = {"sensitive": {"GLIBC_TUNABLES": value}}
        observed = judged(document, environment(GLIBC_TUNABLES=wanted), {})
        return [one.key for one in observed.checks if not one.holds]

    assert failing_with(wanted) == failing_with(f"{added}:{wanted}") == failing_with(f"{wanted}:{added}") == []
    assert failing_with(added) == failing_with(f"{added}:glibc.malloc.hugetlb=2") == ["variable GLIBC_TUNABLES"]


COMPILED = {"TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE": "1024"}


def compiling(backend, **settings):
    """A process with the variables of COMPILED, in which this compiler has made code."""
    seen = {"variables": {"sensitive": COMPILED}, "compiler": {"backend": backend, "settings": settings}}
    return {"pid": 7, "argv": ["python", "7.py"], "evidence": seen}


def test_a_process_that_starts_those_that_compile_need_not_compile_itself():
    wanted = replace(environment(**COMPILED), expect={"compiler.backend": "inductor"})
    trains = compiling("inductor", TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE=1024)
    launcher = {**compiling("none"), "other_processes": [trains], "stderr": ""}
    assert all(check.holds for check in check_sample(wanted, launcher, {}))
    alone = check_sample(wanted, {**launcher, "other_processes": []}, {})
    assert "compiler.backend" in [check.key for check in alone if not check.holds]


@pytest.mark.parametrize("backend", ["none", "other"])
def test_what_inductor_alone_reads_needs_a_process_that_compiles_by_it(backend):
    sample = {**compiling(backend), "stderr": ""}
    (failed,) = check_sample(environment(**COMPILED), sample, {})
    assert (failed.key, failed.holds) == ("variable TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE", False)
    assert (failed.expected, failed.seen) == (ReadBy(("Inductor",)).to_json(), CompiledNothing().to_json())
    assert check_sample(environment(), {**sample, "evidence": compiling("none")["evidence"]}, COMPILED) == []


def test_one_process_of_a_command_that_compiles_is_enough():
    trains = compiling("inductor", TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE=1024)
    sample = {**compiling("none"), "other_processes": [trains], "stderr": ""}
    assert check_sample(environment(**COMPILED), sample, {}) == []
    ranks = [{**compiling("none"), "rank": rank, "node": "here", "cpus": [rank]} for rank in (0, 1)]
    failed = check_sample(environment(**COMPILED), {"ranks": ranks, "stderr": ""}, {})
    assert [one.key for one in failed if not one.holds] == ["variable TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE"]


@pytest.mark.parametrize(
    ("settings", "seen"),
    [({"TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE": 512}, 512), ({}, NoSuchSetting().to_json())],
)
def test_inductor_s_settings_are_compared(settings, seen):
    sample = {**compiling("inductor", **settings), "stderr": ""}
    (failed,) = check_sample(environment(**COMPILED), sample, {})
    assert (failed.key, failed.seen) == ("compiler.settings.TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE", seen)
    assert not failed.holds


def test_evidence_without_the_probe_claims_nothing():
    sample = {"pid": 7, "argv": [], "evidence": {"variables": {"sensitive": COMPILED}}, "stderr": ""}
    assert check_sample(environment(**COMPILED), sample, {}) == []
