"""``images/build sif --from``: a SIF that is made out of an image of Docker's, and runs."""

from __future__ import annotations

from pathlib import Path

from tests.engines.conftest import QUICK, Requires, run

# Small, as what is asked is how its files come over, and not which.
BASE = "debian:bookworm-slim"
# In the place of the image's Python, which the SIF's test starts, and what it runs.
PYTHON = '#!/bin/sh\necho python "$@"\n'
DOCKERFILE = f"FROM {BASE}\nENV OF_IMAGE=yes\nCOPY --chown=0:0 python /opt/kit/bin/python\nRUN mkdir /kit\n"


def test_an_image_of_docker_becomes_a_sif(requires: Requires, open_folder: Path, tmp_path: Path) -> None:
    requires("docker")
    requires("apptainer")
    tag = "envkit-test-sif-of-image"
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    run("docker", "build", "--tag", tag, tmp_path)
    sif = open_folder / "of-image.sif"
    try:
        run("images/build", "sif", "--from", tag, "--output", sif, **QUICK)
        image = run("docker", "image", "inspect", "--format", "{{.Id}}", tag).stdout.strip()
    finally:
        run("docker", "image", "rm", tag, check=False)
    assert run("apptainer", "--silent", "exec", "--cleanenv", sif, "sh", "-c", "echo $OF_IMAGE").stdout == "yes\n"
    ran = run("apptainer", "--silent", "run", "--cleanenv", sif, "inspect").stdout
    assert ran == "python /kit/envkit/worker/__main__.py inspect\n"
    assert f"envkit.image: {image}" in run("apptainer", "inspect", sif).stdout
