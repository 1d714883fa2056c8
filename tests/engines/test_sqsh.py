"""Make an image for Enroot out of one that Docker has, for real, and look inside. Enroot itself is not started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.conftest import QUICK, Requires, missing, run

# What Enroot reads of an image, and what engines put into a container.
ENROOTS = {"etc/rc", "etc/environment", "etc/fstab"}
NOT_THE_IMAGES = (".dockerenv", "dev/")
# Small, as what is asked is how its files come over, and not which: links of both kinds, owners, and closed files.
TAG = "envkit-test-sqsh"
DOCKERFILE = """\
FROM debian:bookworm-slim
ENV PATH=/opt/kit/bin:/usr/bin:/bin
COPY manifest.sha256 /opt/kit/
RUN mkdir /kit /opt/closed && echo x >/opt/closed/file && ln /opt/closed/file /opt/hard && ln -s hard /opt/soft \
 && chown -R 1000 /opt/closed && chmod 0 /opt/closed /opt/closed/file
USER 1000
WORKDIR /kit
CMD ["python"]
"""
MANIFEST = f"{'0' * 64}  torch-0-py3-none-any.whl\n"


@pytest.fixture(scope="module", autouse=True)
def removed() -> Iterator[None]:
    yield
    if not missing("docker"):
        run("docker", "image", "rm", TAG, check=False)


@pytest.fixture
def docker_image(requires: Requires, tmp_path: Path) -> str:
    """Made once: after that its layers are there."""
    requires("docker")
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "manifest.sha256").write_text(MANIFEST)
    run("docker", "build", "--network", "none", "--tag", TAG, tmp_path)
    return TAG


@pytest.fixture
def sqsh(requires: Requires, docker_image: str, open_folder: Path) -> Path:
    """Made once: after that it is up to date."""
    requires("mksquashfs")
    file = open_folder / "test.sqsh"
    run("images/build", "sqsh", "--from", docker_image, "--output", file, **QUICK)
    return file


def inside(file: Path, name: str) -> str:
    return run("unsquashfs", "-cat", file, name).stdout


def test_it_is_made_of_the_same_files(docker_image: str, sqsh: Path) -> None:
    manifest = run("images/manifest", "sqsh", sqsh).stdout
    assert manifest == run("images/manifest", "docker", docker_image).stdout == MANIFEST


def test_every_file_of_the_image_is_in_it(docker_image: str, sqsh: Path) -> None:
    container = run("docker", "create", docker_image, "true").stdout.strip()
    try:
        listed = run("sh", "-c", 'docker export "$1" | tar --quoting-style=literal -t', "sh", container).stdout
    finally:
        run("docker", "rm", "--force", container)
    expected = {name.rstrip("/") for name in listed.splitlines() if not name.startswith(NOT_THE_IMAGES)}
    lines = run("unsquashfs", "-l", sqsh).stdout.splitlines()
    found = {line.partition("/")[2] for line in lines if line.startswith("squashfs-root/")}
    assert expected - found == set()
    assert found - expected <= {*ENROOTS, "dev"}


def test_enroot_finds_what_it_reads(docker_image: str, sqsh: Path) -> None:
    variables = run("docker", "run", "--rm", "--network", "none", docker_image, "printenv", "PATH").stdout
    assert inside(sqsh, "etc/environment") == f"PATH={variables}"
    assert inside(sqsh, "etc/fstab") == ""
    script = inside(sqsh, "etc/rc")
    assert "\ncd /kit || exit\n" in script
    assert script.endswith('set -- python\nexec "$@"\n')


def test_whoever_starts_it_can_read_all_of_it(sqsh: Path) -> None:
    """Its owner, root, is then whoever that is."""
    lines = [line.split() for line in run("unsquashfs", "-lln", sqsh).stdout.splitlines() if "squashfs-root/" in line]
    assert {line[1] for line in lines} == {"0/0"}
    assert [line for line in lines if line[0][0] in "-d" and line[0][1] != "r"] == []


def test_a_second_build_does_nothing(docker_image: str, sqsh: Path) -> None:
    before = sqsh.stat()
    result = run("images/build", "sqsh", "--from", docker_image, "--output", sqsh, **QUICK)
    assert "up to date" in result.stdout
    assert sqsh.stat().st_mtime_ns == before.st_mtime_ns
