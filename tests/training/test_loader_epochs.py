"""The loader's training with each start method, and with workers that stay: real workers, as engines start them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.bench.parse_sample import other_loader
from envkit.engines import owner
from envkit.engines.base import WORKER
from envkit.worker.request import Train, WorkerRequest
from envkit.worker.workloads.loader_epochs import started_by

from tests import worker_runs
from tests.conftest import PROJECT
from tests.processes import gone, until

# Batches so large that an epoch has two: the steps are the first of an epoch, the other, and the first of the next.
WARMUP_STEPS, STEPS = 1, 2
SETTINGS = ("fork", "fork-persistent", "spawn", "forkserver", "forkserver-persistent")


@pytest.fixture(scope="module")
def sample():
    found = {}

    def of(settings):
        if settings not in found:
            work = Train(f"loader-w1-b80-p2-{settings}", "generated", warmup_steps=WARMUP_STEPS, steps=STEPS)
            found[settings] = worker_runs.of(work)
        return found[settings]

    return of


@pytest.mark.parametrize("settings", SETTINGS)
def test_workers_are_started_and_kept_as_the_name_says(sample, settings):
    result = sample(settings)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    start, _, persistent = settings.partition("-")
    assert document["loader"] == {
        "start": start, "persistent": bool(persistent), "epochs": 2, "steps_per_epoch": 2,
    }  # fmt: skip
    assert other_loader(document, f"loader-w1-b80-p2-{settings}") is None
    others = [other for other in SETTINGS if other != settings]
    assert all(other_loader(document, f"loader-w1-b80-p2-{other}") for other in others)
    assert "leaked" not in result.stderr  # semaphores, which another start method names


def test_nothing_of_that_changes_what_is_learnt(sample):
    losses = [json.loads(sample(settings).stdout)["losses"] for settings in SETTINGS]
    assert [len(of_one) for of_one in losses] == [STEPS] * len(SETTINGS)
    assert all(of_one == losses[0] for of_one in losses)


def test_workers_that_a_server_forks_do_not_outlive_a_training_that_was_killed(tmp_path):
    request = tmp_path / "request.json"
    endless = Train("loader-w1-b80-p2-forkserver-persistent", "generated", steps=10**6)
    request.write_text(WorkerRequest(endless).line())
    training = subprocess.Popen(
        [sys.executable, str(WORKER), str(request)], cwd=PROJECT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip

    def running():
        numbers = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
        own = [pid for pid in numbers if (fields := owner.stat_fields(pid)) and int(fields[3]) == training.pid]
        return [pid for pid in own if not gone(pid)]

    try:
        until(lambda: [started_by(pid) for pid in running()].count("forkserver") >= 2)  # the server and the worker
    finally:
        training.kill()
        training.wait()
    until(lambda: not running())
