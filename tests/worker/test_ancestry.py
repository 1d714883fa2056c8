"""Who had a process compute with few threads or on few CPUs: read of real processes, which do nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from envkit.worker import ancestry
from envkit.worker.messages.cpus import (
    BoundByGroup,
    BoundByMpi,
    BoundByParent,
    BoundByRuntime,
    BoundBySlurm,
    BoundByTool,
    SetAtFirst,
    SetByParent,
    SetOnLine,
)

from tests.processes import until

CPUS = sorted(os.sched_getaffinity(0))
SEVERAL = pytest.mark.skipif(len(CPUS) < 2, reason="needs 2 CPUs")
ONE = "OMP_NUM_THREADS=1"
# Binds what it starts, as an MPI launcher, a daemon of Slurm's or a bound thread does: to the CPU that is named first.
BINDS = """
import os, subprocess, sys
bind = lambda: os.sched_setaffinity(0, {int(sys.argv[1])})
subprocess.Popen(["sleep", "600"], preexec_fn=bind).wait()
"""


@contextmanager
def sleeping(*command, executable=None, **variables):
    """The number of the ``sleep`` that a command starts, or becomes."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "KMP_", "GOMP_"))}
    with subprocess.Popen(
        command, executable=executable, env={**env, **variables}, start_new_session=True, stdout=subprocess.DEVNULL
    ) as process:
        try:
            yield until(lambda: _asleep(process.pid))
        finally:
            os.killpg(process.pid, 9)


def _asleep(pid):
    one = ancestry.process(pid)
    below = [int(path) for task in ancestry.Path(f"/proc/{pid}/task").glob("*/children")
             for path in ancestry.text_of(task).split()]  # fmt: skip
    if one is not None and one.command == "sleep":
        return pid
    return next((found for child in below if (found := _asleep(child))), None)


# --- variables ---


def test_the_process_that_gave_it_the_variable(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("export OMP_NUM_THREADS=1\nsh -c 'sleep 600; true'\n")
    with sleeping("sh", "-c", f"sh {script}; true") as pid:
        by = ancestry.set_by(pid, "OMP_NUM_THREADS", "1")
    assert isinstance(by, SetByParent)
    assert (by.variable, by.starter) == (ONE, "sh run.sh")


def test_one_that_stands_on_a_command_line():
    with sleeping("sh", "-c", "OMP_NUM_THREADS=1 sleep 600; true") as pid:
        assert ancestry.set_by(pid, "OMP_NUM_THREADS", "1") == SetOnLine(ONE)


def test_one_that_the_topmost_process_had(monkeypatch):
    """As in a container, where nothing is above the first process."""
    top = ancestry.Process(1, 0, ("/sbin/tini", "--"), {"OMP_NUM_THREADS": "1"}, frozenset(CPUS))
    monkeypatch.setattr(ancestry, "above", lambda pid: iter([top]))
    assert ancestry.set_by(os.getpid(), "OMP_NUM_THREADS", "1") == SetAtFirst(ONE, "tini", 1)


def test_variables_that_can_not_be_read(monkeypatch):
    daemon = ancestry.Process(7, 1, ("slurmstepd: [12.0]",), None, frozenset(CPUS))
    monkeypatch.setattr(ancestry, "above", lambda pid: iter([daemon]))
    by = ancestry.set_by(os.getpid(), "OMP_NUM_THREADS", "1")
    assert (by.code, by.starter) == ("worker.set-above", "slurmstepd:")


# --- CPUs ---


def bound(pid):
    return ancestry.bound_by(pid, frozenset(CPUS[:1]))


@SEVERAL
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_tool_that_became_the_process(shell):
    """bash says in the variable _ what it started; of sh the command line is read."""
    with sleeping(shell, "-c", f"taskset -c {CPUS[0]} sleep 600; true") as pid:
        assert bound(pid) == BoundByTool("taskset")


@SEVERAL
@pytest.mark.parametrize(
    ("name", "variables", "by"),
    [
        ("slurmstepd: [12.0]", {}, BoundBySlurm()),
        ("slurmstepd: [12.0]", {"SLURM_CPUS_PER_TASK": "1"}, BoundBySlurm("1")),
        ("mpirun", {}, BoundByMpi("mpirun")),
        ("hydra_pmi_proxy", {}, BoundByMpi("hydra_pmi_proxy")),
        ("python", {"GOMP_CPU_AFFINITY": "0-1"}, (BoundByRuntime, "GOMP_CPU_AFFINITY")),
        ("python", {}, (BoundByParent, "python")),
    ],
)
def test_a_parent_that_binds_what_it_starts(name, variables, by):
    command = (name, "-c", BINDS, str(CPUS[0]))
    with sleeping(*command, executable=sys.executable, **{"_": "", **variables}) as pid:
        found = bound(pid)
    if isinstance(by, tuple):
        assert (type(found), next(iter(found.values().values()))) == by
    else:
        assert found == by


@SEVERAL
def test_a_group_that_has_no_more(monkeypatch):
    """Everything that can be seen has the same CPUs, as in a container."""
    monkeypatch.setattr(ancestry, "above", lambda pid: iter(()))
    assert isinstance(bound(os.getpid()), BoundByGroup)


@SEVERAL
def test_a_bound_grandparent_is_found():
    with sleeping("sh", "-c", f"taskset -c {CPUS[0]} sh -c 'sleep 600; true'; true", _="") as pid:
        assert bound(pid) == BoundByTool("taskset")


# --- what programs are called ---


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["/venv/bin/python", "-u", "/home/me/train.py", "--token", "secret"], "python train.py"),
        (["/venv/bin/python3.11", "/venv/bin/torchrun", "--nproc-per-node", "2"], "torchrun"),
        (["python", "-X", "dev", "-m", "torch.distributed.run", "x.py"], "python -m torch.distributed.run"),
        (["python", "-c", "print('secret')"], "python"),
        (["-bash"], "bash"),
        (["bash", "-e", "run.sh"], "bash run.sh"),
        (["ray::Trainer.train() secret"], "ray::Trainer.train()"),
        (["/usr/bin/srun", "-n2", "x"], "srun"),
    ],
)
def test_a_command_is_named_without_its_arguments(argv, name):
    assert ancestry.command(argv) == name
