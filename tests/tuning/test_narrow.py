"""What of a space is left on a machine, and what is said of the rest."""

from __future__ import annotations

import pytest
from envkit.profiles.environment import Environment
from envkit.profiles.messages import NeedsNumber, NeedsOther
from envkit.profiles.places import PROFILE_FOLDER
from envkit.profiles.profile import load, names
from envkit.rendering import text
from envkit.tuning import shipped, space_file
from envkit.tuning.messages import MayChangeResults, NothingToVary, SameAs
from envkit.tuning.narrow import identity, narrow
from envkit.tuning.space import choices, shown

from tests.refusals import refusal
from tests.simulated_worker import inspection
from tests.tuning.planted import read_space, write_space

TEXT = """parameters:
  threads: {variable: OMP_NUM_THREADS, values: [unset, "${physical_cores}", "${usable_cpus}"]}
  allocator:
    choices:
      glibc:
      jemalloc: {preload: [jemalloc]}
      tcmalloc: {preload: [tcmalloc]}
  release: {when: {allocator: [tcmalloc]}, variable: TCMALLOC_RELEASE_RATE, values: [unset, 0]}
  dynamic: {when: {threads: ["${usable_cpus}"]}, variable: OMP_DYNAMIC, values: [unset, true]}
  fpmath: {variable: ONEDNN_DEFAULT_FPMATH_MODE, values: [unset, bf16], numerics: may-differ}
  isa: {variable: ONEDNN_MAX_CPU_ISA, values: [unset, avx512_core]}
  node: {choices: {unset: , first: {prefix: [numactl, --membind=0], needs: {numa_nodes: 2}}}}
constraints:
  - {never: {allocator: [tcmalloc], threads: [unset]}, because: a test}
"""


@pytest.fixture
def space(tmp_path):
    return read_space(tmp_path, TEXT)


def seen(**facts):
    whole = inspection(["numactl"], {})
    whole["commands"]["numactl"] = "/usr/bin/numactl"
    return {**whole, "facts": {**whole["facts"], "physical_cores": 4, "usable_cpus": 4, **facts}}


def test_what_cannot_apply_here_is_left_out_with_a_reason(space):
    narrowed, left_out = narrow(space, seen(), "same")
    assert {parameter.name: list(parameter.levels) for parameter in narrowed.parameters} == {
        "threads": ["unset", "${physical_cores}"], "allocator": ["glibc", "jemalloc"], "dynamic": ["unset", "true"],
        "fpmath": ["unset"], "isa": ["unset"], "node": ["unset"],
    }  # fmt: skip
    reasons = {one.what: one.why for one in left_out}
    assert reasons["threads=${usable_cpus}"] == SameAs("${physical_cores}")
    assert text(reasons["allocator=tcmalloc"]).startswith("preloads tcmalloc, which is not installed (looked in ")
    assert reasons["fpmath=bf16"] == MayChangeResults()
    assert text(reasons["isa=avx512_core"]).startswith("ONEDNN_MAX_CPU_ISA=avx512_core, and this CPU has no avx512f")
    assert reasons["node=first"] == NeedsNumber("numa_nodes", 2, 1)
    assert len(reasons) == len(left_out) == 5


def test_a_condition_on_a_level_that_another_stands_for_holds_with_that_one(space):
    narrowed, _ = narrow(space, seen(), "same")
    found = [shown(choice) for choice in choices(narrowed)]
    assert "threads=${physical_cores}, allocator=glibc, dynamic=true" in found
    assert "allocator=glibc, dynamic=true" not in found


def test_a_larger_machine_and_other_numerics_leave_more(space):
    narrowed, left_out = narrow(space, seen(usable_cpus=8, numa_nodes=2), "any")
    levels = {parameter.name: list(parameter.levels) for parameter in narrowed.parameters}
    assert levels["threads"] == ["unset", "${physical_cores}", "${usable_cpus}"]
    assert levels["node"] == ["unset", "first"]
    # its processor does not compute in bfloat16
    reasons = {one.what: one.why for one in left_out}
    assert reasons.keys() == {"allocator=tcmalloc", "isa=avx512_core", "fpmath=bf16"}
    assert "this CPU has" in text(reasons["fpmath=bf16"])


