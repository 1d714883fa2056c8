"""``images/build sif --from``: a SIF that is made out of an image of Docker's, and runs."""

from __future__ import annotations

from pathlib import Path

from tests.engines.conftest import Requires, run

# Small, as what is asked is how its files come over, and not which.
BASE = "debian:bookworm-slim"
FAST = "-comp zstd -Xcompression-level 1"


def test_an_image_of_docker_becomes_a_sif(requires: Requires, open_folder: Path, tmp_path: Path) -> None:
    requires("docker")
    requires("apptainer")
    tag = "envkit-test-sif-of-image"
    (tmp_path / "Dockerfile").write_text(f"FROM {BASE}\nENV OF_IMAGE=yes\nRUN echo kept > /of-image\n")
    run("docker", "build", "--tag", tag, tmp_path)
    sif = open_folder / "of-image.sif"
    try:
        run("images/build", "sif", "--from", tag, "--output", sif, KIT_SIF_COMPRESSION=FAST)
        image = run("docker", "image", "inspect", "--format", "{{.Id}}", tag).stdout.strip()
    finally:
        run("docker", "image", "rm", tag, check=False)
    said = run("apptainer", "--silent", "exec", "--cleanenv", sif, "sh", "-c", "cat /of-image; echo $OF_IMAGE").stdout
    assert said.split() == ["kept", "yes"]
    assert f"envkit.image: {image}" in run("apptainer", "inspect", sif).stdout
