"""The launcher is started as it is meant to be, its libraries lie where it looks, and the page says what came out."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.interleaved import Entry
from benchmarks.peers import PEERS
from runner.common.errors import InputError
from runner.engines.base import EngineOptions, Task
from runner.engines.local import LocalEngine
from tests.benchmarks.conftest import refusal
from tests.simulation import times

DEFAULTS, JEMALLOC, TCMALLOC, BARE = PEERS
WORKER = ("train", "--workload", "cnn", "--steps", "3")


@pytest.fixture(scope="module")
def launcher():
    """The launcher itself, of the PyTorch that is installed."""
    from torch.backends.xeon import run_cpu

    return run_cpu


def command(peer, tmp_path) -> list[str]:
    entry = peers.launched(peer, sys.executable, tmp_path)
    task = Task(WORKER, entry.variables, {"PATH": os.environ["PATH"]}, entry.prefix)
    return LocalEngine(EngineOptions()).command(task)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_the_launcher_understands_how_it_is_started(peer, tmp_path, launcher):
    typed = command(peer, tmp_path)
    begin = typed.index("torch.backends.xeon.run_cpu") + 1
    parser = argparse.ArgumentParser()
    launcher.create_args(parser)
    given = parser.parse_args(typed[begin:])
    assert [given.program, *given.program_args] == [sys.executable, "-m", "runner.worker", *WORKER]
    assert (given.no_python, given.module) == (True, False)
    assert given.enable_jemalloc == (peer is JEMALLOC)
    assert given.enable_tcmalloc == (peer is TCMALLOC)


def libraries(tmp_path: Path) -> dict:
    found = {}
    for library in peers.WANTED:
        path = tmp_path / f"{library}.so.7"
        path.write_text(library)
        found[library] = {"path": str(path)}
    return {"libraries": found}


@pytest.mark.parametrize("library", peers.WANTED)
def test_the_launcher_finds_its_libraries(library, tmp_path, launcher, monkeypatch):
    places = tmp_path / "places"
    peers.lay_out(places, libraries(tmp_path))
    peers.lay_out(places, libraries(tmp_path))  # a second time it is all there already
    entry = peers.launched(DEFAULTS, sys.executable, places)
    for name in entry.without:
        monkeypatch.delenv(name, raising=False)
    for name, value in entry.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LD_PRELOAD", "")
    short = peers.WANTED[library].removeprefix("lib").removesuffix(".so")
    assert launcher._Launcher.add_lib_preload(None, short)
    assert Path(os.environ["LD_PRELOAD"]).read_text() == library


def test_a_library_that_is_not_installed_is_named(tmp_path):
    with pytest.raises(InputError, match="jemalloc is not installed"):
        peers.lay_out(tmp_path, {"libraries": {"intel-openmp": {"path": "/x"}}})


def test_a_peer_is_what_its_name_says_only_if_that_was_seen(tmp_path):
    entry = peers.launched(JEMALLOC, sys.executable, tmp_path)
    seen = {"openmp": {"runtime": "intel"}, "malloc": {"allocator": "jemalloc"}}
    assert entry.problems(seen, "") == []
    assert entry.problems({**seen, "malloc": {"allocator": "glibc"}}, "") == ["its allocator is glibc, not jemalloc"]


def test_where_nothing_is_to_be_found_the_callers_folders_are_hidden(tmp_path):
    entry = peers.launched(BARE, sys.executable, tmp_path)
    assert entry.variables == {}
    assert {"VIRTUAL_ENV", "CONDA_PREFIX"} <= set(entry.without)


@pytest.fixture
def run(simulation, instant_bench, benchmark_script, write_profile, monkeypatch, files, tmp_path):
    """Run the benchmark with simulated workers, whose peers are told by a variable; returns what it ended with."""

    def launched(peer, python, folder) -> Entry:
        return dataclasses.replace(real(peer, python, folder), prefix=(), variables={"SIMULATED": peer.name})

    real = peers.launched
    monkeypatch.setattr(peers, "launched", launched)
    simulation.inspection(libraries=libraries(tmp_path)["libraries"])
    for peer in PEERS:
        seen = {"openmp": {"runtime": peer.seen["runtime"]}, "malloc": {"allocator": peer.seen["allocator"]}}
        simulation.worker(peer.name, seconds=times(1.1), evidence=seen)
    simulation.worker("ours", seconds=times(0.7))
    profile = write_profile("ours", "env:\n  SIMULATED: ours\n")

    def start(*arguments: object):
        options = ["--python", simulation.python, "--data", "synthetic", "--steps", 3]
        return benchmark_script(peers, profile, *options, *files, *arguments)

    return start


def test_the_page_holds_the_first_profile_against_the_aims(run, page_file):
    result = run("--blocks", 9)
    assert (result.returncode, result.stderr) == (0, "")
    page = page_file.read_text()
    assert "| plain python | 9 | " in page
    assert next(line for line in page.splitlines() if line.startswith("| ours | 9 |")).endswith("| equal |")
    assert "- ours against plain python: 1.4" in page
    assert page.count("**reached**") == 5
    assert "- ours against run_cpu: 1.5" in page
    assert "ahead of it by 3% and more" in page
    assert "| run_cpu --enable-jemalloc | intel | jemalloc |" in page


def test_an_aim_that_is_missed_and_what_was_disturbed_are_said_to_be(run, simulation, page_file):
    simulation.worker("ours", seconds=times(1.0), usage={"machine_swapped_bytes": 2**30})
    run("--blocks", 9)
    page = page_file.read_text()
    line = next(line for line in page.splitlines() if "ours against plain python" in line)
    assert line.endswith("above 1.2: **missed**")
    assert "9 of 9 blocks were disturbed from outside (most often: it swapped)" in page
    assert "| ours | run_cpu | 1.1" in page
    assert "| run_cpu | baseline |" not in page  # which nothing disturbed


def test_a_peer_that_is_not_in_effect_is_left_out_with_the_reason(run, simulation, page_file):
    simulation.worker(JEMALLOC.name, evidence={"openmp": {"runtime": "intel"}})
    assert run("--blocks", 6).returncode == 1
    page = page_file.read_text()
    assert "## Failed\n\n- run_cpu --enable-jemalloc: its allocator is glibc, not jemalloc (after 0 blocks)" in page
    assert "ours against run_cpu --enable-jemalloc" not in page


def test_without_plain_python_there_is_nothing_to_say(run, simulation):
    simulation.worker("baseline", does="exit", status=3, stderr="no memory")
    said = refusal(run("--blocks", 1))
    assert "baseline could not be measured: the worker ended with exit status 3: no memory" in said
