"""A training that the evidence hook can't get into, as the commands say it: with real workers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from envkit.messages import from_json
from envkit.worker.messages.hook import PathReplaced

from tests.cli.commands.conftest import words
from tests.conftest import command_line
from tests.processes import BRIEF_ENVKIT
from tests.worker import unhooked

REASON = "PYTHONPATH=. replaces the hook's folder; write PYTHONPATH=.:$PYTHONPATH where 'sh run.sh"


@pytest.fixture
def run(tmp_path):
    """Run a command on a shell script that replaces PYTHONPATH and trains for so many ``seconds``.

    It computes for ``busy`` of these, which are all of them by default.
    """

    def envkit(*arguments, seconds, busy=None):
        unhooked.write(tmp_path)
        words = f"{seconds} {seconds if busy is None else busy}"
        (tmp_path / "run.sh").write_text(f"PYTHONPATH=. exec {sys.executable} train.py {words}\n")
        return subprocess.run(
            command_line(*arguments, program=("-c", BRIEF_ENVKIT)), cwd=tmp_path, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    return envkit


def test_advice(run):
    result = run("advise", "--", "sh", "run.sh", seconds=3000)
    assert result.returncode == 2
    assert "the worker can't see the optimizer's steps: process " in words(result.stderr)
    assert REASON in words(result.stderr)


def test_steps_of_the_optimizer(run):
    how = ("--optimizer-steps", 12, "--timeout", "250s", "--blocks", 2, "--force")
    result = run("bench", "glibc-retain", *how, "--", "sh", "run.sh", seconds=3000)
    assert result.returncode == 1
    assert REASON in words(result.stdout)


@pytest.mark.parametrize("more", [("--whole-command",), ("--metric", r"end (\S+) s")])
def test_a_run_that_is_timed_otherwise(run, more):
    """The profile's settings can't be verified, and the report says why."""
    result = run("bench", "glibc-retain", *more, "--blocks", 1, "--force", "--", "sh", "run.sh", seconds=2, busy=0)
    said = words(result.stdout)
    assert "Settings " in said
    assert REASON in said


def test_exec(run, tmp_path):
    result = run("exec", "--evidence", "seen.json", "glibc-retain", "--", "sh", "run.sh", seconds=5)
    assert result.returncode == 0
    assert f"runs without envkit's hook: {REASON}" in result.stderr
    (seen,) = json.loads((tmp_path / "seen.json").read_text())["seen_from_outside"]
    assert isinstance(from_json(seen["lost"]).reason, PathReplaced)
