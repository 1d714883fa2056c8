"""A Python without torch, or with one that is too old, is refused before anything starts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from envkit.common.errors import InputError
from envkit.engines.base import EngineOptions, Launch
from envkit.engines.inspect_image import OLDEST_PYTHON, OLDEST_TORCH, inspect, require_own_workloads
from envkit.engines.local import LocalEngine
from envkit.engines.messages import NoTorch, TooOld
from envkit.worker.request import Inspect

PACKAGES = {"torch": "2.13.0", "numpy": "2.4.6", "intel-openmp": None, "mkl": None}


@pytest.fixture
def no_python_on_the_path(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")


def refusal(engine):
    with pytest.raises(InputError) as caught:
        inspect(engine, {})
    return caught.value.message


def test_a_python_without_torch(simulation, no_python_on_the_path):
    simulation.inspection(packages={**PACKAGES, "torch": None})
    engine = LocalEngine(EngineOptions(python=str(simulation.python)))
    assert refusal(engine) == NoTorch(str(simulation.python), OLDEST_TORCH, "PATH")
    assert inspect(engine, {}, torch=False)["packages"]["torch"] is None  # who only asks for the machine


def test_a_python_of_the_path_that_has_torch_is_suggested(simulation, monkeypatch, tmp_path):
    simulation.inspection(packages={**PACKAGES, "torch": None})
    for name, status in (("python", 1), ("python3", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = refusal(LocalEngine(EngineOptions(python=str(simulation.python))))
    assert found == NoTorch(str(simulation.python), OLDEST_TORCH, str(tmp_path / "python3"))


def test_a_command_that_does_not_tell_its_python_is_named(simulation, monkeypatch, no_python_on_the_path):
    simulation.inspection(packages={**PACKAGES, "torch": None})
    monkeypatch.setattr(sys, "executable", str(simulation.python))
    engine = LocalEngine(EngineOptions()).for_command(["./train.sh"])
    assert refusal(engine) == NoTorch(str(simulation.python), OLDEST_TORCH, "PATH", "./train.sh")


@pytest.mark.parametrize(
    ("package", "version", "oldest"), [("torch", "1.4.0", OLDEST_TORCH), ("Python", "3.9.2", OLDEST_PYTHON)]
)
def test_what_is_too_old_for_the_kits_own_workloads(no_python_on_the_path, package, version, oldest):
    versions = {"torch": "2.0.0+cpu", "Python": "3.10.0", package: version}
    inspection = {"python": {"version": versions["Python"]}, "packages": {**PACKAGES, "torch": versions["torch"]}}
    with pytest.raises(InputError) as caught:
        require_own_workloads({"name": "local", "image": "/old/python"}, inspection)
    assert caught.value.message == TooOld("/old/python", package, version, oldest, "PATH")
    with pytest.raises(InputError) as caught:
        require_own_workloads({"name": "docker", "image": "old"}, inspection)
    assert caught.value.message == TooOld("old", package, version, oldest)


def test_the_oldest_is_not_too_old_and_no_other_python_is_started(monkeypatch):
    monkeypatch.delattr(subprocess, "run")
    inspection = {"python": {"version": "3.10.0"}, "packages": {**PACKAGES, "torch": "2.0.0+cpu"}}
    require_own_workloads({"name": "local", "image": "/python"}, inspection)


@pytest.mark.parametrize("command", ["bench glibc-retain", "plan", "matrix glibc-retain", "doctor glibc-retain"])
def test_a_torch_that_is_too_old_is_one_line(refused, simulation, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    simulation.inspection(packages={**PACKAGES, "torch": "1.4.0"})
    line = refused(*command.split(), "--python", simulation.python)
    assert line.startswith(f"envkit: {simulation.python}: has torch 1.4.0")
    assert [one["name"] for one in simulation.starts(all=True)] == ["inspect"] or simulation.starts() == []
    assert not (tmp_path / "results").exists()


def test_a_users_own_training_may_have_an_older_torch(cli, simulation, tmp_path):
    """The kit's own interpreter is not measured then, and what the hook can't time it says itself."""
    simulation.inspection(packages={**PACKAGES, "torch": "1.4.0"})
    result = cli("show", "glibc-retain", "--python", simulation.python)
    assert result.returncode == 0, result.stderr


def test_a_worker_starts_where_no_package_of_the_kit_is(tmp_path):
    """An empty entry of PYTHONPATH means the folder where it starts, and comes before the user's own packages."""
    (tmp_path / "python").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "python").chmod(0o755)
    engine = LocalEngine(EngineOptions(python=str(tmp_path / "python")))
    launch = Launch(Inspect(), inherited={"PYTHONPATH": ":/x", "PATH": os.environ["PATH"]})
    assert engine.run(launch).stdout == "/\n"
    shown = subprocess.run(engine.command(launch), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shown.stdout == "/\n"
