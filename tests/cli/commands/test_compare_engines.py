from __future__ import annotations

import re

import pytest

from runner import engines
from tests.instant_images import InstantImages


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "compare-engines needs a PROFILE, for example baseline"),
        (["baseline", "--engines", "local"], "--engines local: name two or more, for example local,docker,apptainer"),
        (["baseline", "--engines", "local,local"], "--engines local,local: name two or more"),
        (["baseline", "--engines", "local,dokcer"], "no engine 'dokcer'; there are: local, docker, "),
        (["nothing", "--engines", "local,docker"], "no profile 'nothing' in "),
    ],
)
def test_bad_input(refused, tmp_path, arguments, words):
    message = refused("compare-engines", *arguments, "--output", tmp_path / "run")
    assert message.startswith(f"envkit: {words}")
    assert not (tmp_path / "run").exists()


def test_an_engine_that_is_not_there(refused, tmp_path):
    message = refused("compare-engines", "baseline", "--engines", "local,docker", "--output", tmp_path / "run")
    assert re.match(r"envkit: (the Docker daemon is not running \(|Docker is not installed)", message)
    assert not (tmp_path / "run").exists()


def test_limits_that_one_of_them_has_not(refused, monkeypatch, tmp_path):
    images = InstantImages(tmp_path / "docker", "docker")
    images.add("mine")
    monkeypatch.setitem(engines.ENGINES, "docker", images)
    options = ("--engines", "local,docker", "--image", "mine", "--cpus", "1", "--data", "synthetic")
    assert refused("compare-engines", "baseline", *options, "--output", tmp_path / "run") == (
        "envkit: --cpus: the engine local has no limits, and would be held against them; leave it out, or compare "
        "other engines"
    )


def test_engines_may_have_other_torches(cli, monkeypatch, tmp_path, run_folder):
    for name, torch in (("docker", "2.13.0"), ("podman", "2.14.0")):
        images = InstantImages(tmp_path / name, name)
        images.add("mine").worker("baseline", evidence={"torch": {"version": torch}})
        monkeypatch.setitem(engines.ENGINES, name, images)
    given = ("--engines", "docker,podman", "--image", "mine", "--data", "synthetic", "--steps", 3, "--blocks", 6)
    result = cli("compare-engines", "baseline", *given, "--output", run_folder)
    assert result.returncode == 0, result
    assert "its torch is" not in result.stdout
