"""Which Docker daemon is asked, and what is said of one that can't be used."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from envkit.engines import docker as docker_engine
from envkit.engines.setup_messages import NoPermission

from tests.refusals import refusal


def test_no_daemon(refused):
    if shutil.which("docker") is None:
        line = "Docker is not installed: apt-get install docker.io"
    else:
        line = "the Docker daemon is not running (/nowhere/docker.sock: No such file or directory)"
    assert line in refused("bench", "baseline", "--engine", "docker", DOCKER_HOST="unix:///nowhere/docker.sock")


@pytest.mark.parametrize(
    ("host", "chosen", "line"),
    [
        ("unix:///nowhere/own.sock", "mine", "the Docker daemon is not running (/nowhere/own.sock: No such file"),
        (
            "ssh://far.away",
            "mine",
            "Docker's context 'mine' (ssh://far.away) is not on this machine, whose folders it can't mount; see",
        ),
        ("unix:///nowhere/own.sock", "other", "Docker's context 'other' can't be used ("),
    ],
)
@pytest.mark.parametrize("by_variable", [True, False])
def test_the_daemon_of_a_context(refused, requires, monkeypatch, tmp_path, host, chosen, line, by_variable):
    """Which is how one without root is chosen."""
    requires("docker")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    subprocess.run(["docker", "context", "create", "mine", "--docker", f"host={host}"], capture_output=True, check=True)
    if by_variable:
        monkeypatch.setenv("DOCKER_CONTEXT", chosen)
    else:
        (tmp_path / "config.json").write_text(json.dumps({"currentContext": chosen}))
    assert line in refused("bench", "baseline", "--engine", "docker")


def test_a_daemon_that_does_not_answer(refused):
    line = refused("bench", "baseline", "--engine", "docker", DOCKER_HOST="tcp://127.0.0.1:1")
    assert line.startswith("envkit: the Docker daemon at tcp://127.0.0.1:1 does not answer")


@pytest.mark.parametrize("address", ["tcp://docker:2375", "ssh://me@far.away", "far.away:2375"])
def test_a_daemon_of_another_machine(refused, address):
    line = refused("bench", "baseline", "--engine", "docker", DOCKER_HOST=address)
    assert line == f"envkit: DOCKER_HOST={address} is not on this machine, whose folders it can't mount; unset it"


def test_no_permission_for_the_daemon(monkeypatch):
    def refuse(self, address):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(docker_engine.socket.socket, "connect", refuse)
    assert isinstance(refusal(docker_engine.DockerEngine, docker_engine.EngineOptions()), NoPermission)
