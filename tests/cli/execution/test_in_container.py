"""What the engines' own commands are told of the terminal, and of the caller's variables."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest
from envkit.cli import engine_options
from envkit.cli.execution import in_container, resolving
from envkit.cli.execution.in_container import _attached
from envkit.cli.execution.resolving import ResolvedProfile
from envkit.engines import apptainer
from envkit.engines.base import EngineOptions, Launch
from envkit.engines.enroot import EnrootEngine
from envkit.profiles import profile
from envkit.profiles.environment import Environment


@pytest.mark.parametrize(
    ("terminals", "foreground", "options"),
    [
        ("stdin stdout stderr", True, ["--init", "--interactive", "--tty"]),
        # one stream would be both
        ("stdin stdout", True, ["--init", "--interactive"]),
        ("stdin stderr", True, ["--init", "--interactive"]),
        # a terminal that is another's: reading it would stop the command
        ("stdin stdout stderr", False, ["--init"]),
        ("stdout stderr", False, ["--init", "--interactive"]),
        ("", True, ["--init", "--interactive"]),
    ],
)
def test_what_is_joined_to_the_terminal(monkeypatch, terminals, foreground, options):
    for name in ("stdin", "stdout", "stderr"):
        is_one = name in terminals.split()
        stream = SimpleNamespace(isatty=lambda is_one=is_one: is_one, fileno=lambda: 0, write=len, flush=lambda: None)
        monkeypatch.setattr(sys, name, stream)
    monkeypatch.setattr(os, "tcgetpgrp", lambda descriptor: os.getpgrp() + (not foreground))
    for engine in ("docker", "podman"):
        assert _attached(engine) == options
    assert [_attached(engine) for engine in ("apptainer", "enroot")] == [[], []]


def test_a_terminal_of_another_session_can_be_read(monkeypatch):
    def refuse(descriptor):
        raise OSError(25, "Inappropriate ioctl for device")

    stream = SimpleNamespace(isatty=lambda: True, fileno=lambda: 0)
    monkeypatch.setattr(sys, "stdin", stream)
    monkeypatch.setattr(os, "tcgetpgrp", refuse)
    assert "--interactive" in _attached("docker")


def test_apptainer_finds_among_its_variables_what_it_passes_on():
    launch = Launch(variables={"GREETING": "hello"}, passed_on={"TOKEN": "$x", "GREETING": "no", "PATH": "/bin"})
    kept = {"LANG": "C", "TOKEN": "$x", "APPTAINER_TMPDIR": "/scratch", "SINGULARITY_CACHEDIR": "/scratch"}
    options = {"APPTAINERENV_OTHER": "1", "APPTAINER_BIND": "/", "APPTAINER_NV": "1", "SINGULARITY_MOUNT": "type=bind"}
    given = {"APPTAINERENV_TOKEN": "$x", "APPTAINER_NO_EVAL": "true"}
    assert apptainer.callers(launch, {**kept, **options}) == {**kept, **given}
    assert apptainer.callers(Launch(), {**kept, **options}) == kept


@pytest.fixture
def under_enroot(monkeypatch, tmp_path):
    """How a command is started under Enroot, which is not asked, and a profile that is known already."""
    for name in ("enroot", "env"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    engine = EnrootEngine.__new__(EnrootEngine)
    engine.given, engine._sqsh, engine._described = EngineOptions(), tmp_path / "x.sqsh", {"image": "x"}
    monkeypatch.setattr(engine_options, "engine", lambda arguments: (engine, {}))
    environment = Environment("mine", "", {"LD_PRELOAD": "/x.so"}, {}, ("numactl", "-l"), {}, "same")
    known = ResolvedProfile(profile.load("baseline"), engine, {}, environment)
    monkeypatch.setattr(resolving, "resolve_inside", lambda *asked: known)
    asked = SimpleNamespace(
        profile="mine", allow_unknown=False, gpus=False, cpus=None, cpuset_cpus=None, memory=None, engine="enroot"
    )
    return lambda command, passed_on, evidence: in_container.prepare(asked, command, passed_on, evidence)[1]


def test_a_command_under_enroot(under_enroot, monkeypatch, tmp_path):
    monkeypatch.setenv("ENROOT_MOUNT_HOME", "yes")
    monkeypatch.setenv("TOKEN", "secret")
    start = under_enroot(["python", "x.py"], {"TOKEN": "secret"}, "/dev/shm/seen")
    assert start.executable == f"{tmp_path}/env"
    words = " ".join(start.argv)
    assert words.startswith("env ENROOT_CONFIG_PATH=/dev/null ")
    assert (
        " enroot start --mount /dev/shm/seen:/evidence:none:x-create=dir,rbind,rw,nosuid,nodev --env NVIDIA_" in words
    )
    assert f" --mount {tmp_path}:{tmp_path}:none:x-create=dir,rbind,rw,nosuid,nodev " in words
    assert words.endswith(" numactl -l python x.py")
    inside = start.argv[start.argv.index(f"{tmp_path}/x.sqsh") + 1 :]
    assert inside[:2] == [str(tmp_path), "env"]
    assert {"LD_PRELOAD=/x.so", "ENVKIT_EVIDENCE=/evidence", "HOME=/tmp"} < {*inside}
    assert "secret" not in words
    assert start.variables["TOKEN"] == "secret"
    assert "ENROOT_MOUNT_HOME" not in start.variables
