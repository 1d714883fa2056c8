"""What the engines' own commands are told of the terminal, and of the caller's variables."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from runner.cli.execution.in_container import _attached
from runner.engines import apptainer
from runner.engines.base import Task


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
    assert _attached("apptainer") == []


def test_a_terminal_of_another_session_can_be_read(monkeypatch):
    def refuse(descriptor):
        raise OSError(25, "Inappropriate ioctl for device")

    stream = SimpleNamespace(isatty=lambda: True, fileno=lambda: 0)
    monkeypatch.setattr(sys, "stdin", stream)
    monkeypatch.setattr(os, "tcgetpgrp", refuse)
    assert "--interactive" in _attached("docker")


def test_apptainer_finds_among_its_variables_what_it_passes_on():
    task = Task((), variables={"GREETING": "hello"}, passed_on={"TOKEN": "$x", "GREETING": "no", "PATH": "/bin"})
    kept = {"LANG": "C", "TOKEN": "$x", "APPTAINER_TMPDIR": "/scratch", "SINGULARITY_CACHEDIR": "/scratch"}
    options = {"APPTAINERENV_OTHER": "1", "APPTAINER_BIND": "/", "APPTAINER_NV": "1", "SINGULARITY_MOUNT": "type=bind"}
    given = {"APPTAINERENV_TOKEN": "$x", "APPTAINER_NO_EVAL": "true"}
    assert apptainer.callers(task, {**kept, **options}) == {**kept, **given}
    assert apptainer.callers(Task(()), {**kept, **options}) == kept
