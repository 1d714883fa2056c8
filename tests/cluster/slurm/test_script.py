"""The batch script, as people read it before they submit it, and as bash and sbatch read it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from envkit.cluster.slurm.script import grace_s, render
from envkit.tuning.study import SearchSettings, TuningStudy

from tests.cluster.slurm.conftest import settings, study

FOLDER = Path("/shared/run")
TUNING = TuningStudy(study("mine"), SearchSettings(300.0, "same", 0, "/shared/tuned.yaml"), "/shared/space.yaml", False)
KINDS: dict[str, dict[str, object]] = {
    "each": {}, "joint": {"joint": True}, "fleet": {"fleet": True}, "tune": {"tuning": TUNING},
}  # fmt: skip


def options(text):
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH")]


def test_what_it_asks_for():
    text = render(settings(partition="work", options=("account=physics",)), FOLDER, "envkit-1", 2)
    assert text.startswith("#!/bin/bash\n#SBATCH ")
    for option in (
        "--job-name=envkit-1", "--nodes=2", "--exclusive", "--mem=0", "--time=15", "--partition=work", "--requeue",
        "--no-kill", "--signal=URG@60", "--account=physics", "--output=/shared/run/slurm-%j.out",
    ):  # fmt: skip
        assert option in options(text)


def test_what_was_not_asked_for_is_the_clusters_to_say():
    asked = [option.partition("=")[0] for option in options(render(settings(minutes=None), FOLDER, "envkit-1", 2))]
    assert not {"--time", "--partition", "--nodelist", "--exclude"} & set(asked)


def test_nodes_that_go_on_and_nodes_that_are_done():
    asked = options(render(settings(), FOLDER, "envkit-2", 1, ["node2"], ["node1", "node3"]))
    assert {"--nodes=1", "--nodelist=node2", "--exclude=node1,node3"} <= set(asked)


def test_it_says_what_each_node_runs():
    text = render(settings(), FOLDER, "envkit-1", 2)
    assert "# Written by envkit, to measure baseline, mine on cnn, 6 blocks.\n" in text
    assert "# Nodes read in submit.json what to measure." in text
    assert "#   envkit submit --resume=/shared/run\n" in text


@pytest.mark.parametrize("name", ["plain", "with blanks", "it's", "100%", "$HOME", 'a "b"'])
def test_any_folder(tmp_path, name):
    """bash finds the folder that was meant, and so does sbatch, for which % and quotes mean something."""
    text = render(settings(), tmp_path / name, "envkit-1", 2)
    upto = text.partition("# One task on each of")[0]
    found = subprocess.run(["bash", "-c", f'{upto}printf %s "$folder"'], capture_output=True, text=True, check=True)
    assert found.stdout == str(tmp_path / name)
    (output,) = [option for option in options(text) if option.startswith("--output")]
    words = subprocess.run(["bash", "-c", f"printf %s {output}"], capture_output=True, text=True, check=True).stdout
    assert words == f"--output={str(tmp_path / name).replace('%', '%%')}/slurm-%j.out"


def test_no_variable_gives_a_task_only_some_cpus_of_its_node():
    """srun takes -c and --threads-per-core from variables, and either would keep the step from the other CPUs."""
    head = render(settings(), FOLDER, "envkit-1", 2).partition("# One task on each of")[0]
    planted = {"SLURM_CPUS_PER_TASK": "1", "SRUN_CPUS_PER_TASK": "1", "SLURM_THREADS_PER_CORE": "1", "OTHER": "1"}
    env = {**os.environ, **planted}
    left = subprocess.run(["bash", "-c", f"{head}env"], env=env, capture_output=True, text=True, check=True).stdout
    assert [name for name in planted if f"{name}=1\n" in left] == ["OTHER"]


@pytest.mark.parametrize(("minutes", "seconds"), [(None, 60), (1, 10), (3, 30), (6, 60), (600, 60)])
def test_the_grace_is_short_where_the_limit_is(minutes, seconds):
    assert grace_s(minutes) == seconds


def test_a_fleet_is_a_job_of_one_node_each():
    asked = options(render(settings(fleet=True), FOLDER, "envkit-1", 3, ["node1", "node2", "node9"]))
    assert {"--nodes=1", "--output=/shared/run/slurm-%j.out"} <= set(asked)
    assert not [option for option in asked if option.startswith(("--nodelist", "--exclude="))]


@pytest.mark.parametrize("kind", KINDS)
def test_bash_can_read_each_kind_and_all_values_are_filled_in(kind):
    text = render(settings(**KINDS[kind]), FOLDER, "envkit-1", 2, ["node1", "node2"])
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    assert "@{" not in text
    assert text.endswith('\nexit "$status"\n')


def test_a_training_on_all_nodes_together_has_one_runner_on_the_first():
    text = render(settings(joint=True), FOLDER, "envkit-1", 2)
    assert "# The runner, on the first node, which starts workers on all of them.\n" in text
    check, run = text.index("--check"), text.index("    on_first_node 'cd")
    assert check < run
