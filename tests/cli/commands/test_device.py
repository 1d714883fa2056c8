"""``--device cuda``: what workers are started with, what is recorded, and what is refused; with simulated workers."""

from __future__ import annotations

import argparse
import json
import os
import sys

import pytest
from envkit.bench import record
from envkit.bench.study import Study
from envkit.cli.execution import in_container
from envkit.engines.base import PROJECT, EngineOptions
from envkit.worker.messages.gpus import BuiltWithoutCuda, DriverUnusable, NoDriverSeen

from tests.cli.commands.conftest import words
from tests.nvidia import accelerator
from tests.simulation import times

ON_GPU = ("--device", "cuda")
IN_IMAGE = ("--engine", "docker", "--image", "envkit-cuda")


def of(simulation, command):
    return [start for start in simulation.starts(all=True) if start["work"]["kind"] == command]


# --- what is started ---


def test_workers_train_on_the_gpu_that_the_caller_may_use(bench, simulation, instant, machine, run_folder):
    machine(2)
    result = bench("mine", *ON_GPU, CUDA_VISIBLE_DEVICES="1", CUDA_DEVICE_ORDER="PCI_BUS_ID", NCCL_DEBUG="INFO")
    assert result.returncode == 0, result.stderr
    for start in of(simulation, "train"):
        given = start["environment"]
        assert start["training"]["options"]["device"] == "cuda"
        assert (given["CUDA_VISIBLE_DEVICES"], given["CUDA_DEVICE_ORDER"]) == ("1", "PCI_BUS_ID")
        assert "NCCL_DEBUG" not in given
    assert all(start["work"]["gpus"] for start in of(simulation, "inspect"))
    first = record.first(run_folder)
    assert Study.from_json(first["study"]).options.device == "cuda"
    assert first["allowed_variables"].keys() == {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}
    assert "PCI_BUS_ID" not in (run_folder / record.FILE_NAME).read_text()
    assert "workloadcnn(cuda)" in "".join(result.stdout.split())


def test_training_on_cpus_looks_for_no_gpu_and_keeps_no_choice_of_one(bench, simulation, instant):
    assert bench("mine", CUDA_VISIBLE_DEVICES="1").returncode == 0
    assert not any(start["work"]["gpus"] for start in of(simulation, "inspect"))
    for start in of(simulation, "train"):
        assert start["training"]["options"]["device"] == "cpu"
        assert "CUDA_VISIBLE_DEVICES" not in start["environment"]


def test_a_resumed_run_goes_on_there(bench, cli, simulation, instant, machine, run_folder):
    machine()
    simulation.worker("mine", seconds=times(0.5), does="interrupt", **{"from": 3})
    assert bench("mine", *ON_GPU, CUDA_VISIBLE_DEVICES="0").returncode == 130
    simulation.worker("mine", seconds=times(0.5))
    looked = len(of(simulation, "inspect"))
    assert cli("bench", "--resume", run_folder, CUDA_VISIBLE_DEVICES="0").returncode == 0
    assert [start["work"]["gpus"] for start in of(simulation, "inspect")[looked:]] == [True]
    assert all(start["environment"]["CUDA_VISIBLE_DEVICES"] == "0" for start in simulation.starts())


def test_a_worker_that_trained_elsewhere_is_a_failure(bench, simulation, instant, machine):
    machine()
    simulation.worker("baseline", modes={"precision": "fp32", "device": "cpu"})
    result = bench("mine", *ON_GPU).ended(1)
    assert "should have trained with device: cuda, but observed cpu" in words(result.stdout)


@pytest.fixture
def bench_in_image(cli, in_image, write_profile, run_folder):
    """Measure ``mine`` in an image, on a machine with two GPUs."""

    def run(*options, text="", **variables):
        mine = write_profile("mine", f"{text}env: {{SIMULATED: mine}}\n")
        return cli("bench", mine, *IN_IMAGE, "--output", run_folder, *options, **variables).ended(0)

    return run


