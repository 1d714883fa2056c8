"""What ``envkit doctor --for-issue`` prints: enough for a bug report, and nothing of who runs it and where."""

from __future__ import annotations

import pytest
from envkit.report import issue

HOME, HOST, USER = "/home/jane.roe", "cluster-7.example.org", "jane.roe"
SECRETS = {HOME: "~", HOST: "HOST", "cluster-7": "HOST", USER: "USER"}
INSPECTION = {
    "facts": {"usable_cpus": 4, "physical_cores": 8, "numa_nodes": 2, "online_cpus": 16, "cpu_quota": 2.5, "smt": True},
    "fingerprint": {
        "cpu_model": f"A processor of {HOST}", "cpu_numbers": "family 1", "isa": ["avx2"], "memory_bytes": 2**34,
        "thp_enabled": "madvise", "thp_defrag": "defer", "distribution": f"Linux of {USER}", "kernel": "6.1-cluster-7",
        "libc": "glibc 2.36", "architecture": "x86_64", "governor": None, "hypervisor": None,
    },
    "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
    "python": {"version": "3.11.7", "executable": f"{HOME}/venv/bin/python", "prefix": f"{HOME}/venv"},
    "memory_limit": 2**33,
    "accelerator": {"devices": [{"name": "A GPU"}], "driver": "1.2", "torch_cuda": "13.0"},
}  # fmt: skip
EVIDENCE = {
    "torch": {"num_threads": 4, "interop_threads": 8, "cpu_capability": "AVX2"},
    "threads": {"count": 9, "masks": {"0-3": 8, "0": 1}, "started_on": "0"},
    "limits": {"throttled_s": 1.5, "seccomp": "filter"},
    "openmp": {
        "runtime": "intel", "mapped": [f"{HOME}/lib/libiomp5.so", "/usr/lib/libgomp.so.1"], "max_threads": 4,
        "proc_bind": "close", "places": 4, "wait_policy": "active",
    },
    "malloc": {"allocator": "jemalloc", "library": f"{HOME}/lib/libjemalloc.so.2"},
    "mkl": {"available": True, "version": "2024.2", "max_threads": 4, "code": "AVX2", "dispatch": "generic"},
    "onednn": {"available": True, "isa": "AVX2", "fpmath": "strict"},
    "variables": {"preloaded": {f"{HOME}/lib/libjemalloc.so.2": "x"}},
}  # fmt: skip
VARIABLES = {
    "OMP_NUM_THREADS": "4",
    "LD_PRELOAD": f"{HOME}/lib/libjemalloc.so.2:/opt/{USER}/libiomp5.so",
    "MALLOC_CONF": "dirty_decay_ms:-1",
    "TORCH_HOME": f"{HOME}/.cache",
    "TORCH_TOKEN": None,
}


@pytest.fixture
def printed():
    return issue.markdown(INSPECTION, EVIDENCE, VARIABLES, SECRETS)


def test_it_is_one_fenced_block(printed):
    first, *lines, last = printed.splitlines()
    assert (first, last) == ("```text", "```")
    assert not any("```" in line for line in lines)


def test_it_has_what_a_bug_report_needs(printed):
    for said in (
        "torch 4, interop 8, all 9", "8 on CPUs 0-3; 1 on CPUs 0", "quota 2.5 CPUs", "SMT on", "NUMA nodes 2",
        "intel (libiomp5.so, libgomp.so.1)", "jemalloc (libjemalloc.so.2)", "2024.2", "torch         2.13.0",
        "OMP_NUM_THREADS=4", "MALLOC_CONF=dirty_decay_ms:-1", "LD_PRELOAD=libjemalloc.so.2, libiomp5.so",
        "16.0 GiB, limit 8.0 GiB", "throttled 1.5 s", "A GPU; driver 1.2, CUDA 13.0",
    ):  # fmt: skip
        assert said in printed, said


def test_nothing_tells_who_runs_it_and_where(printed):
    for secret in (HOME, HOST, "cluster-7", USER, "jane"):
        assert secret not in printed, secret
    assert "A processor of HOST" in printed
    assert "TORCH_HOME=(set, not shown)" in printed
    assert "TORCH_TOKEN=(set, not shown)" in printed


@pytest.mark.parametrize(
    "value", ["https://bob:c4nary@h.example.org/x", "/data/c4nary", "~/c4nary", "a c4nary", "c4nary@h"]
)
def test_a_value_that_is_no_plain_setting_is_not_shown(value):
    """Even of a variable that is known to change the speed."""
    page = issue.markdown(INSPECTION, EVIDENCE, {"MALLOC_CONF": value, "OMP_PLACES": value}, SECRETS)
    assert "c4nary" not in page
    assert page.count("(set, not shown)") == 2
