"""A tuning whose job has to end before it is done: what was measured stays, and it goes on."""

from __future__ import annotations

from collections import Counter

from envkit.bench import record
from envkit.profiles import profile

from tests.engines.slurm.cluster import (
    bring_time_limit_near,
    ended,
    events,
    last_lines,
    slurm,
    trials,
    waiting_for,
)
from tests.processes import PATIENCE_S

NODES = ("node1", "node2")
# So long a trial takes while the test goes on: twice as long, and the search would give its candidate up.
HELD_S = 10


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


def test_a_time_limit_comes_near_in_the_search(start, cli, tune, slow, folder, tmp_path):
    slow(0.5)
    process = start(*tune("--time-limit", "10m", budget="100s"))
    waiting_for(lambda: process.poll() is not None or all(trials(folder, node) for node in NODES))
    slow(HELD_S)
    bring_time_limit_near(folder)
    result = ended(process)
    assert result.returncode == 1, result
    assert last_lines(result) == [
        "no node has confirmed anything, and no profile was written",
        "node1, node2: the job's time limit was near",
        f"0 of 2 nodes measured; continue with: envkit tune --resume {folder}",
    ]
    earlier = {node: trials(folder, node) for node in NODES}
    slow(0)
    resumed = cli("tune", "--resume", folder, "--time-limit", "20m")
    assert resumed.returncode == 0, resumed
    assert "Traceback" not in printed(folder)
    assert events(folder, "submitting")[-1]["wanted"] == [*NODES]
    assert profile.load(str(tmp_path / "work-tuned.yaml")).env == {"GOMP_SPINCOUNT": "1000"}
    for node, before in earlier.items():
        assert before
        assert trials(folder, node)[: len(before)] == before
