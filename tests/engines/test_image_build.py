"""Build the image for real, under Docker and Apptainer, and look inside.

What other files of tests need is made first.
The wheels come from build/wheelhouse. The base image is debian:bookworm-slim, for Apptainer too, out of Docker.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from envkit.engines.base import PROJECT
from envkit.worker.request import Inspect, WorkerRequest

from tests.engines.conftest import QUICK, BuiltImage, run

LIBRARIES = {"jemalloc", "tcmalloc", "mimalloc", "mimalloc-2", "llvm-openmp", "intel-openmp", "openblas"}


@pytest.fixture(scope="module")
def wheelhouse() -> Path:
    """The project's wheels, which an image that was built before, perhaps from another clone, is up to date without."""
    run("images/wheelhouse", "--variant", "debian")
    return PROJECT / "build/wheelhouse"


@pytest.fixture
def docker_image(built_image: BuiltImage) -> str:
    return built_image("docker")


@pytest.fixture
def sif(built_image: BuiltImage) -> Path:
    return Path(built_image("apptainer"))


def inside(image: str, *command: str) -> str:
    return run("docker", "run", "--rm", "--network", "none", image, *command).stdout


def inside_sif(path: Path, *command: str) -> str:
    return run("apptainer", "--silent", "exec", "--cleanenv", path, *command).stdout


def labels(image: str) -> dict[str, str]:
    labels: dict[str, str] = json.loads(
        run("docker", "image", "inspect", "--format", "{{json .Config.Labels}}", image).stdout
    )
    return labels


def test_an_ordinary_user_finds_everything_in_its_place(docker_image: str) -> None:
    python = "import sys, torch; print(sys.prefix, torch.__version__)"
    script = f"id -un; id -u; python -c '{python}'; find /kit /data; numactl --show"
    user, number, where, *folders = inside(docker_image, "sh", "-c", script).splitlines()
    assert (user, number, where) == ("kit", "1000", "/opt/kit 2.13.0+cpu")
    assert folders[:3] == ["/kit", "/kit/envkit", "/data"]
    assert "nodebind" in " ".join(folders[3:])


def test_nothing_is_left_that_only_the_build_needed(docker_image: str) -> None:
    tools = "for tool in pip pip3 gcc cc g++ make ld git curl; do command -v $tool; done"
    files = "find /staged /tmp /var/lib/apt/lists /var/cache/apt -type f -size +0 2>/dev/null"
    assert inside(docker_image, "sh", "-c", f"{tools}; {files}; true") == ""
    packages = inside(docker_image, "dpkg-query", "--show", "--showformat", "${Package}\n").split()
    assert not {"build-essential", "gcc", "python3-pip", "python3-venv", "python3-pip-whl"} & set(packages)
    installed = inside(docker_image, "python", "-c", "import importlib.util as u; print(u.find_spec('pip'))")
    assert installed.strip() == "None"


