from __future__ import annotations

import json

import pytest


@pytest.fixture
def show(cli, simulation):
    """Show a profile as it would be set on the simulated machine (4 CPUs, 2 cores)."""
    return lambda profile, *options: cli("show", profile, "--python", simulation.python, *options)


def test_variables_as_they_would_be_set_and_why(show, write_profile):
    path = write_profile(
        "mine",
        "preload: [jemalloc]\nenv:\n  OMP_NUM_THREADS: ${physical_cores}\nprefix: [env, -u, X]\n"
        "expect:\n  openmp.max_threads: ${physical_cores}\nnumerics: may-differ\n",
    )
    result = show(path).ended(0, stderr="")
    assert result.stdout.splitlines() == [
        "mine: A test",
        "A test.",
        "source   here",
        f"file     {path}",
        "numerics may-differ",
        "sets     OMP_NUM_THREADS=2",
        "         LD_PRELOAD=/usr/lib/libjemalloc.so.2",
        "expects  openmp.max_threads=2",
        "prefix   env -u X",
    ]


def test_where_it_helps_and_hurts_and_what_it_needs(show, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\ntitle: A test\nwhy:\n  reason: A test.\n  source: here\n  helps: Big machines.\n"
        "  hurts: Small ones.\nneeds: {usable_cpus: '${physical_cores + 1}'}\nenv: {OMP_DYNAMIC: 'false'}\n"
    )
    lines = show(path).stdout.splitlines()
    assert [line.rstrip() for line in lines] == [
        "mine: A test",
        "A test.",
        "helps     Big machines.",
        "hurts     Small ones.",
        "source   here",
        f"file     {path}",
        "numerics same",
        "needs     usable_cpus of ${physical_cores + 1} or more",
        "sets     OMP_DYNAMIC=false",
    ]
    document = json.loads(show(path, "--json").stdout)
    assert {key: document[key] for key in ("helps", "hurts", "needs")} == {
        "helps": "Big machines.", "hurts": "Small ones.", "needs": {"usable_cpus": "${physical_cores + 1}"},
    }  # fmt: skip


def test_the_baseline_sets_nothing(show):
    assert show("baseline").stdout.splitlines()[-1] == "sets     nothing"


def test_a_profile_is_for_the_gpus_that_may_be_used(cli, simulation):
    assert cli("show", "baseline", "--python", simulation.python, CUDA_VISIBLE_DEVICES="1").returncode == 0
    (looked,) = simulation.starts(all=True)
    assert looked["environment"]["CUDA_VISIBLE_DEVICES"] == "1"


def test_json(show):
    document = json.loads(show("jemalloc", "--json").stdout)
    assert document["profile"] == "jemalloc"
    assert document["variables"] == {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}
    assert document["preload"] == {"jemalloc": "/usr/lib/libjemalloc.so.2"}
    assert document["reason"]
    assert document["source"].startswith("https://")


def test_a_profile_that_does_not_apply_is_refused(refused, simulation):
    said = "profile 'interleave' needs numa_nodes to be 2 or more, and here it is 1"
    assert said in refused("show", "interleave", "--python", simulation.python)


def test_what_nothing_reads(refused, show, simulation, write_profile):
    path = write_profile("mine", "env:\n  OMP_NUM_THREDS: 2\n")
    assert "sets OMP_NUM_THREDS: no library is known" in refused("show", path, "--python", simulation.python)
    assert show(path, "--allow-unknown").stdout.endswith("\nsets     OMP_NUM_THREDS=2\n")
