"""``envkit matrix``: which profiles it measures, what it says of the others, and the ranking."""

from __future__ import annotations

import contextlib
import json

import pytest
from envkit import engines
from envkit.bench import record
from envkit.cli.commands import matrix as commands_matrix
from envkit.messages import from_json
from envkit.profiles import profile
from envkit.rendering import text

from tests.simulation import times


@pytest.fixture
def matrix(cli, simulation, instant, run_folder):
    """Measure the profiles named, or all, with simulated workers: 4 CPUs, 2 cores, of all libraries only jemalloc."""

    def run(*arguments):
        fixed = ("--python", simulation.python, "--data", "synthetic", "--seed", 7, "--blocks", 12, "--steps", 3)
        return cli("matrix", *arguments, *fixed, "--output", run_folder)

    return run


@pytest.fixture
def one(write_profile, simulation):
    """Write a profile whose worker takes ``factor`` times as long as the baseline's, or behaves as given."""

    def write(name, factor=1.0, text="", **behaviour):
        simulation.worker(name, seconds=times(factor), **behaviour)
        return write_profile(name, f"{text}env:\n  SIMULATED: {name}\n")

    return write


def arms(run_folder):
    return [arm["name"] for arm in record.first(run_folder)["study"]["arms"]]


def left_out(result):
    lines = [line.removeprefix("left out ") for line in result.stderr.splitlines() if line.startswith("left out ")]
    pairs = (line.split(": ", 1) for line in lines)  # those that share a reason are on one line
    return {name: reason for names, reason in pairs for name in names.split(", ")}


def test_all_shipped_profiles_are_measured_or_left_out_with_a_reason(matrix, run_folder):
    result = matrix().ended(0)
    out = left_out(result)
    assert {*arms(run_folder), *out} == {*profile.names()}
    assert out["one-socket"] == "needs numa_nodes to be 2 or more, and here it is 1"
    assert out["tcmalloc"].startswith("preloads tcmalloc, which is not installed (looked in ")
    # simulated workers see nothing of what these expect
    assert out["gnu-omp"] == "it is not in effect: openmp.proc_bind: expected close, seen false"
    assert "physical-cores" in arms(run_folder)
    (event,) = [event for event in record.read(run_folder) if event["event"] == "left-out"]
    assert {name: text(from_json(one)) for name, one in event["profiles"].items()} == out


def test_profiles_that_are_the_same_here_are_measured_once(matrix, one, write_profile, run_folder):
    same = "env:\n  SIMULATED: first\n  OMP_STACKSIZE: "
    one("first", 0.5)
    first = write_profile("first", f"{same}2M\n")
    second = write_profile("second", f"{same}${{physical_cores}}M\n")
    third = write_profile("third", f"{same}${{usable_cpus}}M\n")
    result = matrix(first, second, third).ended(0)
    assert arms(run_folder) == ["baseline", "first = second", "third"]
    assert "first = second" in result.stdout


@pytest.mark.parametrize(
    ("text", "behaviour", "reason"),
    [
        ("needs: {numa_nodes: 2}\n", {}, "needs numa_nodes to be 2 or more, and here it is 1"),
        ("prefix: [chrt, '0']\n", {}, "starts workers with 'chrt', which is not installed; install"),
        ("expect: {openmp.runtime: intel}\n", {}, "it is not in effect: openmp.runtime: expected intel, seen gnu"),
        ("", {"does": "exit", "status": 3, "stderr": "no such thing"},
         "its worker ended with exit status 3: no such thing"),
    ],
)  # fmt: skip
def test_what_does_not_apply_is_left_out(matrix, one, simulation, cli, run_folder, text, behaviour, reason):
    bad = one("bad", text=text)
    simulation.inspection(commands={})
    if behaviour:
        simulation.worker("bad warming", **behaviour)
    result = matrix(bad, one("mine", 0.5)).ended(0)
    assert left_out(result)["bad"].startswith(reason)
    assert arms(run_folder) == ["baseline", "mine"]
    # and all that is told of the run later says so too
    assert "left out  bad: " in cli("report", run_folder, "--details").stdout
    assert "Left out  1 profile: see --details" in cli("report", run_folder).stdout
    told = json.loads(cli("report", run_folder, "--json").stdout)["not_measured"]
    assert {name: one["text"] for name, one in told.items()} == left_out(result)
    page = run_folder.parent / "page.html"
    assert cli("report", run_folder, "--html", page).returncode == 0
    assert "left out" in page.read_text()


def test_where_the_baseline_fails_nothing_is_blamed_on_the_profiles(matrix, one, simulation):
    simulation.worker("baseline", does="exit", status=3, stderr="no data")
    simulation.worker("baseline warming", does="exit", status=3, stderr="no data")
    result = matrix(one("mine", 0.5)).ended(1)
    assert "no data" in result.stdout
    assert left_out(result) == {}


def test_a_profile_that_a_command_of_one_s_own_does_not_bear_is_left_out(cli, write_profile, run_folder, tmp_path):
    good = write_profile("good", "env: {MALLOC_ARENA_MAX: 1}\n")
    bad = write_profile("bad", "env: {PYTHONMALLOC: malloc}\n")
    (tmp_path / "training").mkdir()  # each start has a copy of the folder that it is called from
    script = tmp_path / "training/train.sh"
    script.write_text('test -z "$PYTHONMALLOC" || { echo "no such memory" >&2; exit 3; }\n')
    fixed = ("--whole-command", "--blocks", 1, "--output", run_folder)
    result = cli("matrix", good, bad, *fixed, "--", "sh", "train.sh", cwd=script.parent).ended(0)
    assert "the command end with exit status 3" in left_out(result)["bad"]
    assert arms(run_folder) == ["baseline", "good"]


