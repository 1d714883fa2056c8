"""``envkit breakdown`` with simulated workers: what it starts, prints and refuses."""

from __future__ import annotations

import json

import pytest
from envkit.worker.modes import Options

from tests.cli.commands.conftest import words


@pytest.fixture
def breakdown(cli, write_profile, simulation, instant):
    """Profile operators; each name is a profile that is written as needed."""

    def run(*profiles, options=(), text="", data=("--data", "synthetic")):
        paths = [
            name if name == "baseline" else write_profile(name, f"env:\n  SIMULATED: {name}\n{text}")
            for name in profiles
        ]
        fixed = ("--python", simulation.python, *data, "--steps", 4, "--warmup-steps", 1)
        return cli("breakdown", *paths, *fixed, *options)

    return run


@pytest.fixture
def memory(simulation):
    """``mine`` takes half the time and saves the kernel's work, ``aten::mm`` nearly all of its own."""
    usage = {"user_s": 0.4, "system_s": 0.01, "minor_faults": 4}
    simulation.worker("baseline", seconds=[1.0, 1.01, 0.99], usage={"user_s": 0.5, "system_s": 0.5})
    simulation.worker("mine", seconds=[0.5, 0.51, 0.49], usage=usage, operators={"aten::mm": 0.1, "aten::add_": 0.5})


def test_a_profile_beside_the_baseline_and_the_reason(breakdown, memory):
    result = breakdown("mine").ended(0)
    assert "SYNTHETIC DATA" in result.stdout
    rows = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line.strip()}
    # of 275 and 137.5 ms per step, a half and a tenth
    assert rows["mm"] == ["mm", "2", "137.50", "50.0%", "13.75", "10.0%", "10.00", "-123.75"]
    assert rows["whole"][2:4] == ["275.00", "100%"]
    said = words(result.stdout)
    assert "mine takes 125.0 ms less per step than baseline" in said
    assert "page faults fall from 100 to 1 per step" in said
    assert "mm (-123.8 ms)" in said
    assert "changes a step's time by +10% and +10%" in said
    assert "baseline 250.00 125.00 125.00 100" in said
    measured = "4 processes of each of baseline and mine, in turns: 4 steps after 1, then 4 under the profiler; medians"
    assert measured in said
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_processes_take_turns_and_are_all_profiled(breakdown, memory, simulation):
    breakdown("mine", options=("--processes", 3, "--workload", "cnn-nobias"))
    starts = simulation.starts()
    assert [start["name"] for start in starts] == ["baseline", "mine", "mine", "baseline", "baseline", "mine"]
    assert {start["work"]["kind"] for start in starts} == {"operators"}
    assert starts[0]["training"]["workload"] == "cnn-nobias"


def test_two_profiles_are_compared_with_each_other(breakdown, memory, simulation):
    simulation.worker("other")
    result = breakdown("other", "mine").ended(0)
    assert {start["name"] for start in simulation.starts()} == {"other", "mine"}
    assert "less per step than other" in words(result.stdout)


def test_the_baseline_alone(breakdown, simulation):
    result = breakdown("baseline").ended(0)
    assert [start["name"] for start in simulation.starts()] == ["baseline"] * 4
    assert "ratio" not in result.stdout
    assert "why" not in result.stdout


def test_few_operators_leave_the_rest_together(breakdown, memory):
    shown = breakdown("mine", options=("--top", 1)).stdout
    assert "other operators" in shown
    assert "\nadd_" not in shown


def test_json_has_every_operator_and_process(breakdown, memory):
    result = breakdown("mine", options=("--json",)).ended(0, stderr="")
    document = json.loads(result.stdout)
    reference, mine = document["profiles"]
    assert (reference["arm"], mine["arm"]) == ("baseline", "mine")
    assert len(reference["step_ms"]["processes"]) == 4
    assert {one["name"] for one in mine["operators"]} >= {"aten::mm", "aten::add_"}
    assert mine["operators"][0]["allocated_bytes"] == 4096
    assert document["reasons"]
    assert document["not_in_effect"] == []
    assert (document["workload"], document["processes"], document["synthetic_data"]) == ("cnn", 4, True)


