"""Fleets on a real Slurm cluster: each node has a job of its own."""

from __future__ import annotations

import signal

import pytest
from envkit.bench import record

from tests.engines.slurm.cluster import (
    all_measure,
    ended,
    events,
    idle,
    job_state,
    last_lines,
    measured,
    slurm,
    waiting_for,
)


@pytest.fixture
def busy():
    """Another job has this node, until the function that is returned is called."""

    def take(node):
        options = ("--parsable", f"--nodelist={node}", "--exclusive", "--output=/dev/null", "--wrap", "sleep 600")
        number = slurm("sbatch", *options).strip()
        waiting_for(lambda: "RUNNING" in slurm("squeue", "--noheader", "--jobs", number, "--format", "%T"))
        return lambda: slurm("scancel", number)

    return take


@pytest.fixture
def fleet(simulated):
    """The arguments that measure a fleet with simulated workers."""

    def arguments(*options):
        _, *same = simulated(*options)
        return ["fleet", *same]

    return arguments


@pytest.fixture
def drained():
    """node2 starts no jobs, until the function that is returned is called."""
    drains = ["node2"]

    def resume():
        if drains:
            slurm("scontrol", "update", f"nodename={drains.pop()}", "state=resume")
            waiting_for(idle)  # until it has answered the controller, it does not respond

    slurm("scontrol", "update", "nodename=node2", "state=drain", "reason=planted")
    yield resume
    resume()


def test_a_fleet_is_measured_and_reported(cli, fleet, folder, tmp_path, drained):
    """Nothing waits for a node that is out of service: the same command goes on with it."""
    without = cli(*fleet("--nodelist", "node[1-2]"))
    assert without.returncode == 1, without
    assert last_lines(without) == [
        "left out: node2: Slurm says drained (planted)",
        "node2: did not begin: Slurm says that the node is drained (planted)",
        f"1 of 2 nodes measured; continue with: envkit fleet --resume {folder}",
    ]
    done = (folder / "node1" / record.FILE_NAME).read_bytes()
    drained()
    html = tmp_path / "fleet.html"
    result = cli("fleet", "--resume", folder, "--html", html)
    assert result.returncode == 0, result
    text = " ".join(result.stdout.split())
    assert text.startswith("NOT JUDGED fewer than 6 nodes of one kind can be compared")
    assert "mine, workload cnn: begun " in text
    rows = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("node")]
    assert sorted(rows) == ["node", "node1", "node2"]
    assert "<html" in html.read_text()
    assert [len(measured(folder, node)) for node in ("node1", "node2")] == [12, 12]
    assert (folder / "node1" / record.FILE_NAME).read_bytes() == done
    assert [event["wanted"] for event in events(folder, "submitting")] == [["node1"], ["node2"]]
    assert cli("fleet", "--resume", folder).stdout == result.stdout
    assert len(events(folder, "submitted")) == 2


def test_a_busy_node_keeps_no_other_waiting_and_ctrl_c_cancels_all(start, cli, fleet, slow, folder, busy):
    """The node that measures, and the one that waits; no node is named. The same command goes on with both."""
    free = busy("node2")
    slow(1)
    process = start(*fleet())
    all_measure(folder, process, ["node1"], at_least=1)
    process.send_signal(signal.SIGINT)
    result = ended(process)
    assert result.returncode == 130, result
    assert last_lines(result)[-1] == f"interrupted; continue with: envkit fleet --resume {folder}"
    assert any(line.startswith("node2: did not begin: the job was cancelled") for line in last_lines(result))
    assert {*job_state(folder).split()} == {"CANCELLED"}
    earlier = measured(folder, "node1")
    free()
    slow(0)
    resumed = cli("fleet", "--resume", folder)
    assert resumed.returncode == 0, resumed
    assert measured(folder, "node1")[: len(earlier)] == earlier
    assert [len(measured(folder, node)) for node in ("node1", "node2")] == [12, 12]
