"""Training that is compiled, in images with what this takes: it is installed in them as in the variant compile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.conftest import BuiltImage, Requires, run

TAG = f"envkit-cpu:test-compile-{os.getpid()}"
FAST = "-comp zstd -Xcompression-level 1"
# One worker, as one's own command: a measurement would start two, of which each compiles.
WORKER = ("python", "/kit/envkit/worker/__main__.py", "train", "--compile")
SHORT = ("--workload", "loader-w0-b4", "--data", "generated", "--steps", "2", "--warmup-steps", "2")


@pytest.fixture(scope="module", autouse=True)
def removed() -> Iterator[None]:
    yield
    run("docker", "image", "rm", TAG, check=False)


@pytest.fixture
def oci_image(requires: Requires, built_image: BuiltImage, tmp_path: Path) -> str:
    requires("docker")
    words = (
        f"FROM {built_image('docker')}",
        "USER root",
        "RUN /opt/kit/share/envkit/install.sh compiler g++",
        "USER 1000",
    )
    (tmp_path / "Dockerfile").write_text("\n".join(words))
    run("docker", "build", "--network", "host", "--tag", TAG, tmp_path)
    return TAG


@pytest.fixture
def options(requires: Requires, oci_image: str, open_folder: Path) -> Callable[[str], list[str]]:
    """The options that choose an engine and its image; skips where the engine is missing."""

    def chosen(engine: str) -> list[str]:
        requires(engine)
        if engine == "docker":
            return ["--engine", engine, "--image", oci_image]
        sif = open_folder / "compile.sif"
        run("images/build", "sif", "--from", oci_image, "--output", sif, KIT_SIF_COMPRESSION=FAST)
        return ["--engine", engine, "--sif", str(sif)]

    return chosen


@pytest.mark.parametrize("engine", ["docker", "apptainer"])
def test_a_worker_compiles(
    cli: Callable[..., Any],
    options: Callable[[str], list[str]],
    open_folder: Path,
    surroundings: dict[str, str],
    engine: str,
) -> None:
    started = ("exec", "baseline", *options(engine), "--no-check", "--", *WORKER, *SHORT)
    result = cli(*started, cwd=open_folder / "runs", **surroundings)
    assert result.returncode == 0, result
    assert json.loads(result.stdout)["modes"]["compile"] is True
