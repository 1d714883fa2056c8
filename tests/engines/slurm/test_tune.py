"""Tuning by both nodes of a real Slurm cluster: nodes die here."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.profiles import profile

from tests.engines.slurm.cluster import CLUSTER, ended, events, kill, last_lines, slurm, trials, waiting_for
from tests.processes import PATIENCE_S

NODES = ("node1", "node2")
# So long a trial takes while the test goes on: twice as long, and the search would give its candidate up.
HELD_S = 10
RUNNING = Path("/run/kit-slurm")


def test_both_nodes_search_and_confirm(cli, tune, folder, tmp_path):
    result = cli(*tune("--json"))
    assert result.returncode == 0, result
    found = json.loads(result.stdout)
    assert (found["best"], found["verdict"]["nodes"]) == ("tuned", ["node1", "node2"])
    assert found["verdict"]["found"]["tuned"]["speedup"]["ratio"] == pytest.approx(2, rel=0.1)
    made = profile.load(str(tmp_path / "work-tuned.yaml"))
    assert made.env == {"GOMP_SPINCOUNT": "1000"}
    assert "on 2 nodes of" in made.reason
    for node in ("node1", "node2"):
        assert record.read(folder / node / record.CONFIRMATION)[-1]["reason"] == "complete"


def test_a_node_that_is_killed_leaves_an_answer_and_the_same_command_goes_on(start, cli, tune, slow, folder, tmp_path):
    slow(0.5)
    process = start(*tune(budget="40s"))
    waiting_for(lambda: process.poll() is not None or len(trials(folder, "node2")) >= 2)
    kill("node2")
    slow(0)
    result = ended(process)
    assert result.returncode == 1, result
    assert "on 1 node: " in " ".join(result.stdout.split())
    assert last_lines(result)[-1] == f"1 of 2 nodes measured; continue with: envkit tune --resume {folder}"
    assert profile.load(str(tmp_path / "work-tuned.yaml")).env == {"GOMP_SPINCOUNT": "1000"}
    slurm(CLUSTER, "start-node", "node2")
    again = cli("tune", "--resume", folder)
    assert again.returncode == 0, again
    assert "on 2 nodes: faster" in " ".join(again.stdout.split())


def printed(folder):
    """What the jobs of a submission printed, with what is not in any node's log."""
    return "".join(path.read_text() for path in folder.glob("slurm-*.out"))


def search_events(folder, node):
    return [event["event"] for event in record.read(folder / node, "tune")]


def test_a_job_that_makes_room_for_another_is_requeued_and_goes_on(start, tune, slow, folder, tmp_path):
    slow(0.5)
    process = start(*tune(budget="40s"))
    waiting_for(lambda: process.poll() is not None or all(len(trials(folder, node)) >= 2 for node in NODES))
    slow(HELD_S)
    earlier = {node: trials(folder, node) for node in NODES}
    slurm("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap", "sleep 1")
    waiting_for(lambda: process.poll() is not None or all("end" in search_events(folder, node) for node in NODES))
    slow(0)
    result = ended(process, 2 * PATIENCE_S)  # until Slurm starts it again, and what is left of its budget
    assert result.returncode == 0, result
    assert len(events(folder, "submitted")) == 1
    assert "Traceback" not in printed(folder)
    assert "on 2 nodes: faster" in " ".join(result.stdout.split())
    assert profile.load(str(tmp_path / "work-tuned.yaml")).env == {"GOMP_SPINCOUNT": "1000"}
    for node, before in earlier.items():
        assert trials(folder, node)[: len(before)] == before
        assert "resume" in search_events(folder, node)
        assert "failure" not in search_events(folder, node)
        twice = Counter((event["round"], event["candidate"]) for event in trials(folder, node))
        assert max(twice.values()) == 1


@pytest.fixture
def another_cpu(tmp_path):
    """Have node2 see another processor, for as long as the test runs."""
    text = Path("/proc/cpuinfo").read_text()
    lines = ["model name\t: Another CPU" if line.startswith("model name") else line for line in text.splitlines()]
    (tmp_path / "cpuinfo").write_text("\n".join(lines).replace("model\t\t: ", "model\t\t: 9") + "\n")
    outside = (RUNNING / "node2.pid").read_text().strip()
    (first,) = Path(f"/proc/{outside}/task/{outside}/children").read_text().split()
    inside = ("nsenter", "--target", first, "--mount", "--pid")
    slurm(*inside, "mount", "--bind", tmp_path / "cpuinfo", "/proc/cpuinfo")
    yield
    slurm(*inside, "umount", "/proc/cpuinfo")


def test_nodes_with_two_cpu_models(cli, tune, folder, tmp_path, another_cpu):
    """The other one answers."""
    result = cli(*tune())
    assert result.returncode == 2, result
    assert "on 1 node: faster" in " ".join(result.stdout.split())
    assert profile.load(str(tmp_path / "work-tuned.yaml")).env == {"GOMP_SPINCOUNT": "1000"}
    line, go_on = last_lines(result)
    assert go_on == f"1 of 2 nodes measured; continue with: envkit tune --resume {folder}"
    assert ": is of another type than the others: " in line
    assert "Another CPU" in line
    assert line.endswith("; name nodes of one type with --nodelist, or a partition of them")


def test_two_tunings_into_one_folder(start, cli, tune, folder, tmp_path):
    process = start(*tune())
    waiting_for(lambda: process.poll() is not None or trials(folder, "node1"))
    for arguments in (tune(), ("tune", "--resume", folder)):
        second = cli(*arguments)
        assert (second.returncode, second.stdout) == (2, ""), second
        why = "another envkit process is writing to it; wait for it, or give another folder"
        assert second.stderr == f"envkit: {folder / record.FILE_NAME}: {why}\n"
    result = ended(process)
    assert result.returncode == 0, result
    assert profile.load(str(tmp_path / "work-tuned.yaml")).env == {"GOMP_SPINCOUNT": "1000"}
