"""Real trainings at once: on CPUs of their own, in containers too, and ended with the runner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.engines.base import PROJECT
from envkit.worker.request import Instances

from tests import worker_runs
from tests.engines.test_ranks import DEATH_S, started_by, told, two_cpus, worker
from tests.processes import gone, until

ENDLESS = "3000000"  # other tests look for their own endless workers by another number


def several(steps, data="synthetic"):
    """What a worker is to do that has two trainings at once."""
    return Instances(2, worker("cnn", 1, steps, data))


@two_cpus
def test_two_at_once_beside_one_process(cli, tmp_path, data_folder):
    folder = tmp_path / "run"
    length = ("--steps", 4, "--warmup-steps", 1, "--blocks", 1)
    result = cli("bench", "baseline", "--instances", 2, *length, "--data", data_folder, "--output", folder)
    assert result.returncode == 0, result.stdout + result.stderr
    samples = {event["arm"]: event for event in record.read(folder) if event["event"] == "sample"}
    one, two = samples["baseline"], samples["2 x baseline"]
    first, second = two["instances"]
    assert set(first["cpus"]).isdisjoint(second["cpus"])
    for each in (first, second):
        cores = each["evidence"]["openmp"]["max_threads"]
        assert each["evidence"]["variables"]["sensitive"]["OMP_NUM_THREADS"] == str(cores)
    assert two["images_per_step"] == 2 * one["images_per_step"]
    assert len(two["step_s"]) == 4
    assert two["losses"] == pytest.approx(one["losses"], rel=1e-3)
    assert " verified in every process" in told(result.stdout)


@two_cpus
def test_two_at_once_in_a_container(image_of, surroundings, project):
    """Docker's stands for Apptainer's: ranks, which meet in the same way, are tried in both."""
    result = subprocess.run(
        started_by("docker", {"image": image_of("docker")}, several("3")), cwd=project,
        env={**os.environ, **surroundings}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    failure, printed, said = json.loads(result.stdout)
    assert failure is None, said
    assert len(json.loads(printed)["instances"]) == 2


def trainings():
    """The two processes that train, once both have torch mapped."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if worker_runs.trains(entry, "instance", ENDLESS) and "libtorch" in (entry / "maps").read_text():
                found.append(int(entry.name))
        except OSError:  # it has just ended
            continue
    return found if len(found) == 2 else None


@two_cpus
def test_none_outlives_the_runner():
    runner = subprocess.Popen(
        started_by("local", {}, several(ENDLESS)), cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        found = until(lambda: trainings() or (runner.poll() is not None and "ended"))
        assert found != "ended", runner.communicate()
        runner.send_signal(signal.SIGKILL)
        runner.wait(DEATH_S)
        until(lambda: all(map(gone, found)))
    finally:
        runner.kill()
        runner.communicate()
