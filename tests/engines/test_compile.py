"""Training that is compiled, in an image with what this takes: it is installed there as in the variant compile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from envkit.worker.modes import Options
from envkit.worker.request import Train, WorkerRequest

from tests.engines.conftest import BuiltImage, missing, run

INSTALL = "/opt/kit/share/envkit/install.sh compiler g++"
TAG = f"envkit-cpu:test-compile-{os.getpid()}"
# One worker, as one's own command: a measurement would start two, of which each compiles.
WORKER = ("python", "/kit/envkit/worker/__main__.py", "request.json")
SHORT = Train("loader-w0-b4", "generated", warmup_steps=2, steps=2, options=Options(compile=True))


@pytest.fixture(scope="module", autouse=True)
def removed() -> Iterator[None]:
    yield
    if not missing("docker"):
        run("docker", "image", "rm", TAG, check=False)


@pytest.fixture
def image(built_image: BuiltImage, tmp_path: Path) -> str:
    """The image with a compiler. Docker stands for the others: the same script installs it in each of their images."""
    words = (f"FROM {built_image('docker')}", "USER root", f"RUN {INSTALL}", "USER 1000")
    (tmp_path / "Dockerfile").write_text("\n".join(words))
    run("docker", "build", "--network", "host", "--tag", TAG, tmp_path)
    return TAG


def test_a_worker_compiles(
    cli: Callable[..., Any], image: str, open_folder: Path, surroundings: dict[str, str]
) -> None:
    (open_folder / "runs/request.json").write_text(WorkerRequest(SHORT).line())
    started = ("exec", "baseline", "--engine", "docker", "--image", image, "--no-check", "--", *WORKER)
    result = cli(*started, cwd=open_folder / "runs", **surroundings)
    assert result.returncode == 0, result
    document = json.loads(result.stdout)
    assert document["modes"]["compile"] is True
    assert max(document["step_s"]) < max(document["warmup_step_s"])  # which is where compiling takes its time
