"""Each fault of the list is planted and must be caught; without a fault nothing may be found.

What a plain launch says of it is for the page (`make faults`), and nothing here depends on it.
"""

from __future__ import annotations

import os
import subprocess

import pytest
from envkit.engines.base import PROJECT

from tests.faults.__main__ import clean_findings
from tests.faults.list import FAULTS
from tests.faults.trial import IMAGES, CantPlant, docker_answers, image, try_out

DOCKER_HOST = os.environ.get("DOCKER_HOST")
BUILD_TIMEOUT_S = 900


@pytest.fixture(autouse=True)
def real_docker(own_surroundings, monkeypatch):
    """The user's Docker daemon, which all other tests leave alone."""
    monkeypatch.delenv("DOCKER_HOST")
    if DOCKER_HOST is not None:
        monkeypatch.setenv("DOCKER_HOST", DOCKER_HOST)


@pytest.fixture(autouse=True)
def cores_measured_once(own_surroundings, tmp_path_factory, monkeypatch):
    """Share what doctor measures in two seconds, which CPUs share a core, with all of its runs here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache-of-faults"))


@pytest.fixture
def built_image(real_docker):
    """The image, built if Docker is there and the image is not."""
    try:
        docker_answers()
    except CantPlant as reason:
        pytest.skip(str(reason))
    try:
        image()
    except CantPlant:
        build = ["images/build", "oci", "--engine", "docker", "--variant", "debian", "--tag", IMAGES[0], "--update"]
        subprocess.run(build, cwd=PROJECT, check=True, timeout=BUILD_TIMEOUT_S)


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in FAULTS])
def test_a_planted_fault_is_caught(fault, request):
    if fault.engine == "docker":
        request.getfixturevalue("built_image")
    try:
        finding = try_out(fault, plainly=False)
    except CantPlant as reason:
        pytest.skip(str(reason))
    assert finding.caught, finding.kit


def test_nothing_is_found_where_nothing_is_wrong():
    assert clean_findings() == []


def test_the_names_are_different():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
