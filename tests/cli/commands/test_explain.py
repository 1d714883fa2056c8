from __future__ import annotations

import json

import pytest
from envkit.common.machine_lock import machine_lock


@pytest.fixture
def run(cli, simulation):
    """``envkit explain`` with a simulated image; returns what it printed."""

    def call(*arguments: str) -> str:
        result = cli("explain", *arguments, "--python", simulation.python).ended(0)
        return result.stdout

    return call


def test_all_there_is_to_say(run, simulation):
    simulation.worker("baseline", evidence={"openmp": {"max_threads": 4}})
    lines = run("OMP_NUM_THREADS").splitlines()
    assert lines[0] == "OMP_NUM_THREADS"
    assert "How many threads a parallel region gets" in lines[1]
    rows = {line[:9].strip(): line[9:] for line in lines[3:]}
    assert rows["read by"] == "gnu-openmp, intel-openmp, llvm-openmp, mkl, openblas (in this image: gnu-openmp, mkl)"
    assert rows["values"].startswith("a whole number from 1 to 2147483647")
    assert rows["default"] == "one thread per CPU that the process may use"
    assert rows["here"] == "4 (a worker's own answer)"
    assert rows["shell"] == "not set in your shell"
    assert rows["verified"] == "openmp.max_threads"
    assert "gnu-omp (${physical_cores})" in rows["set by"]
    assert rows["source"].startswith("https://")
    assert len(simulation.starts()) == 1


def test_json(run, monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=1")
    document = json.loads(run("GLIBC_TUNABLES", "--json"))
    assert document["shell"] == "glibc.malloc.check=1"
    assert document["keys"]["glibc.malloc.hugetlb"]["since"] == "2.35"
    assert document["verified_by"] == "malloc.settings."
    assert document["profiles"]["glibc-retain"].startswith("glibc.malloc.mmap_threshold=")
    assert document["here"] is None


def test_who_gets_what_is_set_in_the_shell(run, monkeypatch, simulation):
    for name, fate in (
        ("OMP_NUM_THREADS", "workers start without it"),
        ("CUDA_VISIBLE_DEVICES", "workers start without it, but your own commands get it"),
    ):
        monkeypatch.setenv(name, "1")
        assert f"shell    1 in your shell; {fate}" in run(name).splitlines()
    assert "OMP_NUM_THREADS" not in simulation.starts()[0]["environment"]


def test_keys_come_with_what_the_image_has(run, simulation):
    simulation.worker("baseline", evidence={"malloc": {"settings": {"glibc.malloc.hugetlb": 2}}})
    lines = run("GLIBC_TUNABLES").splitlines()
    hugetlb = "key      glibc.malloc.hugetlb: a whole number from 0 on (default 0, here 2, since version 2.35)"
    assert hugetlb in lines


def test_a_library_that_runs_only_where_it_is_preloaded_is_preloaded_to_ask_it(run, simulation):
    simulation.inspection(libraries={"intel-openmp": {"path": "/lib/libiomp5.so", "sha256": "0"}})
    simulation.worker("baseline", evidence={"openmp": {"blocktime_ms": 200}})
    printed = run("KMP_BLOCKTIME")
    assert "here     200 (a worker's own answer, with intel-openmp preloaded)\n" in printed
    assert "intel-omp (0)" in printed[printed.index("set by") :]
    assert simulation.starts()[0]["environment"]["LD_PRELOAD"] == "/lib/libiomp5.so"


def test_what_can_not_be_seen_starts_no_worker(run, simulation):
    printed = run("ONEDNN_MAX_CPU_ISA")
    assert "here     can't be seen: oneDNN tells its instruction set only in its verbose output" in printed
    assert "verified not observable: oneDNN tells" in printed
    assert "here     nothing in this image reads it\n" in run("KMP_BLOCKTIME")
    assert simulation.starts() == []


def test_a_worker_that_fails_and_a_measurement_that_runs_leave_the_rest_of_the_answer(run, simulation):
    with machine_lock():
        assert "here     not checked: another measurement runs" in run("OMP_NUM_THREADS")
    simulation.worker("baseline", does="exit", status=3)
    assert "here     unknown: the worker " in run("OMP_NUM_THREADS")