def test_a_container_is_told_which_gpus_are_meant(bench_in_image, in_image):
    """Also where it looks for them: what is refused depends on it."""
    given = {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    fixed = ("--data", "synthetic", "--blocks", 1, "--steps", 3)
    bench_in_image(*fixed, *ON_GPU, text="needs: {gpus: 1}\n", **given)
    assert {start["work"]["kind"] for start in in_image.starts(all=True)} >= {"inspect", "train"}
    for start in (*of(in_image, "inspect"), *of(in_image, "train")):
        assert {name: start["environment"].get(name) for name in given} == given


def test_a_command_of_ones_own_is_given_the_gpus_in_a_container(in_image, tmp_path, monkeypatch):
    docker = tmp_path / "bin/docker"
    docker.parent.mkdir()
    docker.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(docker.parent), prepend=os.pathsep)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.chdir(tmp_path)
    named = {"engine": "docker", "image": "envkit-cuda", "allow_unknown": False}
    options = argparse.Namespace(**{**dict.fromkeys(EngineOptions.names()), **named})
    asked = (("gpu-host", False, True), ("baseline", True, True), ("baseline", False, False))
    for options.profile, options.gpus, given in asked:
        _, start, passed_on = in_container.prepare(options, ["true"], {}, None)
        typed = " ".join(start.argv)
        assert ("--gpus all" in typed, "--env CUDA_VISIBLE_DEVICES " in typed) == (given, given)
        assert typed.endswith("envkit-cuda true")
        assert passed_on == ({"CUDA_VISIBLE_DEVICES": "1"} if given else {})
        assert of(in_image, "inspect")[-1]["work"]["gpus"] is (options.profile == "gpu-host")


@pytest.mark.parametrize("on", [ON_GPU, ()])
def test_what_won_in_a_container_is_used_with_the_same(bench_in_image, in_image, tmp_path, on):
    in_image.worker("mine", seconds=times(0.5))
    result = bench_in_image("--data", "synthetic", "--blocks", 6, "--steps", 3, *on)
    use = f"envkit exec {tmp_path}/mine.yaml {' '.join(IN_IMAGE)}{' --gpus' if on else ''} -- python train.py"
    assert "".join(use.split()) in "".join(result.stdout.split())


@pytest.mark.parametrize("on", [ON_GPU, ()])
def test_a_command_of_ones_own_is_measured_on_them_where_it_says_so(bench_in_image, cli, in_image, run_folder, on):
    bench_in_image("--blocks", 1, *on, "--", "true", CUDA_VISIBLE_DEVICES="1")
    first = record.first(run_folder)
    assert {"--gpus all" in typed for typed in first["commands"].values()} == {bool(on)}
    assert cli("bench", "--resume", run_folder, CUDA_VISIBLE_DEVICES="1").returncode == 0
    started = of(in_image, "command")
    assert {start["environment"].get("CUDA_VISIBLE_DEVICES") for start in started} == {"1" if on else None}
    looked = of(in_image, "inspect")
    assert (len(looked), {start["work"]["gpus"] for start in looked}) == (2, {bool(on)})


# --- what is refused ---


@pytest.mark.parametrize("command", ["bench", "matrix", "tune", "breakdown", "bench -- true"])
def test_a_machine_that_can_not(refused, simulation, instant, machine, run_folder, command):
    machine(problem=DriverUnusable(NoDriverSeen("x.so")))
    name, *own = command.split()
    named = ["--profile", run_folder / "x.yaml"] if name == "tune" else ["physical-cores"]
    named += [] if name == "breakdown" else ["--output", run_folder]  # which keeps nothing
    named += [] if own else ["--data", "synthetic"]
    line = refused(name, *named, "--python", simulation.python, *ON_GPU, *own)
    assert line == (
        "envkit: --device cuda: /sim/bin/python (engine local) can't: no NVIDIA driver is seen (x.so can't be loaded); "
        "install or fix the driver, or leave --device cuda out"
    )
    assert not run_folder.exists()


@pytest.mark.slow
def test_this_machines_own_torch_is_refused(refused, run_folder):
    """A real worker looks; the environment that tests run in has a torch for CPUs."""
    import torch

    if torch.version.cuda is not None:
        pytest.skip("this torch is a build with CUDA")
    line = refused("bench", "physical-cores", *ON_GPU, "--data", "synthetic", "--output", run_folder)
    assert "(engine local) can't: its torch is a build without CUDA; name a Python with another (--python)" in line


# A worker in an image whose torch is for CUDA 13.0, on a machine whose driver answers as one of long ago.
OLD_DRIVER = """
import ctypes
import sys
sys.path[:0] = [{project!r} + '/runner', {project!r}, {packages!r}]
from envkit.worker import nvml
from envkit.worker.command_line import main
from tests.nvidia import Library
real, driver = ctypes.CDLL, Library(nvmlSystemGetDriverVersion="470.57.02", nvmlSystemGetCudaDriverVersion_v2=11040)
ctypes.CDLL = lambda name, *more, **options: driver if name == nvml.LIBRARY else real(name, *more, **options)
sys.exit(main())
"""


