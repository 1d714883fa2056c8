"""How engines hand on GPUs, and what they say where there is nothing to hand on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.engines import apptainer, container, docker, podman
from envkit.engines.base import EngineOptions, Launch
from envkit.engines.messages import ExitStatus, NoContainerToolkit
from envkit.engines.setup_messages import NoDevice, NoDriver
from envkit.worker import nvml
from envkit.worker.messages.gpus import NoDriverSeen
from envkit.worker.nvml import Nvml, Unavailable
from envkit.worker.request import Inspect, Train

from tests.nvidia import Library
from tests.refusals import refusal

CONTAINER_S = 300
WORDS = {
    docker.DockerEngine: "--gpus all", podman.PodmanEngine: "--device nvidia.com/gpu=all",
    apptainer.ApptainerEngine: "--nv",
}  # fmt: skip


@pytest.mark.parametrize("engine", WORDS, ids=lambda engine: engine.name)
def test_only_training_on_gpus_is_given_them(engine):
    made = engine.__new__(engine)
    made.given, made._sif, made._rootless = EngineOptions(), Path("x.sif"), False
    made._described = {"image": "x"}
    with_them = " ".join(made.command(Launch(Train("cnn", "synthetic"), gpus=True)))
    assert WORDS[engine] in with_them
    assert with_them.index(WORDS[engine]) < with_them.index("envkit/worker")
    assert WORDS[engine] not in " ".join(made.command(Launch(Train("cnn", "synthetic"))))


def test_what_the_daemon_is_asked_for():
    (request,) = docker._all_gpus(Launch(Train("cnn", "synthetic"), gpus=True))
    assert (request["Count"], request["Capabilities"]) == (-1, [["gpu"]])
    assert docker._all_gpus(Launch(Train("cnn", "synthetic"))) is None


def test_the_driver_is_missing(monkeypatch):
    def start():
        raise Unavailable(NoDriverSeen("x.so"))

    monkeypatch.setattr(nvml, "start", start)
    assert refusal(container.require_gpus) == NoDriver(NoDriverSeen("x.so"))


def test_the_device_is_missing():
    assert refusal(container.require_gpus, Nvml(Library(gpus=0))) == NoDevice("580.95.05")
    container.require_gpus(Nvml(Library(gpus=1)))


@pytest.mark.parametrize(
    "printed",
    [
        'could not select device driver "" with capabilities: [[gpu]]',
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
        "Error: stat nvidia.com/gpu=all: no such file or directory",
    ],
)
def test_the_container_toolkit_is_missing(printed):
    assert isinstance(container.without_gpus(ExitStatus(126), printed), NoContainerToolkit)


def test_other_failures_stay_what_they_are():
    assert container.without_gpus(ExitStatus(1), "ValueError") == ExitStatus(1)
    assert container.without_gpus(None, "unresolvable CDI devices") is None


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_real_engine_without_the_toolkit_says_so(requires, refused, built_image, monkeypatch, engine):
    """The driver is made up, so that the engine is asked; that it has no way to a GPU is its own answer."""
    requires(engine)
    if nvml_is_here():
        pytest.skip("this machine has a driver")
    image = built_image(engine)
    used = {"docker": docker.DockerEngine, "podman": podman.PodmanEngine}[engine](EngineOptions(image=image))
    monkeypatch.setattr(nvml, "start", lambda: Nvml(Library()))
    outcome = used.run(Launch(Inspect(gpus=True), gpus=True))
    assert isinstance(outcome.failure, NoContainerToolkit), outcome


def nvml_is_here() -> bool:
    return Path("/proc/driver/nvidia/version").exists()


@pytest.mark.parametrize("engine", ["docker", "podman", "apptainer"])
def test_a_machine_without_a_driver(refused, engine_options, engine, tmp_path):
    if nvml_is_here():
        pytest.skip("this machine has a driver")
    options = engine_options(engine)
    more = ("--device", "cuda", "--data", "synthetic", "--output", tmp_path / "x")
    line = refused("bench", "physical-cores", *options, *more)
    assert "GPUs for a container: the driver is missing on this machine: no NVIDIA driver is seen" in line


# The runner on a machine that looks as if it had a GPU, and whose own torch is one for CUDA; the container is another.
WITH_A_GPU = """
import sys
from envkit.engines import container, docker
from envkit.worker import gpus as seen_here
container.require_gpus = lambda: None
docker._all_gpus = lambda launch: None  # the toolkit, without which the daemon starts nothing that is to have a GPU
seen_here.torch_cuda = lambda: "13.0"
from envkit.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("engine", ["docker", "apptainer"])
def test_the_image_for_cpus_says_itself_that_it_can_not(engine_options, surroundings, project, engine, tmp_path):
    """The driver and the toolkit are out of the way, so that a container starts; what it says is its own finding."""
    folder = tmp_path / "run"
    command = ("bench", "physical-cores", "--device", "cuda", *engine_options(engine), "--data", "synthetic")
    result = subprocess.run(
        [sys.executable, "-c", WITH_A_GPU, *command, "--output", str(folder)], cwd=project,
        env={**os.environ, **surroundings}, capture_output=True, text=True, timeout=CONTAINER_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1), result
    said = f"(engine {engine}) can't: its torch is a build without CUDA; name a Python with another"
    assert result.stderr.startswith("envkit: --device cuda: ")
    assert said in result.stderr
    assert not folder.exists()
