"""A project whose packages are made up, so that scripts of images/ install them within seconds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.engines.base import PROJECT

from tests.images.made_wheel import make_wheel

VARIANT = """\
tiny:
  title: A PyTorch that is none
  torch: 2.0.0
  intel-openmp: 2026.2.0
  libraries: debian
  locks: {packages: tiny/requirements.lock, torch: tiny/torch.lock}
"""


def assert_one_clear_line(result: subprocess.CompletedProcess[str], status: int, *parts: str) -> None:
    """A script failed so, and said why in one line, with these parts."""
    assert result.returncode == status, result
    assert len(result.stderr.splitlines()) == 1, result.stderr
    for part in parts:
        assert part in result.stderr


def copy_of_scripts(folder: Path) -> Path:
    """Make ``folder`` a copy of what scripts of images/ need of the project, to change.

    With what is compiled, but for what Python is just writing: the scripts of each test would compile it anew.
    """
    for name in ("images", "runner/envkit/common"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    (folder / "runner/envkit/worker").mkdir()
    for name in ("__init__.py", "messages.py", "rendering.py", "worker/libraries.py"):
        shutil.copy(PROJECT / "runner/envkit" / name, folder / "runner/envkit" / name)
    return folder


@pytest.fixture(scope="session")
def copying_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python 3.11 whose environments are copies of one: to make each would take seconds."""
    folder = tmp_path_factory.mktemp("copied")
    python = shutil.which("python3.11") or sys.executable
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True, timeout=240)
    script = folder / "python"
    script.write_text(f"""#!/bin/sh
[ "$1 $2" != "-m venv" ] || exec cp -a {folder}/venv/. "$3"
exec {python} "$@"
""")
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def tiny_project(tmp_path: Path) -> Path:
    """A copy of the project's scripts, with one variant, whose wheels are in ``wheels``."""
    tree = copy_of_scripts(tmp_path / "project")
    (tree / ".venv").symlink_to(sys.prefix)
    wheels, locks = tree / "wheels", tree / "images/tiny"
    wheels.mkdir()
    locks.mkdir()
    numpy = make_wheel(wheels, "numpy", "1.0", "def ones(size): return [1] * size\n")
    openmp = make_wheel(wheels, "intel-openmp", "2026.2.0", "")
    works = "class from_numpy:\n    def __init__(self, array): pass\n    def sum(self): pass\n"
    (locks / "requirements.lock").write_text(numpy + openmp)
    (locks / "torch.lock").write_text(make_wheel(wheels, "torch", "2.0.0", works))
    (tree / "images/variants.yaml").write_text(VARIANT)
    return tree
