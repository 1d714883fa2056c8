"""What a tuning by two nodes of a real Slurm cluster is not given: one line says so, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from envkit.bench import record
from envkit.profiles import profile

from tests.engines.slurm.cluster import (
    CLUSTER,
    LOCAL,
    ended,
    events,
    kill,
    last_lines,
    slurm,
    trials,
    waiting_for,
)

RUNNING = Path("/run/kit-slurm")


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


def answered_by_one(result, folder, tmp_path):
    """What is said of the node that did not measure, where the other one has answered."""
    assert result.returncode == 2, result
    assert "on 1 node: faster" in " ".join(result.stdout.split())
    assert profile.load(str(tmp_path / "work-tuned.yaml")).env == {"GOMP_SPINCOUNT": "1000"}
    line, go_on = last_lines(result)
    assert go_on == f"1 of 2 nodes measured; continue with: envkit tune --resume {folder}"
    return line


def test_nodes_with_two_cpu_models(cli, tune, folder, tmp_path, another_cpu):
    line = answered_by_one(cli(*tune()), folder, tmp_path)
    assert ": is of another type than the others: " in line
    assert "Another CPU" in line
    assert line.endswith("; name nodes of one type with --nodelist, or a partition of them")


def test_a_results_folder_that_one_node_does_not_share(cli, tune, tmp_path):
    folder = LOCAL / "run"
    line = answered_by_one(cli(*tune("--output", folder)), folder, tmp_path)
    assert line.startswith(f"node2: {folder}: the results folder is a different one there; give one that all nodes")


def test_a_node_that_never_starts(cli, tune, folder):
    kill("node2")
    result = cli(*tune("--start-within", "3s"))
    assert (result.returncode, result.stdout) == (2, ""), result
    (line,) = last_lines(result)
    number = events(folder, "submitted")[0]["job"]
    assert line.startswith(f"job {number} did not start within 3 s and was cancelled: Slurm says ")
    assert line.endswith(f"; wait longer with: envkit tune --resume {folder} --start-within TIME")
    slurm(CLUSTER, "start-node", "node2")
    again = cli("tune", "--resume", folder)
    assert again.returncode == 0, again
    assert "on 2 nodes: faster" in " ".join(again.stdout.split())


def test_what_sbatch_refuses_leaves_nothing(cli, tune, folder):
    result = cli(*tune("--sbatch", "gpus-per-node=4"))
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1), result
    assert result.stderr.startswith("envkit: sbatch refuses the job: ")
    assert not folder.exists()


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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--nodes", "2", "--exhaustive"),
            "--nodes has no effect with --exhaustive, which only measures the space on this machine; leave it out",
        ),
        (("--nodes", "0"), "--nodes: '0' is not a whole number above 0"),
        (("--nodelist", ""), "--nodelist: '' names no node; write for example node1,node2"),
    ],
)
def test_what_means_no_nodes(cli, folder, options, words):
    result = cli("tune", *options, "--output", folder)
    assert (result.returncode, result.stdout) == (2, ""), result
    assert result.stderr == f"envkit: {words}\n"
    assert not folder.exists()
