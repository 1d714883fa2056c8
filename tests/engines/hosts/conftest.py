"""The two hosts that .ci/engines/sshd makes, each with a network of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from envkit.engines.base import PROJECT

from tests.simulation import times

SCRIPT = PROJECT / ".ci/engines/sshd"
STATE = Path("/var/lib/kit-sshd")
SSH = "/usr/bin/ssh"


@pytest.fixture(autouse=True)
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_engines: None) -> Callable[[str], None]:
    """Have ssh know these hosts, by its own settings; returns what adds some text of ssh's settings in front."""
    if not (STATE / "config").exists() or os.geteuid() != 0:
        pytest.skip("the hosts of .ci/engines/sshd are not here, or this is not root, who may log in there")
    reached = subprocess.run(
        [SSH, "-F", STATE / "config", "-o", "BatchMode=yes", "host1", "true"], capture_output=True, text=True,
        timeout=240, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if reached.returncode:
        pytest.skip(f"the sshd of .ci/engines/sshd does not answer: {reached.stderr.strip()}")
    own, folder = tmp_path / "ssh_config", tmp_path / "bin"
    own.write_text((STATE / "config").read_text())
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {SSH} -F {own} "$@"\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return lambda text: own.write_text(text + own.read_text()) and None


@pytest.fixture
def unplug() -> Iterator[Callable[[str], None]]:
    """Cut a host off from the others without a word; it is back after the test."""
    unplugged = []

    def cut_off(host: str) -> None:
        unplugged.append(host)
        subprocess.run([SCRIPT, "unplug", host], check=True)

    yield cut_off
    for host in unplugged:
        subprocess.run([SCRIPT, "plug", host], check=True)


@pytest.fixture
def submit(simulation, write_profile, run_folder):
    """The arguments that measure a profile on hosts by simulated workers."""
    path = write_profile("mine", "env:\n  SIMULATED: mine\n")
    simulation.worker("mine", seconds=times(0.5))

    def arguments(hosts: str, *options: object) -> list[object]:
        short = ("--steps", 3, "--blocks", 6, "--data", "synthetic", "--seed", 7, "--python", simulation.python)
        return ["submit", path, "--hosts", hosts, *short, "--output", run_folder, *options]

    return arguments
