"""The worker that runs somebody's own command, and what it makes of that."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from envkit.engines.base import WORKER
from envkit.messages import from_json
from envkit.worker import child, command_line
from envkit.worker import messages as _of_workers  # noqa: F401  from_json knows those that were imported
from envkit.worker.request import WorkerRequest

from tests import worker_runs
from tests.conftest import PROJECT


def started(folder, argv, worker=(str(WORKER),), **more):
    """Start a worker. ``more`` are variables, in capitals, or fields of what it is asked to do."""
    variables = {name: value for name, value in more.items() if name.isupper()}
    how = {name: value for name, value in more.items() if name not in variables}
    process = subprocess.Popen(
        [sys.executable, *worker, "-"], cwd=PROJECT, env={**os.environ, **variables}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
    )  # fmt: skip
    process.stdin.write(WorkerRequest(worker_runs.command(folder, argv, **how)).line())
    process.stdin.flush()
    return process


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run a shell script as the command: the worker's document, exit status and stderr.

    The worker is this process, which takes a tenth of the time. It leaves alone what other tests have started.
    """
    earlier, children = set(child._children()), child._children
    monkeypatch.setattr(child, "_children", lambda: [pid for pid in children() if pid not in earlier])

    def worker(script, argv=None, folder=tmp_path, **more):
        variables = {name: value for name, value in more.items() if name.isupper()}
        how = {name: value for name, value in more.items() if name not in variables}
        work = worker_runs.command(folder, argv or ["sh", "-c", script], **how)
        request, stdout = tmp_path.with_name("request.json"), os.dup(1)
        request.write_text(WorkerRequest(work).line())
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["worker", str(request)])
            try:
                status = command_line.main()
            finally:
                os.dup2(stdout, 1)
                os.close(stdout)
        printed = capfd.readouterr()
        return SimpleNamespace(status=status, document=json.loads(printed.out), stderr=printed.err)

    yield worker
    ctypes.CDLL(None).prctl(child.PR_SET_CHILD_SUBREAPER, 0)


@pytest.fixture
def answered(tmp_path):
    """Run a command that waits at each of its steps until the worker has passed its line on: the document.

    A worker that gets no CPU for a while would otherwise find several lines at once. ``seen-3`` is there from then on.
    """

    def worker(argv, **how):
        process = started(tmp_path, argv, **how)
        for line in process.stderr:
            if line.startswith("step "):
                (tmp_path / f"seen-{line.split()[1]}").touch()
        return json.loads(process.communicate()[0])

    return worker


@pytest.fixture
def refused(run):
    """Run a worker that has no sample; its document has the problem, and nothing else."""

    def worker(*arguments, **options):
        result = run(*arguments, **options)
        assert result.status == 1
        assert result.document.keys() == {"problem"}
        return from_json(result.document["problem"])

    return worker
