"""The real Slurm cluster of two nodes on this machine that .ci/engines/slurm makes, and what submissions leave."""

from __future__ import annotations

import math
import subprocess
import time
from pathlib import Path

from envkit.bench import record
from envkit.engines.base import PROJECT

from tests.processes import PATIENCE_S
from tests.records import samples

CLUSTER = PROJECT / ".ci/engines/slurm"
CONFIGURATION = Path("/etc/slurm/slurm.conf")
MARK = "# Written by .ci/engines/slurm."
NODES = Path("/var/lib/kit-slurm")  # each node's own folder on this machine
LOCAL = Path("/srv/kit-local")  # node1's is this machine's, node2 has its own
SHORT = ("--steps", "3", "--data", "synthetic", "--seed", "7")
# How long real workers may take on both nodes, which share the CPUs of a machine that others may use, too: each node
# imports torch twice for every one of them.
REAL_S = 1200
# Limits are whole minutes: the nearer one leaves so many seconds at least, of which Slurm may let 30 pass first.
NEAR_S = 45
# No sample of a simulated worker that takes so long comes before the test goes on.
HELD_S = 300


def slurm(*command):
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=150, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def waiting_for(found, patience_s=PATIENCE_S):
    """The answer, as soon as it counts as true. Slurm is asked once a second at most."""
    end = time.monotonic() + patience_s
    while not (answer := found()):
        assert time.monotonic() < end
        time.sleep(0.5)
    return answer


def idle():
    asked = ("sinfo", "--noheader", "--Node", "--partition", "work", "--format", "%N %T")
    seen = subprocess.run(asked, capture_output=True, text=True, timeout=150, check=False).stdout
    return seen.split() == ["node1", "idle", "node2", "idle"]


def kill(node):
    """Kill a node, of which Slurm hears at once: by itself it takes half a minute to miss one."""
    slurm(CLUSTER, "stop-node", node)
    slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=planted")


def measured(folder, node):
    """What a node has recorded so far."""
    path = folder / node / record.FILE_NAME
    return samples(record.read(folder / node)) if path.exists() and b"\n" in path.read_bytes() else []


def trials(folder, node):
    """The trials that a node has recorded so far in its search."""
    place = folder / node
    events = record.read(place, "tune") if record.is_begun(place) else []
    return [event for event in events if event["event"] == "trial"]


def all_measure(folder, process, nodes=("node1", "node2"), at_least=2, patience_s=PATIENCE_S):
    """Wait until each node has some samples."""

    def done():
        return process.poll() is not None or all(len(measured(folder, node)) >= at_least for node in nodes)

    waiting_for(done, patience_s)
    assert process.poll() is None, process.communicate()


def events(folder, kind):
    return [event for event in record.read(folder, "submit") if event["event"] == kind]


def job_state(folder):
    """Of all jobs, where it is a fleet."""
    number = events(folder, "submitted")[-1]["job"]
    return slurm("squeue", "--noheader", "--states", "all", "--jobs", number, "--format", "%T").strip()


def bring_time_limit_near(folder):
    """Have the limit of the job come so near that Slurm tells the job when it looks next, which is twice a minute.

    It tells a job with a limit of ten minutes up to a minute and a half before that.
    """
    number = events(folder, "submitted")[-1]["job"]
    minutes, seconds = slurm("squeue", "--noheader", "--jobs", number, "--format", "%M").strip().split(":")
    passed_s = 60 * int(minutes) + int(seconds)
    slurm("scontrol", "update", f"jobid={number}", f"timelimit={math.ceil((passed_s + NEAR_S) / 60)}")


def last_lines(result):
    """What is said on stderr of trouble."""
    return [line.removeprefix("envkit: ") for line in result.stderr.splitlines() if line.startswith("envkit: ")]


def ended(process, patience_s=PATIENCE_S):
    stdout, stderr = process.communicate(timeout=patience_s)
    assert "Traceback" not in stdout + stderr
    return subprocess.CompletedProcess([], process.returncode, stdout, stderr)