def test_a_driver_too_old_for_the_image(refused, tmp_path, run_folder):
    """From what the driver and torch's own file say, by way of a real worker that looks, to the line."""
    torch = tmp_path / "packages/torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").touch()
    (torch / "version.py").write_text("from typing import Optional\n\ncuda: Optional[str] = '13.0'\n")
    worker, python = tmp_path / "worker.py", tmp_path / "python"
    worker.write_text(OLD_DRIVER.format(project=str(PROJECT), packages=str(tmp_path / "packages")))
    python.write_text(f'#!/bin/sh\nshift # the path of the worker\nexec {sys.executable} {worker} "$@"\n')
    python.chmod(0o755)
    where = ["--python", python, "--data", "synthetic", "--output", run_folder]
    assert refused("bench", "physical-cores", *ON_GPU, *where) == (
        f"envkit: --device cuda: {python} (engine local) can't: NVIDIA's driver 470.57.02 is for CUDA 11.4, and its "
        "torch was built for 13.0; install a newer driver, or a torch that is built for CUDA 11.4"
    )
    assert not run_folder.exists()


# --- profiles for GPUs ---


@pytest.mark.parametrize(("name", "needed"), [("gpu-no-tf32", 1), ("gpu-host", 1), ("nccl-log", 2), ("nccl-ring", 2)])
def test_they_do_not_apply_without_gpus(refused, simulation, instant, name, needed):
    line = refused("bench", name, "--python", simulation.python, "--data", "synthetic")
    assert line.startswith(f"envkit: profile '{name}' needs gpus to be {needed} or more, and here it is 0 (")


@pytest.mark.parametrize("command", ["show", "env", "exec", "doctor"])
def test_why_there_are_none_is_said(refused, simulation, instant, machine, command):
    machine(problem=BuiltWithoutCuda())
    own = ["--", "true"] if command == "exec" else []
    line = refused(command, "gpu-host", "--python", simulation.python, *own)
    assert line == (
        "envkit: profile 'gpu-host' needs gpus to be 1 or more, and here it is 0 "
        "(those that training on --device cuda could use): /sim/bin/python can't use one: "
        "its torch is a build without CUDA; name a Python with another (--python), or an image of one"
    )


def test_a_command_of_ones_own_gets_a_profile_for_the_gpus_that_it_may_use(cli_process, simulation, machine):
    """What is kept of an interpreter is kept for one choice of them."""
    machine(1)
    for chosen in ("0", "1"):
        named = ("--python", simulation.python)
        cli_process("exec", "gpu-host", *named, "--", "true", CUDA_VISIBLE_DEVICES=chosen).ended(0)
    assert [start["environment"].get("CUDA_VISIBLE_DEVICES") for start in of(simulation, "inspect")] == ["0", "1"]


@pytest.mark.parametrize("command", ["show", "env"])
def test_they_are_shown_as_they_are_in_an_image(cli, in_image, command):
    result = cli(command, "gpu-one-queue", *IN_IMAGE).ended(0)
    assert "CUDA_DEVICE_MAX_CONNECTIONS=1" in result.stdout
    (looked,) = of(in_image, "inspect")
    assert looked["work"]["gpus"]


@pytest.fixture
def on_one_gpu(cli, simulation, instant, machine, run_folder):
    """Measure shipped profiles on a machine with a GPU, of which all workers see this."""

    def run(command, *profiles, **seen):
        machine(1)
        for name in ("baseline", "baseline warming"):
            simulation.worker(name, evidence={"gpu": seen})
        fixed = ["--data", "synthetic", "--blocks", 6, "--steps", 3, "--output", run_folder]
        return cli(command, *profiles, *ON_GPU, "--python", simulation.python, *fixed)

    return run


def test_they_are_measured_where_there_are_some(on_one_gpu, simulation, run_folder):
    named = ("gpu-one-queue", "gpu-cublas-fixed", "nccl-log")
    result = on_one_gpu("matrix", *named, one_queue=True, cublas_workspace_bytes=2**25).ended(0)
    assert result.stderr.startswith("left out nccl-log: needs gpus to be 2 or more, and here it is 1")
    events = record.read(run_folder)
    assert [arm["name"] for arm in events[0]["study"]["arms"]] == ["baseline", "gpu-one-queue", "gpu-cublas-fixed"]
    given = [start["environment"].get("CUDA_DEVICE_MAX_CONNECTIONS") for start in simulation.starts()]
    assert sorted(set(map(str, given))) == ["1", "None"]


