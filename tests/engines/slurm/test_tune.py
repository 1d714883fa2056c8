"""Tuning by both nodes of a real Slurm cluster: nodes die here."""

from __future__ import annotations

import json
import re

import pytest
from envkit.bench import record
from envkit.profiles import profile

from tests.engines.slurm.cluster import CLUSTER, REAL_S, ended, kill, last_lines, slurm, trials, waiting_for
from tests.engines.test_tune import SCRIPT

# One candidate: that several are searched needs no container.
SPACE = """\
name: python
title: What Python reads
parameters:
  objects: {variable: PYTHONMALLOC, values: [unset, malloc]}
"""


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


def test_a_script_of_the_user_s_own_is_tuned_for_on_both_nodes_under_apptainer(
    cli, engine_options, open_folder, surroundings, project
):
    place = open_folder / "runs" / "tune-nodes"
    place.mkdir(0o755)
    (place / "train.py").write_text(SCRIPT)
    (place / "python.yaml").write_text(SPACE)

    def tune(budget, output):
        return cli(
            "tune", "--nodes", 2, "--partition", "work", *engine_options("apptainer"),
            "--metric", r"took ([\d.]+) s", "--warmup-lines", 2, "--space", place / "python.yaml", "--space-only",
            "--budget", budget, "--profile", place / "mine.yaml", "--output", place / output, "--json",
            "--", "python", "train.py", cwd=place, timeout_s=REAL_S, **surroundings,
        )  # fmt: skip

    result = tune("50s", "tuning")
    if too_small := re.search(r"no room for a single candidate .*give --budget (\d+)s", result.stderr):
        result = tune(f"{3 * int(too_small[1]) // 2}s", "again")  # the machine is busy
    assert result.returncode == 0, result
    found = json.loads(result.stdout)
    assert (found["best"], found["verdict"]["nodes"]) == ("tuned", ["node1", "node2"])
    assert profile.load(str(place / "mine.yaml")).env == {"PYTHONMALLOC": "malloc"}
