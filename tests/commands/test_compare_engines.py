from __future__ import annotations

import re

import pytest


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
    assert message.startswith(f"runner: {words}")
    assert not (tmp_path / "run").exists()


def test_an_engine_that_is_not_there(refused, tmp_path):
    message = refused("compare-engines", "baseline", "--engines", "local,docker", "--output", tmp_path / "run")
    assert re.match(r"runner: (the Docker daemon is not running \(|Docker is not installed)", message)
    assert not (tmp_path / "run").exists()