@pytest.mark.parametrize(
    ("name", "seen", "said"),
    [
        ("gpu-one-queue", {"work_queues": 8, "one_queue": False}, "gpu.one_queue: expected True, seen False"),
        ("gpu-cublas-fixed", {"cublas_workspace_bytes": 8519680},
         "gpu.cublas_workspace_bytes: expected 33554432, seen 8519680"),
        ("gpu-cublas-fixed", {}, "gpu.cublas_workspace_bytes: expected 33554432, seen nothing"),
    ],
)  # fmt: skip
def test_a_variable_that_was_given_and_came_to_nothing(on_one_gpu, cli, run_folder, name, seen, said):
    result = on_one_gpu("bench", name, **seen).ended(1)
    assert result.stdout.startswith(f"NOT IN EFFECT  {name}: no speedup is reported")
    assert said in words(cli("report", run_folder, "--details").stdout)


def test_what_the_worker_could_not_tell_is_not_verified(on_one_gpu, cli, run_folder):
    """Neither a failure nor a proof: it is measured, and the report says what is open."""
    result = on_one_gpu("bench", "gpu-one-queue", not_verified={"one_queue": "the times are not clear"}).ended(0)
    said = words(result.stdout)
    assert "not verified: gpu.one_queue (the times are not clear)" in said
    measured = json.loads(cli("report", run_folder, "--json").stdout)["measured"]
    (check,) = next(one["checks"] for one in measured if one["arm"] == "gpu-one-queue")
    assert (check["verified"], check["seen"]) == (False, "the times are not clear")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "env: {CUDA_VISIBLE_DEVICES: '3'}\n",
            "CUDA_VISIBLE_DEVICES='3' names GPU 3, and the machine has 1 GPU, numbered from 0",
        ),
        (
            "env: {NCCL_SOCKET_IFNAME: ib0}\n",
            "NCCL_SOCKET_IFNAME=ib0: no network interface of the machine fits; it has eth0, lo",
        ),
        ("env: {NCCL_ALGO: Rings}\n", "sets NCCL_ALGO: 'Rings' is not of the form it must have"),
        ("env: {NCCL_P2P_LEVEL: nvl}\n", "sets NCCL_P2P_LEVEL: 'nvl' is not one of its words; write one of LOC, NVL"),
    ],
)
def test_settings_that_would_come_to_nothing_there(refused, simulation, instant, machine, write_profile, text, said):
    machine(1)
    mine = write_profile("mine", text)
    assert said in refused("bench", mine, "--python", simulation.python, "--data", "synthetic", *ON_GPU)


def test_the_list_says_which_do_not_apply(cli, monkeypatch):
    monkeypatch.setattr("envkit.worker.gpus.look", lambda: accelerator(1))
    listed = {one["name"]: one["does_not_apply"] for one in json.loads(cli("profiles", "--json").stdout)}
    assert (listed["baseline"], listed["gpu-host"]) == (None, None)
    assert listed["nccl-log"].startswith("needs gpus to be 2 or more, and here it is 1 (")
    shown = cli("profiles").stdout
    (heading,) = [line for line in shown.splitlines() if line.startswith("do not apply here: needs gpus to be 2")]
    of_several = shown.partition(heading)[2].partition("\n\n")[0]
    assert {"nccl-ring", "nccl-simple"} <= {line.partition(" ")[0] for line in of_several.splitlines()}


def test_the_report_names_the_gpu(bench, simulation, instant, machine):
    machine(2)
    said = words(bench("mine", *ON_GPU).stdout)
    assert "4 CPUs, NVIDIA H100 80GB HBM3 (driver 580.95.05), torch" in said
    simulation.inspection()
    assert "H100" not in bench("mine", "--output", simulation.folder / "cpu").stdout


def test_another_gpu_is_another_machine(bench, cli, simulation, instant, machine, run_folder):
    machine(1)
    simulation.worker("mine", seconds=times(0.5), does="interrupt", **{"from": 3})
    assert bench("mine", *ON_GPU).returncode == 130
    machine(1, driver="590.10")
    result = cli("bench", "--resume", run_folder).ended(2)
    assert "accelerator.driver was 580.95.05 and is now 590.10" in result.stderr
