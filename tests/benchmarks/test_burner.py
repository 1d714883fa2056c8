"""The burner does as much work as it is told to, and answers as a worker does."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from hashlib import sha256
from types import SimpleNamespace

import pytest
from envkit.worker.request import Train, WorkerRequest

from benchmarks import burner, tools


def cpu_s(work: str) -> float:
    """CPU time (seconds) of one run of the command."""
    environment = {**os.environ, "WORK": work}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(tools.python(), env=environment, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def test_more_work_takes_longer():
    # the start of Python takes as long as half of work 1; what others do can make one longer
    assert cpu_s("4.0") > 3 * min(cpu_s("0.1") for _ in range(3))


@pytest.mark.parametrize(("variables", "work"), [({}, 1), ({"WORK": "1"}, 1), ({"WORK": "0.1"}, 0.1)])
def test_work_is_one_where_nothing_is_said(monkeypatch, variables, work):
    """Counted, not timed: what others do makes a tenth of a second longer."""
    monkeypatch.delenv("WORK", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["burner.py"])
    done = []
    monkeypatch.setattr(burner, "hashlib", SimpleNamespace(blake2b=lambda block: done.append(len(block)) or sha256()))
    assert burner.main() == 0
    assert done == [len(burner.BLOCK)] * round(burner.STEPS * burner.UNITS * work)


def test_as_a_worker_it_times_the_steps_that_it_is_asked_for():
    # a quarter of a second: the kernel counts CPU time in ticks of some milliseconds
    command, environment = [*tools.python(), "/kit/envkit/worker/__main__.py", "-"], {**os.environ, "WORK": "1"}
    request = WorkerRequest(Train("cnn", "synthetic", steps=20)).line().encode()
    printed = subprocess.run(command, env=environment, input=request, capture_output=True, check=True).stdout
    sample = json.loads(printed)
    assert len(sample["step_s"]) == 20
    assert 0 < sample["usage"]["user_s"] + sample["usage"]["system_s"] <= sample["seconds"] * 1.5
