"""conda-forge's allocators reach the images that builders make, and what is recorded of these says so.

The channel is made by hand and served on loopback. What is tested has nothing to do with PyTorch, whose wheel takes
most of a build: a small one stands for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from envkit.analysis.image_differences import of_run
from envkit.bench.arms import Arm
from envkit.engines.base import PROJECT
from envkit.worker.request import Inspect, WorkerRequest

from tests.engines.conftest import QUICK, BuiltImage, Requires, missing, run
from tests.images.conda_channel import make_channel, served
from tests.images.made_wheel import make_wheel
from tests.plans import study_of

TAG = f"envkit-cpu:test-conda-{os.getpid()}"
LOCK = "images/cpu/requirements.lock"
# What the image's libraries come from, and what that needs.
PACKAGES = ("cmeel", "intel-cmplr-lib-ur", "intel-openmp", "tcmlib", "umf")
TORCH = re.findall(r"^torch==(\S+)", (PROJECT / "images/cpu/torch.lock").read_text(), re.MULTILINE)[0]
# As much of it as the tests of an Apptainer image ask for.
TORCH_CODE = f"""\
__version__ = {TORCH!r}
class ones:
    def __init__(self, size): pass
    def __matmul__(self, other): return self
"""


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """The real wheels of PACKAGES, and a small one for torch's."""
    run("images/wheelhouse", "--variant", "debian")
    folder, complete = tmp_path / "wheelhouse", PROJECT / "build/wheelhouse"
    folder.mkdir()
    # not all that is there: other variants may have left wheels
    manifest = run(f"{sys.prefix}/bin/python", "images/wheels.py", "manifest", complete, LOCK).stdout
    for name in (line.split()[1] for line in manifest.splitlines()):
        if name.replace("_", "-").startswith(PACKAGES):
            (folder / name).symlink_to(complete / name)
    make_wheel(folder, "torch", TORCH, TORCH_CODE)
    return folder


@pytest.fixture
def tree(tree: Path, wheelhouse: Path) -> Path:
    """With locks of what is in ``wheelhouse``."""
    locks = tree / "images/cpu"
    (torch,) = wheelhouse.glob("torch-*.whl")
    digest = hashlib.sha256(torch.read_bytes()).hexdigest()
    (locks / "torch.lock").write_text(f"torch=={TORCH} --hash=sha256:{digest}\n")
    packages = (locks / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
    (locks / "requirements.lock").write_text("".join(f"{line}\n" for line in packages if line.startswith(PACKAGES)))
    return tree


@pytest.fixture
def channel(tree: Path, tmp_path: Path) -> Iterator[str]:
    """A channel that ``tree`` has locked the packages of."""
    pytest.importorskip("rattler", reason="py-rattler is missing: make dev")
    with served(make_channel(tmp_path / "conda-forge")) as url:
        path = f"{sys.prefix}/bin:{os.environ['PATH']}"
        run("images/conda_libraries.py", "lock", "--channel", url, cwd=tree, PATH=path)
        yield url


@pytest.fixture
def builder(requires: Requires) -> str:
    """Podman, if it is here: Docker builds the variant debian for other tests, and hands that over to Podman."""
    engine = "docker" if missing("podman") else "podman"
    requires(engine)
    return engine


@pytest.fixture
def oci_image(builder: str, tree: Path, channel: str) -> Iterator[str]:
    options = ("--engine", builder, "--variant", "conda", "--tag", TAG)
    run("images/build", "oci", *options, cwd=tree, ENVKIT_CONDA_CHANNEL=channel)
    yield TAG
    run(builder, "image", "rm", TAG, check=False)


@pytest.fixture
def sif(requires: Requires, tree: Path, channel: str) -> Iterator[Path]:
    requires("apptainer")
    folder = PROJECT / f"build/test-conda-{os.getpid()}"  # where Apptainer may read, whoever it works as
    where = {"ENVKIT_CONDA_CHANNEL": channel, "KIT_BUILD_DIR": str(folder), **QUICK}
    try:
        folder.mkdir(parents=True)
        (folder / "wheelhouse").symlink_to(tree / "build/wheelhouse")
        built = folder / "conda.sif"
        run("images/build", "sif", "--variant", "conda", "--output", built, cwd=tree, **where)
        yield built
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def locked(tree: Path) -> list[str]:
    """Digest and name of each file that the image is made of, as locked or as it is, by name."""
    packages = json.loads((tree / "images/cpu/conda.lock").read_text())["packages"]
    files = {one["url"].rpartition("/")[2]: one["sha256"] for one in packages}
    for wheel in (tree / "build/wheelhouse").iterdir():
        files[wheel.name] = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return [f"{files[name]}  {name}" for name in sorted(files)]


def inspected(builder: str, image: str) -> dict[str, Any]:
    """What a record has of an image."""
    bind = f"{PROJECT}/runner/envkit:/kit/envkit:ro"
    options = ("--rm", "--interactive", "--network", "none", "--user", "0", "--volume", bind)
    worker = ("python", "/kit/envkit/worker/__main__.py", "-")
    shown = run(builder, "run", *options, image, *worker, stdin=WorkerRequest(Inspect(contents=True)).line())
    return {"engine": {"name": builder, "version": "1", "image": image}, "inspection": json.loads(shown.stdout)}


def test_conda_libraries_reach_an_image(oci_image: str, builder: str, tree: Path, built_image: BuiltImage) -> None:
    def inside(*command: str) -> str:
        return run(builder, "run", "--rm", "--network", "none", oci_image, *command).stdout

    providers = json.loads(inside("cat", "/opt/kit/providers.json"))["libraries"]
    assert providers["jemalloc"] == "conda-forge jemalloc 5.3.0 h0_0"
    assert providers["tcmalloc"] == "conda-forge gperftools 5.3.0 h0_0"
    assert inside("/opt/kit/conda/bin/jemalloc-config") == "/opt/kit/conda/lib\n"
    label = '{{index .Config.Labels "envkit.libraries"}}'
    assert run(builder, "image", "inspect", "--format", label, oci_image).stdout == "conda\n"
    assert run("images/manifest", builder, oci_image).stdout.splitlines() == locked(tree)
    seen = [inspected(builder, built_image(builder)), inspected(builder, oci_image)]
    arms = [Arm(name, "baseline", builder, image=name) for name in ("debian", "conda")]
    engines = {arm.target: one for arm, one in zip(arms, seen, strict=True)}
    beginning = SimpleNamespace(surroundings=engines.__getitem__)
    measured: Any = SimpleNamespace(study=study_of(arms), beginning=beginning, samples=lambda *of: [])
    differences = {one.what: one for one in of_run(measured)["conda"]}
    library = differences["library jemalloc"]
    assert str(library.reference).startswith("Debian libjemalloc2 5")
    assert str(library.image).startswith("conda-forge jemalloc 5.3.0 h0_0 (")
    assert differences["conda package jemalloc"].reference is None
    assert differences["system package libjemalloc2"].image is None


def test_conda_libraries_reach_a_sif(sif: Path, tree: Path) -> None:
    manifest = run("images/manifest", "apptainer", sif).stdout.splitlines()
    assert manifest == locked(tree)
    assert "jemalloc-5.3.0-h0_0.tar.bz2" in {line.split()[1] for line in manifest}
