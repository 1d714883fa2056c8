"""Jobs on a real Slurm cluster, in which each node has a run of its own: nodes die here."""

from __future__ import annotations

import json

import pytest
from envkit.bench import record

from tests.engines.slurm.cluster import (
    CLUSTER,
    HELD_S,
    REAL_S,
    SHORT,
    all_measure,
    bring_time_limit_near,
    ended,
    events,
    last_lines,
    measured,
    slurm,
)

NODES = ("node1", "node2")


# --- measuring ---


def test_each_node_measures_and_has_its_row(cli, simulated, simulation, folder):
    secrets = {"MY_TOKEN": "k3pt-canary-7f3a9", "HF_TOKEN": "hf-canary-44ab1"}  # kept, and inherited
    result = cli(*simulated("--nodes", 2, "--partition", "work", "--keep-env", "MY_TOKEN"), **secrets)
    assert result.returncode == 0, result
    assert all(secrets.items() <= start["environment"].items() for start in simulation.starts())
    job = slurm("scontrol", "--details", "show", "job") + slurm("scontrol", "show", "node")
    left = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for one in secrets.values():
        assert one not in result.stdout + result.stderr + job
        assert [path for path, content in left.items() if one.encode() in content] == []
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith(("node1", "node2"))]
    assert [(row[0], row[1], row[2], row[-2]) for row in rows] == [
        ("node1", "mine", "6", "faster"), ("node2", "mine", "6", "faster"),
    ]  # fmt: skip
    assert "on 2 nodes: faster; speedups of nodes differ by" in " ".join(result.stdout.split())
    for node in NODES:
        assert len(measured(folder, node)) == 12
        assert record.read(folder / node)[0]["environments"]["mine"]["variables"] == {"SIMULATED": "mine"}
    # the script is kept, and is what was submitted
    (submitting,) = events(folder, "submitting")
    assert submitting["script"] == (folder / "batch.sh").read_text()
    assert [event["state"] for event in events(folder, "ended")] == ["COMPLETED"]
    assert [one["state"] for one in json.loads((folder / "summary.json").read_text())["nodes"]] == ["measured"] * 2
    # it is not measured again
    again = cli("submit", "--resume", folder)
    assert (again.returncode, again.stdout) == (0, result.stdout)
    assert len(events(folder, "submitted")) == 1


def test_a_matrix_ranks_by_what_profiles_are_worth_on_both_nodes(cli, simulated, write_profile, folder):
    _, mine, *options = simulated("--nodes", 2, "--partition", "work")
    same = write_profile("same", "env:\n  SIMULATED: same\n")
    result = cli("matrix", same, mine, *options)
    assert result.returncode == 0, result
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith(("mine", "same"))]
    assert [row[0] for row in rows] == ["mine", "same"]
    assert [float(row[1].removesuffix("x")) for row in rows] == pytest.approx([2, 1], rel=0.1)
    assert "nodes 2 nodes of" in " ".join(result.stdout.split())
    assert [len(measured(folder, node)) for node in NODES] == [18, 18]


def test_a_node_with_real_workers_under_apptainer(cli, tmp_path, engine_options, surroundings, project):
    """On one node, and not in a fleet, which has six blocks at least: what a node does is the same."""
    folder = tmp_path / "run"
    image = engine_options("apptainer")
    length = (*SHORT, "--steps", 2, "--warmup-steps", 1, "--blocks", 1)
    arguments = ["submit", "baseline", "--nodelist", "node2", *image, *length, "--output", folder]
    result = cli(*arguments, cwd=project, timeout_s=REAL_S, **surroundings)
    assert result.returncode == 0, result
    assert any(line.startswith("node2") for line in result.stdout.splitlines()), result
    (sample,) = measured(folder, "node2")
    assert sample["evidence"]["openmp"]["runtime"] == "gnu"


# --- going on ---


def test_killed_and_resumed_follows_the_job_that_went_on(start, cli, simulated, slow, folder):
    slow(1)
    process = start(*simulated("--nodes", 2))
    all_measure(folder, process, at_least=1)
    process.kill()
    process.wait()
    slow(0)
    result = cli("submit", "--resume", folder)
    assert result.returncode == 0, result
    assert len(events(folder, "submitted")) == 1


def test_a_time_limit_comes_near(start, cli, simulated, slow, folder):
    """Slurm tells the job some time before its limit: the record has an end, and the same command goes on."""
    slow(1)
    process = start(*simulated("--nodes", 2, "--time-limit", "10m"))
    all_measure(folder, process, at_least=1)
    slow(HELD_S)
    bring_time_limit_near(folder)
    result = ended(process)
    assert result.returncode == 1, result
    assert last_lines(result) == [
        "node1, node2: the job's time limit was near",
        f"0 of 2 nodes measured; continue with: envkit submit --resume {folder}",
    ]
    earlier = {node: measured(folder, node) for node in NODES}
    for node, before in earlier.items():
        assert record.read(folder / node)[-1]["reason"] == "interrupted"
        assert 0 < len(before) < 12
    slow(0)
    resumed = cli("submit", "--resume", folder, "--time-limit", "20m")
    assert resumed.returncode == 0, resumed
    for node, before in earlier.items():
        assert measured(folder, node)[: len(before)] == before
        assert len(measured(folder, node)) == 12


def test_a_node_dies(start, cli, simulated, slow, folder):
    slow(1)
    process = start(*simulated("--nodes", 2))
    all_measure(folder, process)
    slurm(CLUSTER, "stop-node", "node2")
    slow(0)
    result = ended(process)
    assert result.returncode == 1, result
    lost, go_on = last_lines(result)
    assert lost.startswith("node2: did not end by itself: Slurm says that the node is down and does not respond")
    assert go_on == f"1 of 2 nodes measured; continue with: envkit submit --resume {folder}"
    assert len(measured(folder, "node1")) == 12
    earlier = measured(folder, "node2")
    assert 2 <= len(earlier) < 12
    slurm(CLUSTER, "start-node", "node2")
    done = (folder / "node1" / record.FILE_NAME).read_bytes()
    resumed = cli("submit", "--resume", folder)
    assert resumed.returncode == 0, resumed
    assert measured(folder, "node2")[: len(earlier)] == earlier
    assert len(measured(folder, "node2")) == 12
    # only the node that lacked something was asked for
    assert (folder / "node1" / record.FILE_NAME).read_bytes() == done
    assert events(folder, "submitting")[-1]["wanted"] == ["node2"]
