"""An envkit that pip installed, outside of the checkout, in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import PROJECT

Installed = Callable[..., "subprocess.CompletedProcess[str]"]
TRAINING = """
import torch
torch.ones(10**6).add_(1)
print(torch.__file__)
"""


def built(source: Path, folder: Path) -> Path:
    """Return the wheel of ``source``, an sdist or a copy of a checkout."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(source)], check=True, timeout=240)
    return next(folder.glob("envkit-*.whl"))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git tracks of the project, and a profile that was tuned on this machine."""
    folder = tmp_path_factory.mktemp("checkout") / "envkit"
    without = shutil.ignore_patterns("__pycache__", "local")
    for name in ("runner", "envprofiles"):
        shutil.copytree(PROJECT / name, folder / name, symlinks=True, ignore=without)
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(PROJECT / name, folder)
    (folder / "envprofiles/local").mkdir()
    (folder / "envprofiles/local/vm-tuned.yaml").write_text("name: vm-tuned\n")
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(checkout, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel and what it needs, beside modules that a training must not import."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=240)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", str(wheel)], check=True, timeout=240)
    packages = next(folder.glob("lib/python*/site-packages"))
    # .pth files in there, such as that of the checkout, have no effect
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"))
    for name in ("torch", "resource"):
        (packages / f"{name}.py").write_text(f'raise SystemExit("the {name} beside envkit was imported")\n')
    return folder


@pytest.fixture
def installed(environment: Path, tmp_path: Path) -> Installed:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        variables |= {"XDG_CONFIG_HOME": str(tmp_path / "configuration"), "COLUMNS": "200"}
        command = [str(environment / "bin/envkit"), *arguments]
        return subprocess.run(
            command, check=False, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=240
        )

    return run


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as file:
        return {name for name in file.namelist() if ".dist-info/" not in name}


def test_a_wheel_has_every_file_of_the_package(wheel):
    tracked = subprocess.run(
        ["git", "ls-files", "runner", "envprofiles"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split()
    files = {name.removeprefix("runner/") if name.startswith("runner/") else f"envkit/{name}" for name in tracked}
    files.remove("envkit/envprofiles")
    assert names(wheel) == files


def test_a_wheel_from_an_sdist_is_the_same(checkout, wheel, tmp_path):
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=checkout, check=True, timeout=240, capture_output=True)
    assert names(built(next(tmp_path.glob("envkit-*.tar.gz")), tmp_path)) == names(wheel)


def test_shipped_profiles_are_listed_and_shown(installed):
    done = installed("profiles", "--json")
    assert done.returncode == 0, done.stderr
    shipped = {path.stem for path in PROJECT.glob("envprofiles/*.yaml")}
    assert {one["name"] for one in json.loads(done.stdout)} == shipped
    shown = installed("show", "glibc-retain")
    assert shown.returncode == 0, shown.stderr
    assert "glibc.malloc.mmap_threshold" in shown.stdout


def test_a_profile_of_this_machine_is_kept_in_the_users_configuration_folder(installed, tmp_path):
    done = installed("show", "tuned")
    folder = tmp_path / "configuration/envkit/profiles"
    assert done.returncode == 2
    assert f"{folder}/{os.uname().nodename}-tuned.yaml: this machine has no tuned profile yet" in done.stderr
    folder.mkdir(parents=True)
    text = "name: mine\ntitle: mine\nwhy: {reason: a test}\nextends: glibc-retain\n"
    (folder / "mine.yaml").write_text(text)
    assert installed("show", "mine").returncode == 0
    assert "mine" in {one["name"] for one in json.loads(installed("profiles", "--json").stdout)}


def test_a_command_runs_under_a_profile_with_its_own_torch(installed, tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    done = installed("exec", "glibc-retain", "--", sys.executable, "train.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(sysconfig.get_path("purelib"))
    assert "glibc-retain was in effect in 1 process" in done.stderr


def test_another_interpreter_is_measured_with_its_own_torch(installed):
    few = ("--blocks", "1", "--steps", "1", "--warmup-steps", "1", "--data", "synthetic")
    done = installed("bench", "glibc-retain", "--python", sys.executable, *few)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " verified in every process" in done.stdout
