"""The Podman engine where Podman itself is old, or does not answer. Containers: tests/engines."""

from __future__ import annotations

import subprocess

import pytest
from envkit.engines import owner, podman


@pytest.fixture
def asked(monkeypatch):
    """A Podman that lists one container of a runner that is gone: what it is asked besides."""
    commands: list[list[str]] = []

    def run(command, **_):
        commands.append(command[1:])
        listed = "0123abcd some-owner\n" if command[1] == "ps" else ""
        return subprocess.CompletedProcess(command, 0, listed, "")

    monkeypatch.setattr(podman.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(podman.subprocess, "run", run)
    monkeypatch.setattr(owner, "is_gone", lambda label: label == "some-owner")
    return commands


def test_what_remains_is_ended_and_removed_by_what_every_version_knows(asked):
    podman.remove_leftovers()
    assert asked[1:] == [["kill", "0123abcd"], ["rm", "--force", "--ignore", "--volumes", "0123abcd"]]


def test_one_that_hangs_keeps_nobody_from_measuring(asked, monkeypatch):
    def hang(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(podman.subprocess, "run", hang)
    podman.remove_leftovers()
