"""A project whose packages are made up, so that scripts of images/ install them within seconds."""

from __future__ import annotations

import shutil
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


@pytest.fixture
def tiny_project(tmp_path: Path) -> Path:
    """A copy of what scripts of images/ need of the project, with one variant, whose wheels are in ``wheels``."""
    tree = tmp_path / "project"
    shutil.copytree(PROJECT / "images", tree / "images", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        PROJECT / "runner/envkit/common", tree / "runner/envkit/common", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("messages.py", "rendering.py"):
        shutil.copy(PROJECT / "runner/envkit" / name, tree / "runner/envkit")
    (tree / "runner/envkit/worker").mkdir()
    shutil.copy(PROJECT / "runner/envkit/worker/libraries.py", tree / "runner/envkit/worker")
    (tree / "runner/envkit/__init__.py").touch()
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
