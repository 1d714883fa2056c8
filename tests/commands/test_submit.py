"""``runner submit`` before there is a job: what it refuses, and the script that it prints. Jobs: tests/engines."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from runner import history, record
from tests.records import run_events, write
from tests.slurm.conftest import settings


@pytest.fixture
def dry(cli):
    """The batch script that would be submitted."""

    def run(*options, profiles=("intel-omp",), **surroundings):
        result = cli("submit", *profiles, "--dry-run", *options, **surroundings)
        assert (result.returncode, result.stderr) == (0, ""), result
        return result.stdout

    return run


def asked(text):
    return [line.removeprefix("#SBATCH --") for line in text.splitlines() if line.startswith("#SBATCH")]


def measured(text):
    """What the script says that each node runs."""
    (line,) = [line for line in text.splitlines() if line.startswith("#   runner bench ")]
    return shlex.split(line.removeprefix("#   "))


def test_a_dry_run_prints_a_script_and_leaves_nothing(dry, tmp_path):
    folder = tmp_path / "run"
    text = dry("--nodes", 2, "--partition", "work", "--output", folder)
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    assert {"nodes=2", "partition=work", "time=15"} <= set(asked(text))
    assert measured(text) == [
        "runner",
        "bench",
        "intel-omp",
        "--engine=local",
        "--data=DATA",
        f"--output={folder}/NODE",
    ]
    assert not folder.exists()


def test_options_of_the_measurement_go_to_each_node_and_mean_the_same_there(dry, tmp_path, write_profile):
    profile = write_profile("mine")
    options = ("--budget", "90s", "--margin", "1%", "--steps", 5, "--force", "--keep-env", "A", "--keep-env", "B")
    options = (*options, "--python", "bin/python", "--data", "synthetic")
    words = measured(dry(*options, profiles=("intel-omp", "mine.yaml"), cwd=tmp_path))
    assert words[2:4] == ["intel-omp", str(profile)]
    assert {
        "--budget=90.0", "--margin=0.01", "--steps=5", "--force", "--keep-env=A", "--keep-env=B", "--data=synthetic",
        f"--python={tmp_path}/bin/python",
    } <= {*words}  # fmt: skip


def test_a_command_of_ones_own(dry):
    words = measured(dry("--command", "python 'my train.py'", "--metric", "took ([0-9.]+)"))
    assert {"--command=python 'my train.py'", "--metric=took ([0-9.]+)"} <= set(words)
    assert not [word for word in words if word.startswith("--data")]


def test_a_workload_that_makes_its_data_and_its_modes(dry):
    modes = ("--precision", "bf16-autocast", "--compile", "--channels-last", "--scale", 2, "--half-width", "1%")
    words = measured(dry("--workload", "segmentation", *modes))
    assert {
        "--workload=segmentation", "--precision=bf16-autocast", "--compile", "--channels-last", "--scale=2",
        "--half-width=0.01",
    } <= {*words}  # fmt: skip
    assert not [word for word in words if word.startswith("--data")]


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (("--time", "90s"), ["time=2"]),
        (("--time", "2h"), ["time=120"]),
        (("--budget", "1h"), ["time=85"]),
        (("--full",), []),
        (("--blocks", "9"), []),
    ],
)
def test_time_limit(dry, options, limit):
    """Of what takes nobody knows how long, the partition says."""
    assert [one for one in asked(dry(*options)) if one.startswith("time=")] == limit


def test_nodes_by_name(dry):
    assert {"nodes=2", "nodelist=node1,node2"} <= set(asked(dry("--nodelist", "node1,node2")))
    assert {"nodes=3", "nodelist=node1"} <= set(asked(dry("--nodelist", "node1", "--nodes", 3)))


def test_the_partition_of_the_users_variable(dry):
    assert "partition=fast" in asked(dry(SBATCH_PARTITION="fast"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "submit needs a PROFILE; there are: "),
        (("no-such",), "no profile 'no-such' in "),
        (
            ("intel-omp", "--engine", "docker"),
            "--engine docker: on nodes workers are started by local or apptainer; choose",
        ),
        (("intel-omp", "--sif", "x.sif"), "--sif means nothing to the engine local; leave it out"),
        (("intel-omp", "--nodes", 1, "--nodelist", "a,b"), "--nodes 1 is less than the 2 that --nodelist names; leave"),
        (
            ("intel-omp", "--sbatch", "time=5"),
            "--sbatch time=5: the batch script sets time itself; give --time",
        ),
        (
            ("intel-omp", "--sbatch", "export=NONE"),
            "--sbatch export=NONE: the batch script sets export itself",
        ),
        (
            ("intel-omp", "--sbatch=--account=a"),
            "--sbatch '--account=a': must be a long option of sbatch",
        ),
        (
            ("intel-omp", "--sbatch", "account=a\nrm"),
            "--sbatch 'account=a\\nrm': must be a long option of",
        ),
        (
            ("intel-omp", "--engine", "apptainer", "--sif", "/none.sif"),
            "/none.sif: No such file or directory; build it",
        ),
        (("intel-omp", "--full", "--steps", 3), "--steps means nothing with --full"),
        (("intel-omp", "--workload", "all"), "--workload all means nothing to runner submit; name one of: cnn, "),
        (
            ("intel-omp", "--workload", "translation", "--channels-last"),
            "--channels-last means nothing to translation, which has no images",
        ),
        (
            ("intel-omp", "--workload", "loader", "--data", "x"),
            "--data x: means nothing to loader, which makes its data itself",
        ),
        (("intel-omp", "--output", "a\nb"), "--output '"),
    ],
)
def test_refused(refused, options, said):
    assert refused("submit", *options, "--dry-run").removeprefix("runner: ").startswith(said)


def test_sbatch_is_missing(refused, tmp_path):
    said = refused("submit", "intel-omp", "--output", tmp_path / "run", PATH="/nowhere")
    assert said.startswith(
        "runner: sbatch is not found: this machine can't submit to a Slurm cluster; log in to one that"
    )
    assert not (tmp_path / "run").exists()


# --- a submission that is there ---


@pytest.fixture
def submission(tmp_path):
    """One of which all nodes have measured: nothing is asked of Slurm."""
    folder = tmp_path / "submission"
    document = settings(nodes=2).to_json()
    folder.mkdir()
    events = [{"event": "submit", "time": 1.0, "schema": record.SCHEMA, "settings": document}]
    write(folder, events)
    for name in ("node1", "node2"):
        write(folder / name, run_events(ended="complete"))
        (folder / name / "node.json").write_text('{"job": "17", "began": 1.0, "ended": 2.0, "status": 0}')
    return folder


def test_a_submission_that_is_done_is_reported_again(cli, submission):
    result = cli("submit", "--resume", submission)
    assert result.returncode == 0, result
    head, *rows = [line.split() for line in result.stdout.splitlines()][:3]
    assert head[:3] == ["node", "profile", "samples"]
    assert [row[:3] for row in rows] == [["node1", "mine", "7"], ["node2", "mine", "7"]]
    assert result.stdout.count("FASTER") == 2
    document = json.loads(cli("submit", "--resume", submission, "--json").stdout)
    assert [(one["node"], one["state"]) for one in document["nodes"]] == [("node1", "measured"), ("node2", "measured")]
    assert document == json.loads((submission / "summary.json").read_text())


@pytest.mark.parametrize("option", [("--nodes", 3), ("--budget", "5s"), ("--engine", "local"), ("--seed", 1)])
def test_what_it_was_started_with_stays(refused, submission, option):
    said = refused("submit", "--resume", submission, *option)
    assert said == f"runner: {option[0]} can't be given with --resume: the submission keeps what it was started with"


def test_a_folder_without_a_submission(refused, tmp_path):
    assert "record.jsonl: can't be read: No such file" in refused("submit", "--resume", tmp_path)
    run = write(tmp_path / "run", run_events())
    assert "is not the record of a submit" in refused("submit", "--resume", run)


def test_other_commands_know_a_submission(cli, refused, submission):
    assert "is the record of a submission; give the folder of a node's run" in refused("report", submission)
    assert "is the record of a submission" in refused("bench", "--resume", submission)
    assert cli("report", submission / "node1").returncode == 0
    assert history.folders(submission.parent) == [submission / "node1", submission / "node2"]
    assert history.folders(submission) == [submission / "node1", submission / "node2"]
