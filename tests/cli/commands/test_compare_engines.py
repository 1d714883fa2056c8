"""``envkit compare-engines``: what it refuses, and what may differ between engines."""

from __future__ import annotations

import re


def test_an_engine_that_is_not_there(refused, run_folder):
    line = refused("compare-engines", "baseline", "--engines", "local,docker", "--output", run_folder)
    assert re.match(r"envkit: (the Docker daemon is not running \(|Docker is not installed)", line)
    assert not run_folder.exists()


def test_limits_that_one_of_them_has_not(refused, images_of, run_folder):
    images_of("docker").add("mine")
    options = ("--engines", "local,docker", "--image", "mine", "--cpus", "1", "--data", "synthetic")
    assert refused("compare-engines", "baseline", *options, "--output", run_folder) == (
        "envkit: --cpus: the engine local has no limits, so the comparison would be unfair; leave it out, or compare "
        "other engines"
    )


def test_engines_may_have_other_torches(cli, images_of, run_folder):
    for name, torch in (("docker", "2.13.0"), ("podman", "2.14.0")):
        images_of(name).add("mine").worker("baseline", evidence={"torch": {"version": torch}})
    given = ("--engines", "docker,podman", "--image", "mine", "--data", "synthetic", "--steps", 3, "--blocks", 6)
    result = cli("compare-engines", "baseline", *given, "--output", run_folder).ended(0)
    assert "its torch is" not in result.stdout