def test_the_labels_say_what_the_image_is(docker_image: str) -> None:
    found = labels(docker_image)
    assert found["org.opencontainers.image.title"] == "envkit-cpu"
    assert found["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert (found["envkit.variant"], found["envkit.libraries"]) == ("debian", "debian")
    for name in ("org.opencontainers.image.version", "org.opencontainers.image.revision"):
        assert found[name] not in {"", "unknown"}
    locks = [PROJECT / f"images/cpu/{name}.lock" for name in ("requirements", "torch")]
    digest = subprocess.run(
        ["sha256sum"], input=b"".join(lock.read_bytes() for lock in locks), capture_output=True, check=True
    )
    assert found["envkit.lock-digest"] == digest.stdout.split()[0].decode()


def test_every_library_loads_and_has_a_provider(docker_image: str) -> None:
    loaded = inside(docker_image, "python", "/opt/kit/share/envkit/providers.py", "--load")
    assert {line.split(":")[0] for line in loaded.splitlines()} == LIBRARIES
    providers = json.loads(inside(docker_image, "cat", "/opt/kit/providers.json"))["libraries"]
    assert set(providers) == {*LIBRARIES, "gnu-openmp"}
    assert providers["jemalloc"].startswith("Debian libjemalloc2 ")
    assert providers["intel-openmp"] == "PyPI wheel intel-openmp 2026.2.0"


def test_the_manifest_is_that_of_the_wheelhouse(docker_image: str, wheelhouse: Path) -> None:
    lines = run("images/manifest", "docker", docker_image).stdout.splitlines()
    assert lines == sorted(lines, key=lambda line: line.split()[1])
    for line in lines:
        digest, name = line.split()
        actual = run("sha256sum", wheelhouse / name).stdout.split()[0]
        assert actual == digest


def test_a_second_build_does_nothing(docker_image: str) -> None:
    identity = run("docker", "image", "inspect", "--format", "{{.Id}}", docker_image).stdout
    result = run("images/build", "oci", "--variant", "debian", "--tag", docker_image)
    assert "up to date" in result.stdout
    assert run("docker", "image", "inspect", "--format", "{{.Id}}", docker_image).stdout == identity


def test_a_change_of_the_code_needs_no_new_image(docker_image: str, tree: Path) -> None:
    (tree / "runner/envkit/worker/measure/train.py").write_text("# other code\n")
    result = run("images/build", "oci", "--variant", "debian", "--tag", docker_image, cwd=tree)
    assert "up to date" in result.stdout


def test_a_change_of_a_lock_does(docker_image: str, tree: Path) -> None:
    lock = tree / "images/cpu/requirements.lock"
    # a hash that no wheel has: the build starts, and stops before it calls the builder
    lock.write_text(lock.read_text().replace("mpmath==1.3.0", "mpmath==1.2.0"))
    options = ("--variant", "debian", "--tag", docker_image)
    result = run("images/build", "oci", *options, cwd=tree, check=False, PIP_NO_INDEX="1")  # nor asks for one
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "up to date" not in result.stdout


def test_the_sif_is_made_of_the_same_files(docker_image: str, sif: Path) -> None:
    manifest = run("images/manifest", "apptainer", sif).stdout
    assert manifest == run("images/manifest", "docker", docker_image).stdout
    assert "torch-2.13.0+cpu" in manifest
    packages = ("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev}${Package}\n")
    assert inside_sif(sif, *packages) == inside(docker_image, *packages)
    providers = "/opt/kit/providers.json"
    assert json.loads(inside_sif(sif, "cat", providers)) == json.loads(inside(docker_image, "cat", providers))


def bill(engine: str, image: object) -> list[dict[str, Any]]:
    document = json.loads(run("images/sbom", engine, image).stdout)
    return list(document["components"])


def test_the_bills_of_materials_name_the_files_of_the_manifest_and_debians_packages(
    docker_image: str, sif: Path
) -> None:
    base, *packages = bill("docker", docker_image)
    assert base["name"] == "debian:bookworm-slim"
    assert re.fullmatch("[0-9a-f]{64}", base["hashes"][0]["content"])
    hashes = {one["hashes"][0]["content"] for one in packages if "hashes" in one}
    manifest = run("images/manifest", "docker", docker_image).stdout
    assert hashes == {line.split()[0] for line in manifest.splitlines()}
    listed = inside(docker_image, "dpkg-query", "--show", "--showformat", "${Package} ${Version}\n")
    debian = {f"{one['name']} {one['version']}" for one in packages if one["purl"].startswith("pkg:deb/")}
    assert debian == set(listed.splitlines())
    # the SIF may be of another day, with other versions of Debian's
    python = [one for one in packages if one["purl"].startswith("pkg:pypi/")]
    assert [one for one in bill("apptainer", sif) if one.get("purl", "").startswith("pkg:pypi/")] == python
    (torch,) = (one for one in python if one["name"] == "torch")
    assert "BSD" in json.dumps(torch["licenses"])


def test_every_library_loads_in_the_sif(sif: Path) -> None:
    loaded = inside_sif(sif, "python", "/opt/kit/share/envkit/providers.py", "--load")
    assert {line.split(":")[0] for line in loaded.splitlines()} == LIBRARIES
    assert "envkit.libraries: debian" in run("apptainer", "inspect", sif).stdout


def test_running_the_sif_starts_the_worker(sif: Path) -> None:
    bind = f"{PROJECT}/runner/envkit:/kit/envkit:ro"
    command = ("apptainer", "--silent", "run", "--cleanenv", "--bind", bind, sif, "-")
    result = run(*command, stdin=WorkerRequest(Inspect()).line())
    assert json.loads(result.stdout)["python"]["prefix"] == "/opt/kit"


def test_a_second_build_of_the_sif_does_nothing(sif: Path) -> None:
    before = sif.stat()
    result = run("images/build", "sif", "--variant", "debian", "--output", sif, **QUICK)
    assert "up to date" in result.stdout
    assert sif.stat().st_mtime_ns == before.st_mtime_ns
