"""Trainings that know nothing of the kit, timed by the steps of their optimizer."""

from __future__ import annotations

import json
import sys

import pytest

from tests import worker_runs
from tests.conftest import PROJECT

LOADER = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(1, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.AdamW(model.parameters())
for batch in torch.utils.data.DataLoader([0.5] * 10**7, batch_size=8, num_workers=2):
    optimizer.zero_grad()
    model(batch.float().unsqueeze(1)).sum().backward()
    optimizer.step()
"""
RANKS = """
import os
import torch, torch.distributed as ranks
torch.set_num_threads(1)
ranks.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    print(os.environ["RANK"], "took a step")
"""


@pytest.fixture
def sample(tmp_path):
    """What the worker measures of a command, and what that has printed."""

    def measure(argv, **how):
        process = worker_runs.of_command(tmp_path, argv=argv, **how)
        assert process.returncode == 0, (process.stdout, process.stderr)
        return json.loads(process.stdout), process.stderr

    return measure


def test_it_ends_after_so_many_steps(sample):
    argv = [sys.executable, PROJECT / "tests/scripts/plain_loop.py"]
    found, printed = sample(argv, steps=4, warmup=2, loss_metric=r"loss ([\d.]+)")
    assert (len(found["step_s"]), len(found["losses"]), printed.count("step ")) == (4, 4, 6)
    assert found["evidence"]["torch"]["version"]


def test_it_is_watched_beside_the_workers_of_its_loader(sample, tmp_path):
    (tmp_path / "loader.py").write_text(LOADER)
    found, _ = sample(watch_s=0.01, watch_limit_s=240, warmup=3, argv=[sys.executable, "loader.py"])
    assert len(found["step_s"]) >= 4
    observed = found["observed"]
    assert (observed["optimizer"], observed["operators"]["steps"]) == ("AdamW", 3)
    assert 0 < sum(observed["operators"]["self_s"].values()) < 3 * observed["operators"]["seconds"]
    assert observed["operators"]["calls"]["aten::addmm"] == 6
    assert observed["helpers"]["processes"] >= 2
    assert found["evidence"]["torch"]["version"]


@pytest.fixture
def torchrun(tmp_path):
    (tmp_path / "ranks.py").write_text(RANKS)
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "ranks.py"]


def test_ranks_end_after_equally_many_steps(sample, torchrun):
    found, printed = sample(steps=4, warmup=2, argv=torchrun)
    assert len(found["step_s"]) == 4
    assert [printed.count(f"{rank} took a step") for rank in (0, 1)] == [6, 6]


def test_ranks_are_watched(sample, torchrun):
    found, _ = sample(watch_s=0.01, watch_limit_s=240, warmup=2, argv=torchrun)
    observed = found["observed"]
    assert (observed["threads"], observed["complete"]) == (1, True)  # as the script has set it
    assert observed["helpers"]["processes"] >= 2  # the other rank, and torchrun