def test_what_is_not_in_effect_has_no_reason(breakdown, memory):
    expect = "expect:\n  openmp.runtime: intel\n"
    result = breakdown("mine", text=expect).ended(1)
    assert "mine is NOT IN EFFECT: openmp.runtime: expected intel, seen gnu" in words(result.stdout)
    assert "takes 125" not in result.stdout
    document = json.loads(breakdown("mine", options=("--json",), text=expect).stdout)
    wrong = {"arm": "mine", "key": "openmp.runtime", "expected": "intel", "seen": "gnu"}
    assert (document["not_in_effect"], document["reasons"]) == ([wrong], [])


def test_a_worker_that_fails_is_said(breakdown, simulation):
    simulation.worker("mine", does="exit", status=3, stderr="one\ntwo")
    result = breakdown("mine").ended(1, stdout="")
    assert "envkit: a worker of mine: ended with exit status 3\n        | one\n        | two\n" in result.stderr


def test_other_weights_are_no_comparison(breakdown, simulation):
    simulation.worker("mine", digests={"initial_weights": "a" * 64})
    result = breakdown("mine").ended(1)
    assert "mine: its initial weights differs from that of earlier samples" in result.stderr


def test_an_interrupt_ends_it(breakdown, simulation):
    simulation.worker("mine", does="interrupt")
    result = breakdown("mine")
    assert (result.returncode, result.stderr.splitlines()[-1]) == (130, "envkit: interrupted")


def test_what_nothing_is_known_to_read_is_refused_unless_it_is_asked_for(breakdown):
    unknown = "  OMP_NUM_THREDS: 2\n"
    result = breakdown("mine", text=unknown).ended(2)
    assert result.stderr.endswith("; correct the name, or give --allow-unknown\n")
    assert breakdown("mine", options=("--allow-unknown",), text=unknown).returncode == 0


def test_modes(breakdown, simulation):
    result = breakdown("mine", options=("--precision", "bf16-autocast", "--scale", 2)).ended(0)
    for start in simulation.starts():
        assert Options(**start["training"]["options"]) == Options("bf16-autocast", scale=2)
    assert "workload cnn (bf16-autocast, scale 2)" in words(result.stdout)
    simulation.worker("mine", modes={"precision": "fp32"})
    failed = breakdown("mine", options=("--precision", "bf16-autocast")).ended(1)
    assert "but observed fp32" in failed.stderr


def test_the_forward_pass_alone(breakdown, memory, simulation):
    result = breakdown("mine", options=("--forward",)).ended(0)
    assert simulation.starts()[0]["work"]["forward"]
    rows = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line.strip()}
    # of 220 and 110 ms, which are 0.8 of a step
    assert rows["mm"] == ["mm", "2", "137.50", "62.5%", "13.75", "12.5%", "10.00", "-123.75"]
    assert rows["forward"] == ["forward", "pass", "220.00", "100%", "110.00", "100%", "2.00", "-110.00"]
    assert "why" not in rows
    document = json.loads(breakdown("mine", options=("--forward", "--json")).stdout)
    took = [side["forward_ms"]["median"] for side in document["profiles"]]
    assert took == pytest.approx([220, 110], rel=0.02)  # with another noise than before
    assert document["reasons"] == []


@pytest.fixture
def input_saved(simulation):
    """``mine`` waits less for its input, and the rest of a step takes as long as before."""
    parts = {"workers": 2, "parts": {"read": 0.25, "decode": 1.0}}
    simulation.worker("baseline", seconds=[1.0, 1.01, 0.99],
                      phases={"wait for input": 0.5, "forward": 0.25, "backward": 0.25}, batch=parts)  # fmt: skip
    simulation.worker("mine", seconds=[0.6, 0.61, 0.59],
                      phases={"wait for input": 0.125, "forward": 0.4375, "backward": 0.4375}, batch=parts)  # fmt: skip


