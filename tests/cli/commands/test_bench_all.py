"""``--workload all``, and the modes: what is started, recorded and refused; with simulated workers."""

from __future__ import annotations

import importlib.util
import json

import pytest

from runner.bench import record
from runner.bench.plan import Plan
from runner.worker.workloads import ALL
from tests.simulation import times


@pytest.fixture(autouse=True)
def bleu_library(monkeypatch):
    """These workers translate nothing, so that BLEU needs no library."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: name == "sacrebleu" or real(name, *rest))


@pytest.fixture
def plan(run_folder):
    return lambda: Plan.from_json(record.read(run_folder)[0]["plan"])


def starts(simulation):
    """The arguments of what was measured, by profile and workload."""
    return {(start["name"], start["arguments"][2]): start["arguments"] for start in simulation.starts()}


def value(arguments, option):
    return arguments[arguments.index(option) + 1]


# --- all workloads ---


def test_every_profile_is_measured_on_every_workload(bench, simulation, instant, plan):
    simulation.worker("mine", seconds=times(0.5))
    result = bench("mine", "--workload", "all", "--blocks", 8)
    assert result.returncode == 0, result.stderr
    assert starts(simulation).keys() == {(name, workload) for name in ("baseline", "mine") for workload in ALL}
    assert [arm.name for arm in plan().compared] == [f"mine on {workload}" for workload in ALL]
    assert [arm.name for arm in plan().references] == [f"baseline on {workload}" for workload in ALL]
    assert "wins     cnn: mine" in result.stdout
    assert "use mine, which is faster on all of these" in " ".join(result.stdout.split())


def test_each_workload_gets_its_own_steps_and_data(bench, simulation, instant):
    assert bench("mine", "--workload", "all", "--blocks", 1).returncode == 0
    found = starts(simulation)
    assert value(found["mine", "cnn"], "--data") == "synthetic"
    assert {value(found["mine", name], "--data") for name in ALL[1:]} == {"generated"}
    # --steps 3 is for all, and each has its own to warm up
    assert [value(found["mine", name], "--steps") for name in ALL] == ["3"] * 4
    assert [value(found["mine", name], "--warmup-steps") for name in ALL] == ["5", "10", "10", "10"]


def test_what_was_learnt_is_tested_once_for_each(bench, simulation, instant):
    assert bench("mine", "--workload", "all", "--blocks", 4).returncode == 0
    tested = [start for start in simulation.starts() if "--quality" in start["arguments"]]
    assert sorted((start["name"], start["arguments"][2]) for start in tested) == sorted(
        ("baseline", workload) for workload in ALL
    )


def test_there_is_time_for_intervals_by_default(cli, instant, simulation, write_profile, run_folder, plan):
    path = write_profile("mine", "env:\n  SIMULATED: mine\n")
    instant.takes_s = 7.5  # a sample of 5 s, and the start of its worker
    result = cli("bench", path, "--workload", "all", "--python", simulation.python, "--data", "synthetic", "--seed", 7,
                 "--output", run_folder)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert plan().stopping.budget_s == 768
    assert "an interval needs" not in result.stdout
    spent = sum(event.get("worker_seconds", 0) for event in record.read(run_folder))
    assert spent <= 13 * 60  # of 15 minutes: the rest is for an installation


def test_it_goes_on_where_it_was_interrupted(bench, cli, simulation, instant, run_folder):
    simulation.worker("mine", does="interrupt", **{"from": 3})
    assert bench("mine", "--workload", "all", "--blocks", 2).returncode == 130
    simulation.worker("mine", seconds=times(0.5))
    result = cli("bench", "--resume", run_folder)
    assert result.returncode == 0, result.stderr
    samples = [event for event in record.read(run_folder) if event["event"] == "sample"]
    assert len({(event["block"], event["arm"]) for event in samples}) == len(samples) == 16


def test_workloads_begin_with_weights_of_their_own(bench, simulation, instant):
    own = {name: {"initial_weights": digit * 64} for name, digit in zip(ALL, "1234", strict=True)}
    for name in ("baseline", "mine"):
        simulation.worker(name, digests_of=own)
    assert bench("mine", "--workload", "all", "--blocks", 2).returncode == 0


def test_other_weights_of_one_workload_are_a_failure(bench, simulation, instant):
    simulation.worker("mine", digests={"initial_weights": "a" * 64})
    result = bench("mine", "--workload", "all", "--blocks", 1)
    assert result.returncode == 1
    assert "its initial weights differs from that of earlier samples" in " ".join(result.stdout.split())


def test_scripts_get_all_comparisons(bench, simulation, instant):
    document = json.loads(bench("mine", "--workload", "all", "--blocks", 8, "--json").stdout)
    assert [one["arm"] for one in document["comparisons"]] == [f"mine on {name}" for name in ALL]
    assert document["design"]["comparisons"] == 4


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["bench", "baseline", "--full"], "--workload all means nothing to --full, which trains epochs of one; name "),
        (["calibrate"], "--workload all means nothing to envkit calibrate; name one of: cnn, "),
        (["plan", "jemalloc"], "--workload all means nothing to envkit plan; name one of: cnn, "),
        (["matrix", "jemalloc"], "--workload all means nothing to envkit matrix; name one of: cnn, "),
        (["compare-engines", "baseline"], "--workload all means nothing to envkit compare-engines; name one of: cnn, "),
        (["tune"], "--workload all means nothing to envkit tune; name one of: cnn, "),
        (["bench", "baseline", "--channels-last"], "--channels-last means nothing to translation, which has no images"),
        (["bench", "baseline", "--command", "true"], "--command and --workload both say what to measure"),
    ],
)
def test_where_all_means_nothing(refused, tmp_path, simulation, arguments, line):
    output = ("--python", simulation.python, "--output", tmp_path / "run")
    assert refused(*arguments, "--workload", "all", *output).startswith(f"envkit: {line}")
    assert not (tmp_path / "run").exists()


def test_no_baseline_is_saved_of_several_workloads(bench, cli, instant, run_folder, tmp_path):
    assert bench("mine", "--workload", "all", "--blocks", 6).returncode == 0
    result = cli("baseline", "save", "x", "--from", run_folder, "--folder", tmp_path / "baselines")
    assert result.returncode == 2
    assert "measured several workloads; measure the one to save a baseline of, by --workload" in result.stderr


# --- modes ---


def test_modes_reach_every_worker_and_are_recorded_and_shown(bench, cli, simulation, instant, plan, run_folder):
    seen = {"modes": {"precision": "bf16-autocast", "compile": False, "channels_last": True}}
    for name in ("baseline", "mine"):
        simulation.worker(name, seconds=times(1), **seen)
    result = bench("mine", "--precision", "bf16-autocast", "--channels-last", "--scale", 2)
    assert result.returncode == 0, result.stderr
    for start in simulation.starts(all=True):
        if start["arguments"][0] == "train":
            assert value(start["arguments"], "--precision") == "bf16-autocast"
            assert value(start["arguments"], "--scale") == "2"
            assert "--channels-last" in start["arguments"]
            assert "--compile" not in start["arguments"]
    assert plan().options.text() == "bf16-autocast, channels-last, scale 2"
    assert "workloadcnn(bf16-autocast,channels-last,scale2)" in "".join(result.stdout.split())
    details = cli("report", run_folder, "--details").stdout
    assert "modes    bf16-autocast, channels-last, scale 2" in details


def test_a_mode_that_was_not_in_effect_is_a_failure(bench, simulation, instant):
    simulation.worker("baseline", modes={"precision": "fp32", "compile": False, "channels_last": False})
    simulation.worker("mine", modes={"precision": "fp32", "compile": False, "channels_last": False})
    result = bench("mine", "--precision", "bf16-autocast")
    assert result.returncode == 1
    said = "the worker was to train with precision: bf16-autocast, and saw that it was: fp32"
    assert said in " ".join(result.stdout.split())


def test_bf16_losses_may_differ_by_more(bench, simulation, instant):
    simulation.worker("mine", losses=[2.3 * 1.005, 2.299, 2.298])
    result = bench("mine", "--precision", "bf16-autocast")
    assert result.returncode == 0, result.stderr
    assert "LOSSES DIFFER" not in result.stdout


def test_fp32_losses_may_not(bench, simulation, instant):
    simulation.worker("mine", losses=[2.3 * 1.005, 2.299, 2.298])
    assert "LOSSES DIFFER" in bench("mine").stdout


@pytest.mark.parametrize(
    ("lacks", "what"),
    [({"commands": {"g++": None}}, "g++"), ({"python_headers": False}, "Python's headers (Python.h)"),
     ({"commands": {"g++": None}, "python_headers": False}, "g++ and Python's headers (Python.h)")],
)  # fmt: skip
def test_compiling_takes_a_compiler_in_the_image(refused, bench_arguments, simulation, lacks, what):
    simulation.inspection(**{"commands": {"g++": "/usr/bin/g++"}, **lacks})
    line = refused(*bench_arguments("mine", "--compile"))
    assert line.startswith(f"envkit: --compile: torch.compile needs {what}, and /")
    assert line.endswith("(engine local) has none; install it there, or leave --compile out")


def test_compiling_with_one(bench, simulation, instant):
    simulation.inspection(commands={"g++": "/usr/bin/g++"})
    assert bench("mine", "--compile", "--blocks", 1).returncode == 0
    assert all("--compile" in start["arguments"] for start in simulation.starts())


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--workload", "translation", "--channels-last"], "--channels-last means nothing to translation, which has "),
        (["--workload", "loader-w2-b32", "--scale", 2], "--scale means nothing to loader-w2-b32, whose name says its "),
        (["--workload", "segmentation"], "--data synthetic: means nothing to segmentation, which makes its data "),
    ],
)
def test_what_does_not_go_together(refused, bench_arguments, run_folder, options, line):
    assert refused(*bench_arguments("mine", *options)).startswith(f"envkit: {line}")
    assert not run_folder.exists()


def test_pinned_memory_without_an_accelerator(refused, simulation, run_folder):
    simulation.inspection(packages={"torch": "2.13.0+cpu", "numpy": "2"})
    line = refused("bench", "baseline", "--workload", "loader-w2-b32-pin", "--python", simulation.python,
                   "--output", run_folder)  # fmt: skip
    assert "loader-w2-b32-pin: pinned memory is for an accelerator, and torch 2.13.0+cpu in " in line


@pytest.mark.parametrize("value", ["fp16", "1%", "bf16"])
def test_a_number_format_that_there_is_not(cli, value):
    result = cli("bench", "baseline", "--precision", value)
    assert result.returncode == 2
    width = "how narrow the interval is to be is --half-width"
    said = f"'{value}' is no number format; there are: fp32, bf16-autocast ({width})"
    assert result.stderr.splitlines()[-1].endswith(said)


def test_translation_needs_its_library(refused, simulation, run_folder, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None)
    line = refused("bench", "baseline", "--workload", "translation", "--python", simulation.python,
                   "--output", run_folder)  # fmt: skip
    assert "its BLEU needs the package 'sacrebleu'" in line
