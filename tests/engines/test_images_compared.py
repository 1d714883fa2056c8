"""Two real images under one profile."""

from __future__ import annotations

import json
import subprocess

import pytest
from envkit.bench import record

OTHER = "envkit-test-compared"
# Another library that works just as well, another version of its package, and a package of the system less.
CHANGES = """
FROM {image}
USER root
RUN printf x >>/opt/kit/lib/libiomp5.so \\
 && sed -i 's/^Version: .*/Version: 1.0/' /opt/kit/lib/python3.11/site-packages/intel_openmp-*.dist-info/METADATA \\
 && dpkg --force-depends --purge libmimalloc2.0
USER kit
"""


@pytest.fixture
def other(image_of):
    """An image that differs from the tests' own in little, made in seconds."""
    script = CHANGES.format(image=image_of("docker"))
    build = ["docker", "build", "--quiet", "--tag", OTHER, "-"]
    subprocess.run(build, input=script, text=True, check=True, capture_output=True)
    yield OTHER
    subprocess.run(["docker", "rmi", "--force", OTHER], capture_output=True, check=True)


def test_two_images_are_measured_and_what_differs_is_found(cli, other, image_of, project, surroundings, tmp_path):
    folder = tmp_path / "run"
    short = ("--steps", "2", "--warmup-steps", "1", "--blocks", "1", "--json", "--output", folder)
    images = ("--image", other, "--against-image", image_of("docker"))
    result = cli("bench", "intel-omp", "--engine", "docker", *images, *short, cwd=project, **surroundings)
    assert result.returncode == 0, result
    events = record.read(folder)
    samples = {event["arm"]: event for event in events if event["event"] == "sample"}
    assert samples.keys() == {image_of("docker"), other}
    assert all(sample["evidence"]["openmp"]["runtime"] == "intel" for sample in samples.values())
    (found,) = json.loads(result.stdout)["image_differences"].values()
    differences = {one["what"]: (one["reference"], one["image"]) for one in found}
    assert differences["image"] == (image_of("docker"), other)
    assert differences["package intel-openmp"][1] == "1.0"
    then, now = differences["library intel-openmp"]
    assert then != now
    assert differences["system package libmimalloc2.0"][1] is None
    # nothing else: the rest is one and the same
    unchanged = {"package torch", "package numpy", "library jemalloc", "torch's build: git_version", "initial weights"}
    assert not unchanged & differences.keys()
