"""``--workload all``, and the modes: what is started, recorded and refused; with simulated workers."""

from __future__ import annotations

import importlib.util

import pytest
from envkit.bench import record
from envkit.bench.study import Study
from envkit.worker.modes import Options
from envkit.worker.workloads import ALL

from tests.cli.commands.conftest import words
from tests.records import spent


@pytest.fixture(autouse=True)
def bleu_library(monkeypatch):
    """These workers translate nothing, so that BLEU needs no library."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: name == "sacrebleu" or real(name, *rest))


# What compiling needs.
FOUND = {"g++": "/usr/bin/g++", "openssl": "/usr/bin/openssl"}


@pytest.fixture
def study(run_folder):
    return lambda: Study.from_json(record.first(run_folder)["study"])


# --- all workloads ---


def test_there_is_time_for_intervals_by_default(cli, instant, bench_arguments, run_folder, study):
    arguments = bench_arguments("mine", "--full", "--workload", "all")  # which fixes no length, and is left out
    arguments.remove("--full")
    instant.takes_s = 7.5  # a sample of 5 s, and the start of its worker
    result = cli(*arguments).ended(0)
    assert study().stopping.budget_s == 768
    assert "an interval needs" not in result.stdout
    assert spent(record.read(run_folder)) <= 13 * 60  # of 15 minutes: the rest is for an installation


def test_workloads_begin_with_weights_of_their_own(bench, simulation, instant):
    own = {name: {"initial_weights": digit * 64} for name, digit in zip(ALL, "1234", strict=True)}
    for name in ("baseline", "mine"):
        simulation.worker(name, digests_of=own)
    assert bench("mine", "--workload", "all", "--blocks", 2).returncode == 0


def test_other_weights_of_one_workload_are_a_failure(bench, simulation, instant):
    simulation.worker("mine", digests={"initial_weights": "a" * 64})
    result = bench("mine", "--workload", "all", "--blocks", 1).ended(1)
    assert "its initial weights differs from that of earlier samples" in words(result.stdout)


# --- modes ---


def test_modes_reach_every_worker_and_are_recorded_and_shown(bench, cli, simulation, instant, study, run_folder):
    for name in ("baseline", "mine"):
        simulation.worker(name, modes={"precision": "bf16-autocast", "compile": False, "channels_last": True})
    result = bench("mine", "--precision", "bf16-autocast", "--channels-last", "--scale", 2).ended(0)
    trained = [start["training"]["options"] for start in simulation.starts(all=True) if "training" in start]
    assert {Options(**options) for options in trained} == {Options("bf16-autocast", channels_last=True, scale=2)}
    assert study().options.text() == "bf16-autocast, channels-last, scale 2"
    assert "workloadcnn(bf16-autocast,channels-last,scale2)" in "".join(result.stdout.split())
    details = cli("report", run_folder, "--details").stdout
    assert "modes     bf16-autocast, channels-last, scale 2" in details


def test_a_mode_that_was_not_in_effect_is_a_failure(bench, simulation, instant):
    for name in ("baseline", "mine"):
        simulation.worker(name, modes={"precision": "fp32", "compile": False, "channels_last": False})
    result = bench("mine", "--precision", "bf16-autocast").ended(1)
    said = "the worker should have trained with precision: bf16-autocast, but observed fp32"
    assert said in words(result.stdout)


@pytest.mark.parametrize(("options", "differ"), [(("--precision", "bf16-autocast"), False), ((), True)])
def test_losses_may_differ_by_more_in_bf16_than_in_fp32(bench, simulation, instant, options, differ):
    simulation.worker("mine", losses=[2.3 * 1.005, 2.299, 2.298])
    result = bench("mine", *options)
    assert (result.returncode, "DIFFER by up to" in result.stdout) == (0, differ)


@pytest.mark.parametrize(
    ("lacks", "what"),
    [({"commands": {**FOUND, "g++": None}}, "g++"), ({"python_headers": False}, "Python's headers (Python.h)"),
     ({"commands": {**FOUND, "openssl": None}, "python_headers": False}, "openssl and Python's headers (Python.h)")],
)  # fmt: skip
def test_compiling_takes_a_compiler_in_the_image(refused, bench_arguments, simulation, lacks, what):
    simulation.inspection(**{"commands": FOUND, **lacks})
    line = refused(*bench_arguments("mine", "--compile"))
    assert line.startswith(f"envkit: --compile: torch.compile needs {what}, which /")
    assert line.endswith("(engine local) lacks; install it there, or leave --compile out")


def test_compiling_with_one(bench, simulation, instant):
    simulation.inspection(commands=FOUND)
    assert bench("mine", "--compile", "--blocks", 1).returncode == 0
    assert all(start["training"]["options"]["compile"] for start in simulation.starts())


def test_pinned_memory_without_an_accelerator(refused, simulation, run_folder):
    simulation.inspection(packages={"torch": "2.13.0+cpu", "numpy": "2"})
    named = ("--workload", "loader-w2-b32-pin", "--python", simulation.python, "--output", run_folder)
    line = refused("bench", "baseline", *named)
    assert "loader-w2-b32-pin: pinned memory is for an accelerator, and torch 2.13.0+cpu in " in line
    assert not run_folder.exists()


def test_translation_needs_its_library(refused, run_folder, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None)
    line = refused("bench", "baseline", "--workload", "translation", "--output", run_folder)
    assert "--workload translation needs the package 'sacrebleu'" in line
    assert not run_folder.exists()
