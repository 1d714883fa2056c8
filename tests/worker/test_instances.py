"""One sample of several trainings at once, and what becomes of them when one dies; the trainings take no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.engines.base import PROJECT
from envkit.worker import instances
from envkit.worker.messages import ProcessKilled, UnlikeRank

from tests.processes import gone, until
from tests.trainings import training

# From the death of one to the end of all, on a machine that has other things to do.
DEATH_S = 240
# Has a training in the worker's place, which is given where it meets the others.
LAUNCHER = """
import sys
from envkit.worker import instances, ranks
from envkit.worker.request import Instances, Train
ranks.WORKER = (sys.executable, "-c", sys.argv[1])
sys.exit(instances.launch(Instances(int(sys.argv[2]), Train("cnn", "synthetic"))))
"""


@pytest.fixture
def launch():
    """Start so many trainings that do something before they meet, and then; what is left after the test is killed."""
    started = []

    def run(number=2, **does):
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, training(**does), str(number)], cwd=PROJECT, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_all_together_are_one_sample(launch):
    stdout, stderr = launch(number=3).communicate(timeout=240)
    document = json.loads(stdout)
    assert (document["images_per_step"], document["step_s"], document["losses"]) == (24, [0.25] * 3, [3.0, 2.0, 1.0])
    assert [one["instance"] for one in document["instances"]] == [0, 1, 2]
    assert stderr == ""


def test_when_one_dies_the_others_end_and_so_does_what_they_started(launch, tmp_path):
    """The others are in the midst of their training, with a process of their own."""
    seen = str(tmp_path / "seen")
    launcher = launch(
        then=f"""
    if first():
        while not os.path.exists({seen!r}):
            time.sleep(0.01)
        print("last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 9)
    process = subprocess.Popen(["sleep", "600"])
    Path({seen + "-not-yet"!r}).write_text(f"{{os.getpid()}} {{process.pid}}")
    os.rename({seen + "-not-yet"!r}, {seen!r})
    time.sleep(600)
    """
    )
    pids = [int(pid) for pid in until(lambda: Path(seen).exists() and Path(seen).read_text()).split()]
    stdout, stderr = launcher.communicate(timeout=DEATH_S)
    assert launcher.returncode == 1
    lost = [ProcessKilled(f"instance {number}", "SIGKILL").to_json() for number in range(2)]
    assert json.loads(stdout)["problem"] in lost
    assert "last words" in stderr
    assert [gone(pid) for pid in pids] == [True, True]


def test_one_that_fails_before_the_others_can_meet_it(launch):
    launcher = launch(before="if first(): raise ValueError('planted trouble')")
    stdout, stderr = launcher.communicate(timeout=DEATH_S)
    assert launcher.returncode == 1
    assert json.loads(stdout)["problem"]["status"] == 1
    assert "ValueError: planted trouble" in stderr


# --- one sample of all ---


def test_a_step_of_all_is_as_many_steps_as_there_are_instances():
    assert instances.steps_of_all([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], 2) == [1.0, 1.0]
    # 2 steps per second and half a step per second are 5 steps in 2 seconds
    assert instances.steps_of_all([[0.5, 0.5, 0.5, 0.5], [2.0]], 1) == [0.8]
    assert instances.steps_of_all([[1.0, 3.0], [2.0, 2.0]], 2) == [1.6, 2.4]


def one(cpus, **replaced):
    usage = dict.fromkeys((*instances.distributed.SUMMED, "throttled_s"), 2)
    document = {
        "seconds": 3.0, "step_s": [1.0, 1.0, 1.0], "warmup_step_s": [5.0], "losses": [4.0, 2.0, 9.0],
        "modes": {"precision": "fp32"}, "images_per_step": 64, "unit": "images", "usage": usage, "quality": None,
        "peak_memory_bytes": 100, "digests": {"code": "c"}, "evidence": {"openmp": {}}, "node": "here", "cpus": cpus,
        "own_steps": 2,
    }  # fmt: skip
    return {**document, **replaced}


def test_what_they_used_adds_up_and_what_was_for_others_sake_is_left_out():
    document = instances.merged([one([1]), one([0], step_s=[1.0, 2.0], losses=[2.0, 4.0], seconds=3.5)])
    assert document["usage"]["minor_faults"] == 4
    assert document["usage"]["throttled_s"] == 2
    assert (document["peak_memory_bytes"], document["images_per_step"], document["seconds"]) == (200, 128, 3.5)
    assert (document["losses"], document["step_s"]) == ([3.0, 3.0], [1.0, 1.3333333])
    assert [(each["instance"], each["cpus"], each["node"]) for each in document["instances"]] == [
        (0, [0], "here"), (1, [1], "here"),
    ]  # fmt: skip
    assert document.keys().isdisjoint({"ranks", "own_steps", "cpus"})


def test_trainings_of_other_code_are_no_sample():
    problem = instances.merged([one([0]), one([1], digests={"code": "d"})])["problem"]
    assert (problem["code"], problem["what"]) == (UnlikeRank.code, "code")
