"""The launcher is started as it is meant to be, its libraries lie where it looks, and the page says what came out."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.common.errors import InputError
from envkit.engines.base import WORKER as STARTED
from envkit.engines.base import EngineOptions, Launch
from envkit.engines.local import LocalEngine
from envkit.worker.host import cpu_facts
from envkit.worker.messages import FewMeasured
from envkit.worker.request import Train, WorkerRequest

from benchmarks import launched, peers
from benchmarks.interleaved import Entry
from benchmarks.launched import AT_ONCE, PEERS
from tests.benchmarks.conftest import refusal
from tests.cli.commands.conftest import FACTS
from tests.simulation import times
from tests.trainings import training

DEFAULTS, JEMALLOC, TCMALLOC, BARE = PEERS
WORKER = Train("cnn", "synthetic", steps=3)


@pytest.fixture(scope="module")
def launcher():
    """The launcher itself, of the PyTorch that is installed."""
    from torch.backends.xeon import run_cpu

    return run_cpu


def command(peer, tmp_path) -> list[str]:
    entry = launched.entry(peer, sys.executable, tmp_path)
    launch = Launch(WORKER, entry.variables, {"PATH": os.environ["PATH"]}, entry.prefix)
    return LocalEngine(EngineOptions()).command(launch)


@pytest.mark.parametrize("peer", [*PEERS, AT_ONCE], ids=lambda peer: peer.name)
def test_the_launcher_understands_how_it_is_started(peer, tmp_path, launcher):
    typed = command(peer, tmp_path)
    begin = typed.index("torch.backends.xeon.run_cpu") + 1
    parser = argparse.ArgumentParser()
    launcher.create_args(parser)
    given = parser.parse_args(typed[begin:])
    assert [given.program, *given.program_args] == [sys.executable, str(STARTED), "-"]
    assert (given.no_python, given.module) == (True, False)
    assert given.enable_jemalloc == (peer is JEMALLOC)
    assert given.enable_tcmalloc == (peer is TCMALLOC)
    assert given.ninstances == (2 if peer is AT_ONCE else -1)


def libraries(tmp_path: Path) -> dict:
    found = {}
    for library in launched.WANTED:
        path = tmp_path / f"{library}.so.7"
        path.write_text(library)
        found[library] = {"path": str(path)}
    return {"libraries": found}


@pytest.mark.parametrize("library", launched.WANTED)
def test_the_launcher_finds_its_libraries(library, tmp_path, launcher, monkeypatch):
    places = tmp_path / "places"
    launched.lay_out(places, libraries(tmp_path))
    launched.lay_out(places, libraries(tmp_path))  # a second time it is all there already
    entry = launched.entry(DEFAULTS, sys.executable, places)
    for name in entry.without:
        monkeypatch.delenv(name, raising=False)
    for name, value in entry.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LD_PRELOAD", "")
    short = launched.WANTED[library].removeprefix("lib").removesuffix(".so")
    assert launcher._Launcher.add_lib_preload(None, short)
    assert Path(os.environ["LD_PRELOAD"]).read_text() == library


def test_a_library_that_is_not_installed_is_named(tmp_path):
    with pytest.raises(InputError, match="jemalloc is not installed"):
        launched.lay_out(tmp_path, {"libraries": {"intel-openmp": {"path": "/x"}}})


def test_a_peer_is_what_its_name_says_only_if_that_was_seen(tmp_path):
    entry = launched.entry(JEMALLOC, sys.executable, tmp_path)
    seen = {"openmp": {"runtime": "intel"}, "malloc": {"allocator": "jemalloc"}}
    assert entry.problems(seen, "") == []
    assert entry.problems({**seen, "malloc": {"allocator": "glibc"}}, "") == ["its allocator is glibc, not jemalloc"]


def test_where_nothing_is_to_be_found_the_callers_folders_are_hidden(tmp_path):
    entry = launched.entry(BARE, sys.executable, tmp_path)
    assert entry.variables == {}
    assert {"VIRTUAL_ENV", "CONDA_PREFIX"} <= set(entry.without)


@pytest.fixture
def run(simulation, instant_bench, benchmark_script, write_profile, monkeypatch, files, tmp_path):
    """Run the benchmark with simulated workers, whose peers are told by a variable; returns what it ended with."""

    def entry(peer, python, folder) -> Entry:
        return dataclasses.replace(real(peer, python, folder), prefix=(), variables={"SIMULATED": peer.name})

    real = launched.entry
    monkeypatch.setattr(launched, "entry", entry)
    simulation.inspection(libraries=libraries(tmp_path)["libraries"])
    for peer in (*PEERS, AT_ONCE):
        seen = {"openmp": {"runtime": peer.seen["runtime"]}, "malloc": {"allocator": peer.seen["allocator"]}}
        simulation.worker(peer.name, seconds=times(1.1), evidence=seen, images_per_step=64 * peer.instances)
    simulation.worker("ours", seconds=times(0.7))
    simulation.worker("baseline x 2", seconds=times(1.5))
    simulation.worker("ours x 2", seconds=times(0.75))
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
    assert (page.count("**reached**"), page.count("**missed**")) == (4, 1)
    assert "- ours against run_cpu: 1.5" in page
    assert "| run_cpu --enable-jemalloc | intel | jemalloc |" in page


def test_an_aim_that_is_missed_and_what_was_disturbed_are_said_to_be(run, simulation, page_file):
    simulation.worker("ours", seconds=times(1.0), usage={"machine_swapped_bytes": 2**30})
    run("--blocks", 9)
    page = page_file.read_text()
    line = next(line for line in page.splitlines() if "ours against plain python" in line)
    assert line.endswith("above 1.6: **missed**")
    assert "9 of 9 blocks were disturbed from outside (most often: it swapped)" in page
    assert "| ours | run_cpu | 1.1" in page
    assert "| run_cpu | baseline |" not in page  # which nothing disturbed


def test_a_peer_that_is_not_in_effect_is_left_out_with_the_reason(run, simulation, page_file):
    simulation.worker(JEMALLOC.name, evidence={"openmp": {"runtime": "intel"}})
    assert run("--blocks", 9).returncode == 1
    page = page_file.read_text()
    assert "## Failed\n\n- run_cpu --enable-jemalloc: its allocator is glibc, not jemalloc (after 0 blocks)" in page
    assert "ours against run_cpu --enable-jemalloc" not in page


def test_without_plain_python_there_is_nothing_to_say(run, simulation):
    simulation.worker("baseline", does="exit", status=3, stderr="no memory")
    said = refusal(run("--blocks", 9))
    assert "baseline could not be measured: the worker ended with exit status 3: no memory" in said


def test_two_at_once_are_held_against_each_other(run, simulation, page_file):
    assert run("--blocks", 9).returncode == 0
    page = page_file.read_text().partition("## Two at once")[2]
    table = page.partition("\n\n| profile")[0]
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in table.splitlines() if line.startswith("| ")}
    # three steps of 64 images each in both
    assert rows["| 2 x plain python"][:4] == ["9", "500.00", "256", "1"]
    assert rows["| 2 x ours"][3][:3] == "2.0"
    assert rows["| run_cpu --ninstances 2"][3][:3] == "1.3"
    assert "| profile | run_cpu --ninstances 2 |" in page
    (beside,) = (line for line in page.splitlines() if line.startswith("| 2 x ours | 1.4"))
    assert "(1.4" in beside
    asked = [start["work"] for start in simulation.starts() if start["name"] == "ours x 2"]
    assert {(work["kind"], work["number"]) for work in asked} == {("instances", 2)}


def test_a_profile_must_be_in_effect_in_each_of_two_at_once(run, simulation, page_file):
    simulation.worker("ours x 2", of_instance={"1": {"evidence": {"variables": {"sensitive": {}}}}})
    assert run("--blocks", 9).returncode == 1
    assert "- 2 x ours: variable OMP_NUM_THREADS is " in page_file.read_text()


def test_too_few_blocks_for_intervals_are_refused_before_anything_is_measured(run, simulation):
    line = refusal(run("--blocks", 8))
    assert line == (
        "peers: --blocks 8: is too few, as intervals of 12 comparisons take 9 blocks; give --blocks 9 or more"
    )
    assert simulation.starts(all=True) == []


def test_two_at_once_take_two_cores(run, simulation, tmp_path):
    simulation.inspection(libraries=libraries(tmp_path)["libraries"], facts={**FACTS, "physical_cores": 1})
    assert "2 trainings at once take 2 cores, and here 1 is usable" in refusal(run("--blocks", 9))


# --- other launchers' workers meet, too ---


def at_once(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, launched.STARTS_SEVERAL, "2", *map(str, command), "-"], cwd="/", capture_output=True,
        text=True, timeout=240, check=False, input=WorkerRequest(WORKER).line(),
    )  # fmt: skip


@pytest.mark.skipif(cpu_facts()["physical_cores"] < 2, reason="two at once take two cores")
def test_the_launcher_s_two_instances_are_one_sample():
    worker = (sys.executable, "-c", training())
    result = at_once(sys.executable, "-m", launched.LAUNCHER, *AT_ONCE.options, "--no-python", *worker)
    assert result.returncode == 0, result.stderr
    sample = json.loads(result.stdout)
    assert sample["images_per_step"] == 16
    first, second = sample["instances"]
    assert set(first["cpus"]).isdisjoint(second["cpus"])


def test_a_launcher_that_loses_one_has_no_sample():
    both = "import subprocess, sys; [one.wait() for one in [subprocess.Popen(sys.argv[1:]) for _ in range(2)]]"
    worker = (sys.executable, "-c", training(then="return usual(meeting) if not first() else usual(meeting)[0]"))
    result = at_once(sys.executable, "-c", both, *worker)
    assert result.returncode == 1
    assert json.loads(result.stdout) == {"problem": FewMeasured(1, 2, 0).to_json()}