def test_phases_beside_the_baseline(breakdown, input_saved, simulation):
    result = breakdown("mine", options=("--phases", "--workload", "loader"), data=())
    assert (result.returncode, [start["work"]["kind"] for start in simulation.starts()]) == (0, ["phases"] * 8)
    shown = words(result.stdout)
    # of 250 and 150 ms per step
    assert "wait for input 125.00 50.0% 18.75 12.5% +106.25 +104.69 to +107.81" in shown
    assert "whole step 250.00 100.0% 150.00 100.0% +100.00 +95.00 to +105.00" in shown
    assert "decode 250.00 80.0% 150.00 80.0%" in shown
    assert "batches come from 2 DataLoader workers beside the training process" in shown
    assert "do not add up to it" in shown
    assert "4 processes of each of baseline and mine, in turns: 4 steps after 1; medians; workload loader" in shown
    assert "under the profiler" not in shown
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_phases_as_json(breakdown, input_saved):
    document = json.loads(breakdown("mine", options=("--phases", "--workload", "loader", "--json"), data=()).stdout)
    baseline, mine = document["profiles"]
    assert (baseline["arm"], mine["arm"]) == ("baseline", "mine")
    assert len(mine["phases"]["wait for input"]["processes"]) == 4
    assert sum(one["median"] for one in mine["phases"].values()) == pytest.approx(mine["step_ms"]["median"])
    assert baseline["loader"]["workers"] == 2
    assert baseline["loader"]["batch"]["decode"]["median"] == pytest.approx(250.0)
    saved = document["saved_ms"]["wait for input"]
    assert saved == pytest.approx({"estimate": 106.25, "low": 104.6875, "high": 107.8125})
    assert document["saved_ms"]["whole batch"]["estimate"] == pytest.approx(125.0)


def test_phases_of_few_processes_have_no_interval(breakdown):
    shown = words(breakdown("mine", options=("--phases", "--processes", 3)).stdout)
    assert "interval needs 4 processes of each profile (--processes)" in shown
    assert "backward 125.00 50.0% 125.00 50.0% - -" in shown


def test_phases_of_the_baseline_alone(breakdown):
    shown = breakdown("baseline", options=("--phases", "--processes", 1)).stdout
    assert "backward 125.00 50.0% other 62.50 25.0% whole step 250.00 100.0% measured" in words(shown)
    assert "saved" not in shown
    assert "loader" not in shown


def test_phases_of_what_is_not_in_effect_save_nothing(breakdown):
    expect = "expect:\n  openmp.runtime: intel\n"
    result = breakdown("mine", options=("--phases",), text=expect).ended(1)
    assert "mine is NOT IN EFFECT: openmp.runtime: expected intel, seen gnu" in words(result.stdout)
    whole = next(line for line in result.stdout.splitlines() if line.startswith("whole step"))
    assert whole.split()[-2:] == ["-", "-"]
    document = json.loads(breakdown("mine", options=("--phases", "--json"), text=expect).stdout)
    assert (document["saved_ms"], document["not_in_effect"][0]["arm"]) == ({}, "mine")


def test_settings_of_dataloader_s_are_a_workload(breakdown, simulation):
    breakdown("baseline", options=("--phases", "--workload", "loader-w0-b16"), data=()).ended(0)
    assert simulation.starts()[0]["training"]["workload"] == "loader-w0-b16"


@pytest.mark.parametrize("named", ["laoder", "all", "mine.yaml"])
def test_what_is_no_workload_is_refused(cli, named):
    result = cli("breakdown", "intel-omp", "--workload", named).ended(2, stdout="")
    assert f"--workload: no workload '{named}'" in result.stderr.splitlines()[-1]


def test_a_command_of_one_s_own_has_no_phases(cli):
    result = cli("breakdown", "intel-omp", "--phases", "--", "python", "train.py").ended(2, stdout="")
    assert "no option --; " in result.stderr.splitlines()[-1]