def test_what_is_known_to_be_worthless_is_left_out_unless_it_is_forced(
    matrix, one, write_profile, simulation, run_folder
):
    for name in ("crowded", "crowded warming"):
        simulation.worker(name, evidence={"openmp": {"max_threads": 99}})
    named = [
        write_profile("misspelt", "env:\n  OMP_NUM_TREADS: 2\n"),
        write_profile("crowded", "env:\n  OMP_NUM_THREADS: 99\n  SIMULATED: crowded\n"),
        write_profile("nothing"),
        one("mine", 0.5),
    ]
    out = left_out(matrix(*named))
    assert out["misspelt"].startswith("sets OMP_NUM_TREADS: no library is known to read it (did you mean 'OMP_NUM_THR")
    assert out["crowded"].startswith("OMP_NUM_THREADS=99 for 4 usable CPUs: ")
    assert out["nothing"] == "it sets nothing here, and so is the same as baseline"
    assert arms(run_folder) == ["baseline", "mine"]
    (run_folder / record.FILE_NAME).unlink()
    assert left_out(matrix(*named, "--force")).keys() == {"misspelt", "nothing"}


def test_the_machine_is_held_from_trying_to_measuring_and_leftovers_are_removed_once(matrix, one, monkeypatch):
    happened = []

    @contextlib.contextmanager
    def holding():
        happened.append("held")
        yield
        happened.append("given back")

    monkeypatch.setattr(commands_matrix, "machine_lock", holding)
    monkeypatch.setattr(engines, "remove_leftovers", lambda: happened.append("leftovers removed"))
    assert matrix(one("a", 0.5)).returncode == 0
    assert happened == ["held", "leftovers removed", "given back"]


def test_two_minutes_for_each_unless_it_is_told_otherwise(cli, one, simulation, instant, run_folder, tmp_path):
    fixed = ["--python", simulation.python, "--data", "synthetic", "--steps", 3]
    named = [one("a"), one("b")]
    assert cli("matrix", *named, *fixed, "--output", run_folder).returncode == 0
    assert record.first(run_folder)["study"]["stopping"]["budget_s"] == 3 * 120
    assert cli("matrix", *named, *fixed, "--budget", "50s", "--output", tmp_path / "short").returncode == 0
    assert record.first(tmp_path / "short")["study"]["stopping"]["budget_s"] == 50


def test_where_no_profile_applies_nothing_is_measured(matrix, run_folder):
    result = matrix("interleave").ended(2, stdout="")
    said = "none of these profiles is left to measure: interleave; name others"
    assert result.stderr.splitlines()[-1].startswith(f"envkit: {said}")
    assert not run_folder.exists()


def test_two_profiles_of_one_name_are_refused(matrix, write_profile, tmp_path):
    (tmp_path / "other").mkdir()
    one = write_profile("mine", "env: {OMP_NUM_THREADS: 1}\n")
    other = write_profile("mine", "env: {OMP_NUM_THREADS: 2}\n", folder=tmp_path / "other")
    result = matrix(one, other)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert f"{other}: another profile is called 'mine' too; rename it" in result.stderr


def test_modes_are_those_of_the_trial_too(matrix, one, simulation):
    good, bad = one("good", 0.7), one("bad")
    simulation.worker("bad warming", modes={"precision": "fp32"})
    result = matrix(good, bad, "--precision", "bf16-autocast").ended(0)
    said = "its worker should have trained with precision: bf16-autocast, but observed fp32"
    assert left_out(result) == {"bad": said}
    trained = [start["training"] for start in simulation.starts(all=True) if "training" in start]
    assert {training["options"]["precision"] for training in trained} == {"bf16-autocast"}
    assert "workloadcnn(bf16-autocast)" in "".join(result.stdout.split())


def test_a_profile_of_more_ranks_than_gpus_is_left_out(matrix, one, machine, run_folder):
    machine(1)
    result = matrix(one("good", 0.7), one("wide", text="ranks: 2\n"), "--device", "cuda").ended(0)
    assert left_out(result) == {
        "wide": "--device cuda: 2 ranks take a GPU each, and 1 is usable (local); train on one process"
    }
    assert arms(run_folder) == ["baseline", "good"]


# --- a budget that is too short ---


def matrix_for(cli, simulation, run_folder, budget, *profiles):
    fixed = ("--python", simulation.python, "--data", "synthetic", "--seed", 7, "--output", run_folder)
    return cli("matrix", *profiles, *fixed, "--budget", budget)


def test_a_budget_without_room_for_a_sample_of_each_is_refused_before_anything_starts(
    cli, simulation, instant, one, run_folder
):
    named = [one(name) for name in ("one", "two", "three", "four")]
    result = matrix_for(cli, simulation, run_folder, "10s", *named).ended(2)
    assert result.stderr == (
        "envkit: --budget 10s is too short: a verdict needs 8 blocks, and each worker takes 0.5 s or more; "
        "give --budget 33s or more\n"
    )
    assert [start for start in simulation.starts(all=True) if start["work"]["kind"] == "train"] == []
    assert not run_folder.exists()


def test_a_budget_that_is_far_too_short_is_refused_after_the_first_two_were_tried(
    cli, simulation, instant, one, run_folder
):
    instant.takes_s = 10.0
    named = [one(name) for name in ("one", "two", "three", "four")]
    result = matrix_for(cli, simulation, run_folder, "40s", *named).ended(2)
    assert result.stderr.splitlines()[-1].startswith("envkit: --budget 40s is too short: a verdict needs 8 blocks, ")
    assert len([start for start in simulation.starts(all=True) if start["work"]["kind"] == "train"]) == 2
    assert not run_folder.exists()
