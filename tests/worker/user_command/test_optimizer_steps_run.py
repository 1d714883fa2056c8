"""The worker that times a command by the steps of its optimizer; of a stand-in for torch, which starts quickly."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from envkit.bench.parse_sample import SAMPLE_KEYS
from envkit.messages import from_json
from envkit.worker.messages.user_command import (
    CommandEnded,
    FewerStepsThanAsked,
    LastLine,
    NoSteps,
    NoStepsBeforeEnd,
    NoTorch,
    NoTorchYet,
    OtherMeans,
    SlowStart,
    TooShort,
    TorchTooOld,
)

from tests import worker_runs
from tests.processes import gone
from tests.worker import stand_in_torch

FEW = {"steps": 4, "warmup": 2}
TRAIN = """
import sys, time
import torch
sgd = torch.optim.SGD()
for step in range(int(sys.argv[1])):
    sgd.step()
    time.sleep(0.001)
    if step % int(sys.argv[2]) == 0: print(f"loss {step}.5")
"""


@pytest.fixture
def run(tmp_path):
    """Run a command under the worker: its document, exit status and stderr."""

    def worker(argv, **how):
        process = worker_runs.of_command(tmp_path, argv=argv, **how)
        return SimpleNamespace(status=process.returncode, document=json.loads(process.stdout), stderr=process.stderr)

    return worker


@pytest.fixture
def train(run, tmp_path):
    """Run a script in the same way, which takes so many steps and prints a loss in ``every`` of so many."""

    def worker(script=TRAIN, takes=10**6, every=1, **how):
        (stand_in_torch.write(tmp_path) / "train.py").write_text(script)
        return run(argv=[sys.executable, "train.py", takes, every], **how)

    return worker


def test_steps_are_those_of_the_optimizer(train):
    found = train(**FEW, loss_metric=r"loss (\S+)")
    assert found.status == 0
    assert found.document.keys() >= SAMPLE_KEYS
    assert "observed" not in found.document
    assert [len(found.document[name]) for name in ("warmup_step_s", "step_s")] == [1, 4]
    assert sum(found.document["step_s"]) < found.document["seconds"]
    assert found.document["losses"] == [2.5, 3.5, 4.5, 5.5]
    more = train(steps=5, warmup=2).document
    assert more["digests"]["command"] == found.document["digests"]["command"]  # the machine decides how many
    other = train(steps=4, warmup=2, every=2).document
    assert other["digests"]["command"] != found.document["digests"]["command"]


def test_as_many_as_fill_some_seconds(train):
    paced = {"steps": 3, "warmup": 1, "least_s": 0.3, "loss_metric": r"loss (\S+)"}
    found = train(**paced)
    assert found.status == 0
    assert sum(found.document["step_s"]) >= 0.3
    assert len(found.document["step_s"]) >= 3
    assert found.document["losses"] == []  # other runs have other numbers of them


def test_a_training_that_takes_no_step_is_ended_with_what_helps(train, tmp_path):
    paced = {"steps": 3, "warmup": 1, "least_s": 0.3, "first_step_s": 3}
    found = train(**paced, script="import torch, time\ntime.sleep(300)")
    assert found.status == 1
    assert from_json(found.document["problem"]) in (SlowStart(NoSteps(), 3), SlowStart(NoTorchYet(), 3))


def test_an_old_torch_is_told_before_the_training_ends(run, tmp_path):
    stand_in_torch.write(tmp_path, registers=False)
    found = run(**FEW, argv=[sys.executable, "-c", "import torch, time; time.sleep(300)"])
    assert found.status == 1
    assert from_json(found.document["problem"]) == OtherMeans(TorchTooOld())


def test_losses_that_not_each_step_prints(train):
    assert train(**FEW, loss_metric=r"loss (\S+)", every=2).document["losses"] == [0.5, 2.5, 4.5]


def test_one_that_is_watched_is_ended_with_what_it_started(train, tmp_path):
    script = "import subprocess\nhelper = subprocess.Popen(['sleep', '300'])\nprint(helper.pid)\n"
    # its own start takes CPU time too
    script += "while open(f'/proc/{helper.pid}/stat').read().split()[2] != 'S': pass\n" + TRAIN
    found = train(watch_s=0.6, watch_limit_s=60, warmup=3, script=script)
    assert found.status == 0
    observed = found.document["observed"]
    assert sum(found.document["step_s"]) >= 0.6
    assert (observed["optimizer"], observed["operators"]["calls"]) == ("SGD", {"aten::mm": 6})
    assert not {"step_s", "warmup_step_s"} & observed.keys()
    assert observed["helpers"]["processes"] == 1
    assert observed["helpers"]["user_s"] == 0
    assert "loss 5.5" in found.stderr
    assert gone(int(found.stderr.split()[0]))


@pytest.mark.parametrize(
    ("how", "takes", "said"),
    [
        (FEW, 5, FewerStepsThanAsked(needed=6, warmup=2)),
        (FEW, 0, OtherMeans(NoStepsBeforeEnd())),
        ({"watch_s": 9, "warmup": 1}, 4, TooShort(0.0, 3)),
        ({"watch_s": 9, "warmup": 1}, 0, NoStepsBeforeEnd()),
    ],
)
def test_one_that_ends_too_early(train, how, takes, said):
    found = train(**how, takes=takes)
    assert (found.status, found.document.keys()) == (1, {"problem"})
    problem = from_json(found.document["problem"])
    assert (problem.replace(seconds=0.0) if isinstance(problem, TooShort) else problem) == said


def test_one_that_takes_no_step_is_given_up(train, run):
    limit = {"watch_s": 0.1, "warmup": 3}
    sleeps = "import torch, time\ntime.sleep(300)"
    # time to import it, and to be ended, which counts to the seconds that are said
    problem = from_json(train(**limit, watch_limit_s=5, script=sleeps).document["problem"])
    assert isinstance(problem, NoSteps)
    assert 4.5 <= problem.seconds < 240
    assert from_json(run(**limit, watch_limit_s=1, argv=["sleep", 300]).document["problem"]) == NoTorch()


def test_one_that_fails_says_how(train):
    problem = from_json(train(watch_s=9, script="print('no data'); exit(3)").document["problem"])
    assert problem == CommandEnded(3, LastLine("no data"))