def test_ranks_that_can_not_train_what_is_trained_are_left_out(tmp_path):
    text = "parameters:\n  ranks: {choices: {one: {ranks: 1}, two: {ranks: 2}, four: {ranks: 4}}}\n"
    reasons = {4: "four are too many"}
    narrowed, left_out = narrow(read_space(tmp_path, text), seen(), "same", reasons.get)
    assert [list(parameter.levels) for parameter in narrowed.parameters] == [["one", "two"]]
    assert [(one.what, one.why) for one in left_out] == [("ranks=four", "four are too many")]


def test_a_space_of_which_nothing_is_left_is_refused(tmp_path):
    path = write_space(tmp_path, "parameters:\n  a: {choices: {x: {preload: [tcmalloc]}, y: {preload: [mimalloc]}}}\n")
    message = refusal(narrow, space_file.read(path), seen(), "same")
    assert isinstance(message, NothingToVary)
    assert text(message).startswith(f"{path}: nothing of this space can be varied here: a=x: preloads tcmalloc")


def environment(**variables):
    return Environment("x", "X", variables, {}, (), {}, "same")


def test_environments_are_the_same_however_their_settings_are_ordered():
    one, other = (environment(MALLOC_CONF=text) for text in ("thp:always,retain:true", "retain:true,thp:always"))
    assert identity(one) == identity(other)
    assert identity(environment(OMP_PLACES="{0},{1}")) != identity(environment(OMP_PLACES="{1},{0}"))
    assert identity(one) != identity(environment(MALLOC_CONF="thp:always"))


def test_profiles_for_gpus_are_left_out_for_want_of_them_whatever_else_could_be_said():
    found, left_out = shipped.shipped(PROFILE_FOLDER, seen(), "same", ())
    reasons = {one.what: one.why for one in left_out}
    for_gpus = {f"profile {name}" for name in names() if "gpus" in load(name).needs}
    assert for_gpus <= reasons.keys()
    assert {(type(reasons[what]), reasons[what].fact) for what in for_gpus} == {(NeedsNumber, "gpus")}
    assert not {one.profile.name for one in found} & {what.removeprefix("profile ") for what in for_gpus}


@pytest.mark.parametrize("vendor", ["GenuineIntel", "AuthenticAMD"])
def test_mkl_is_told_to_take_other_code_only_where_it_does_not_do_so_by_itself(vendor):
    whole = seen(cpu_vendor=vendor)
    whole["libraries"]["mkl-dispatch"] = {"path": "/sim/mkl.so", "sha256": "1" * 64}
    default = space_file.read(space_file.find("default"))
    narrowed, left_out = narrow(default, whole, "any")
    levels = {parameter.name: list(parameter.levels) for parameter in narrowed.parameters}
    reasons = {one.what: one.why for one in left_out}
    if vendor == "AuthenticAMD":
        assert levels["mkl"] == ["unset", "native"]
        assert "mkl=native" not in reasons
        same = {one.what: one.why for one in narrow(default, whole, "same")[1]}
        assert same["mkl=native"] == MayChangeResults()
    else:
        assert levels["mkl"] == ["unset"]
        because = "MKL takes its fastest code there by itself"
        assert reasons["mkl=native"] == NeedsOther("cpu_vendor", ("GenuineIntel",), "GenuineIntel", because)


@pytest.mark.parametrize("path", sorted(space_file.FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_level_that_has_mkl_take_other_code_needs_another_processor(path):
    fragments = [one for parameter in space_file.read(path).parameters for one in parameter.levels.values()]
    assert all(
        one.needs.get("cpu_vendor", {}).get("not") == "GenuineIntel"
        for one in fragments
        if "mkl-dispatch" in one.preload
    )
