"""What `images/build` and the files that it builds from promise, as far as that can be seen without a builder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = sorted(
    path
    for path in [*PROJECT.glob("images/*"), *PROJECT.glob(".ci/engines/*"), PROJECT / ".ci/run"]
    if path.is_file() and path.read_bytes()[:64].startswith((b"#!/bin/bash", b"#!/bin/sh", b"# shellcheck"))
)


def build(*arguments: object, tree: Path = PROJECT, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tree / "images/build", *map(str, arguments)], cwd=tree, env={**os.environ, **variables}, timeout=600,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def assert_one_clear_line(result: subprocess.CompletedProcess[str], status: int, *parts: str) -> None:
    assert result.returncode == status, result
    assert len(result.stderr.splitlines()) == 1, result.stderr
    for part in parts:
        assert part in result.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what images/build needs of the project, to change."""
    tree = tmp_path / "project"
    shutil.copytree(PROJECT / "images", tree / "images")
    shutil.copy(PROJECT / "Apptainerfile", tree)
    (tree / "runner").mkdir()
    shutil.copy(PROJECT / "runner/__init__.py", tree / "runner")
    (tree / ".venv").symlink_to(sys.prefix)
    return tree


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_shell_scripts_parse(script: Path) -> None:
    shell = "sh" if script.read_text().startswith("#!/bin/sh") else "bash"
    result = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_dockerfile_has_nothing_that_hadolint_objects_to() -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if hadolint is None:
        pytest.skip("hadolint is missing: make dev")
    result = subprocess.run(
        [hadolint, *PROJECT.glob("images/*/Dockerfile")], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "oci or sif"),
        (("docker",), "no argument 'docker'"),
        (("oci", "--engine", "lxc"), "--engine lxc: docker or podman"),
        (("oci", "--libraries", "pip"), "--libraries pip: conda or debian"),
        (("oci", "--tag"), "--tag needs a value"),
        (("oci", "--from", "x"), "--from is for sif"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], said: str) -> None:
    assert_one_clear_line(build(*arguments), 2, said)


def test_help_names_every_option() -> None:
    result = build("--help")
    assert result.returncode == 0
    for word in ("--libraries", "--tag", "--output", "--from", "BASE", "BOOTSTRAP", "ENVKIT_CONDA_CHANNEL"):
        assert word in result.stdout


def test_without_a_conda_lock_and_channel_the_way_on_is_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "images/cpu/conda.lock").unlink(missing_ok=True)
    monkeypatch.setenv("ENVKIT_CONDA_CHANNEL", "http://127.0.0.1:9/conda-forge")
    result = build("oci", "--libraries", "conda", tree=tree)
    assert_one_clear_line(result, 2, "http://127.0.0.1:9/conda-forge does not answer", "LIBRARIES=debian")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk to fill")
@pytest.mark.skipif(shutil.which("apptainer") is None, reason="apptainer is not installed")
def test_a_full_disk_leaves_no_image(tree: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["images/build", "sif", "--libraries", "debian"]
    # a mount namespace of its own, which takes the small disk along when it ends; what was left on it is listed at last
    script = f'mount -t tmpfs -o size=20m none {disk} && "$@"; status=$?; ls {disk}; exit $status'
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *command], cwd=tree, timeout=600,
        env={**os.environ, "KIT_BUILD_DIR": str(disk)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert_one_clear_line(result, 1, "no space left", str(disk), "KIT_BUILD_DIR")
    assert ".sif" not in result.stdout
