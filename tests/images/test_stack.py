"""images/stack makes a Python environment of a variant's locked files, and refuses all others."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.images.conftest import assert_one_clear_line
from tests.images.made_wheel import make_wheel

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tree(tiny_project: Path) -> Path:
    return tiny_project


@pytest.fixture
def stack(tree: Path, monkeypatch: pytest.MonkeyPatch, copying_python: str) -> Run:
    if shutil.which("python3.11") is None and sys.version_info[:2] != (3, 11):
        pytest.skip("there is no Python 3.11, which the variants' wheels are for")
    monkeypatch.setenv("STACK_PYTHON", copying_python)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tree / "wheels"))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(tree / "images/stack"), *arguments]
        return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, timeout=300)

    return run


def test_it_has_the_locked_packages_and_is_left_alone_the_next_time(
    stack: Run, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STACK_PYTHON")
    result = stack("tiny")
    assert result.returncode == 0, result
    assert result.stdout.splitlines()[-1] == "images/stack: done: .venv-tiny"
    show = [tree / ".venv-tiny/bin/python", "-m", "pip", "list", "--format", "freeze"]
    packages = subprocess.run(show, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"torch==2.0.0", "numpy==1.0", "intel-openmp==2026.2.0"} < set(packages)
    again = stack("tiny")
    assert (again.returncode, again.stdout) == (0, "")


@pytest.mark.parametrize("lock", ["requirements", "torch"])
def test_a_file_of_another_hash_is_not_installed(stack: Run, tree: Path, lock: str) -> None:
    path = tree / f"images/tiny/{lock}.lock"
    text = path.read_text()
    path.write_text(text.replace(text.partition("sha256:")[2][:8], "00000000"))
    result = stack("tiny")
    assert_one_clear_line(result, 2, "the file of ", "which is not in the lock")
    assert not (tree / ".venv-tiny/.locked").exists()


def test_a_pytorch_that_does_not_go_with_its_numpy_is_said(stack: Run, tree: Path) -> None:
    broken = "raise ImportError('numpy.core.multiarray failed to import')\n"
    (tree / "images/tiny/torch.lock").write_text(make_wheel(tree / "wheels", "torch", "2.0.0", broken))
    said = "its PyTorch does not work: ImportError: numpy.core.multiarray failed to import"
    assert_one_clear_line(stack("tiny"), 2, said)


def test_a_lock_without_a_package_for_torch(stack: Run, tree: Path) -> None:
    (tree / "images/tiny/torch.lock").write_text("# none yet\n")
    assert_one_clear_line(stack("tiny"), 2, "tiny.torch: is 2.0.0, and images/tiny/torch.lock has none of it")


def test_a_folder_of_somebody_else_is_left_alone(stack: Run, tree: Path) -> None:
    (tree / ".venv-tiny").mkdir()
    (tree / ".venv-tiny/mine").write_text("mine")
    assert_one_clear_line(stack("tiny"), 2, ".venv-tiny was not made by images/stack and is left alone")
    assert (tree / ".venv-tiny/mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("python", "said"),
    [("/nowhere/python", "no Python at '/nowhere/python'"), ("echo", "'echo' is Python -c import sys")],
)
def test_a_python_that_the_wheels_are_not_for(
    stack: Run, monkeypatch: pytest.MonkeyPatch, python: str, said: str
) -> None:
    monkeypatch.setenv("STACK_PYTHON", python)
    assert_one_clear_line(stack("tiny"), 2, said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "usage: images/stack VARIANT"), (("",), "usage"), (("tniy",), "there is no variant 'tniy'")],
)
def test_a_variant_that_there_is_not(stack: Run, arguments: tuple[str, ...], said: str) -> None:
    assert_one_clear_line(stack(*arguments), 2, said)
