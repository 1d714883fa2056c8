"""Hosts that a real sshd is on, which train together: with real workers, and with links that break."""

from __future__ import annotations

import os
import signal
import time

import pytest
from envkit.bench import record
from envkit.bench.blocks import samples

from tests.processes import PATIENCE_S, gone, running, until

TOGETHER = "all-nodes"
# From the end of a link to that of the ranks on all hosts.
DEATH_S = 60
# The worker imports torch four times for each sample, on two cores that others may use, too.
REAL_S = 600


def test_ranks_on_both_hosts_train_together(cli_process, run_folder):
    length = ("--steps", 2, "--warmup-steps", 1, "--blocks", 1, "--data", "synthetic", "--seed", 7)
    asked = ("baseline", "--hosts", "host1,host2", "--nproc", 1, *length, "--output", run_folder)
    result = cli_process("bench", *asked, timeout_s=REAL_S)
    assert result.returncode == 0, result
    found = {event["arm"]: event for event in samples(record.read(run_folder / TOGETHER))}
    assert found.keys() == {"baseline", "1 process"}
    assert [(rank["rank"], rank["node"]) for rank in found["baseline"]["ranks"]] == [(0, "host1"), (1, "host2")]
    assert found["baseline"]["losses"] == pytest.approx(found["1 process"]["losses"], rel=1e-3)


@pytest.mark.parametrize("how", ["ssh is killed", "the cable is pulled"])
def test_a_link_that_breaks_ends_the_ranks_on_both(start, submit, simulation, run_folder, unplug, how):
    """Where nothing closes a link, each of its sides finds out that the other is silent."""
    for name in ("baseline", "mine"):
        simulation.worker(f"{name} on 2 ranks warming", does="hang")
    process = start(*submit("host1,host2", "--nproc", 1))
    until(lambda: process.poll() is not None or len(ranks(simulation)) == 2)
    assert process.poll() is None, process.communicate()
    (link,) = (pid for pid, command in running("\0host2\0").items() if "ENVKIT_STEP" in command)
    began = time.monotonic()
    if how == "ssh is killed":
        os.kill(link, signal.SIGKILL)
    else:
        unplug("host2")
    until(lambda: all(map(gone, ranks(simulation))))
    assert time.monotonic() - began < DEATH_S
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, stderr
    assert "the worker lost host2: the link to it broke" in stderr
    until(lambda: not running(f"\0{run_folder}\0"))


def ranks(simulation):
    return [one["pid"] for one in simulation.starts(all=True) if one["name"].endswith(" on 2 ranks warming")]
