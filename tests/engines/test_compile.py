"""Training that is compiled, in images with what this takes: it is installed in them as in the variant compile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from envkit.worker.modes import Options
from envkit.worker.request import Train, WorkerRequest

from tests.engines.conftest import BuiltImage, Requires, run

INSTALL = "/opt/kit/share/envkit/install.sh compiler g++"
TAG = f"envkit-cpu:test-compile-{os.getpid()}"
# As nothing is kept, nothing is compressed.
UNCOMPRESSED = "-noI -noD -noF -noX"
# One worker, as one's own command: a measurement would start two, of which each compiles.
WORKER = ("python", "/kit/envkit/worker/__main__.py", "request.json")
SHORT = Train("loader-w0-b4", "generated", warmup_steps=2, steps=2, options=Options(compile=True))


@pytest.fixture(scope="module", autouse=True)
def removed() -> Iterator[None]:
    yield
    run("docker", "image", "rm", TAG, check=False)


@pytest.fixture
def options(
    requires: Requires, built_image: BuiltImage, image_of: BuiltImage, open_folder: Path, tmp_path: Path
) -> Callable[[str], list[str]]:
    """The options that choose an engine and its image; skips where the engine is missing."""

    def chosen(engine: str) -> list[str]:
        requires(engine)
        if engine == "docker":
            words = (f"FROM {built_image(engine)}", "USER root", f"RUN {INSTALL}", "USER 1000")
            (tmp_path / "Dockerfile").write_text("\n".join(words))
            run("docker", "build", "--network", "host", "--tag", TAG, tmp_path)
            return ["--engine", engine, "--image", TAG]
        sif, definition = open_folder / "runs/compile.sif", open_folder / "runs/compile.def"
        definition.write_text(f"Bootstrap: localimage\nFrom: {image_of(engine)}\n\n%post\n    {INSTALL}\n")
        temporary = str(open_folder / "tmp")
        run("apptainer", "build", "--mksquashfs-args", UNCOMPRESSED, sif, definition, APPTAINER_TMPDIR=temporary)
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
    (open_folder / "runs/request.json").write_text(WorkerRequest(SHORT).line())
    started = ("exec", "baseline", *options(engine), "--no-check", "--", *WORKER)
    result = cli(*started, cwd=open_folder / "runs", **surroundings)
    assert result.returncode == 0, result
    document = json.loads(result.stdout)
    assert document["modes"]["compile"] is True
    assert max(document["step_s"]) < max(document["warmup_step_s"])  # which is where compiling takes its time
