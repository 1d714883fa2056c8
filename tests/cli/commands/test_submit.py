"""``envkit submit`` before there is a job: what it refuses, and the script that it prints. Jobs: tests/engines."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
from envkit.analysis import recorded_runs
from envkit.bench import record
from envkit.bench.record import Record, RecordFull
from envkit.cluster.slurm.node_status import Outcome
from envkit.cluster.slurm.settings import Settings
from envkit.engines.slurm import client
from envkit.messages import Printed
from envkit.worker.modes import Options

from tests.cli.commands.conftest import words
from tests.cluster.slurm.conftest import submission_in
from tests.records import run_events, write


@pytest.fixture
def dry(cli):
    """The batch script that would be submitted."""

    def run(*options, profiles=("intel-omp",), **surroundings):
        result = cli("submit", *profiles, "--dry-run", *options, **surroundings).ended(0, stderr="")
        return result.stdout

    return run


def asked(text):
    return [line.removeprefix("#SBATCH --") for line in text.splitlines() if line.startswith("#SBATCH")]


@pytest.fixture
def measured(cli):
    """The study of what each node would measure, and whether all train together in one run."""

    def run(*options, profiles=("intel-omp",), **surroundings):
        result = cli("submit", *profiles, "--dry-run", "--json", *options, **surroundings).ended(0, stderr="")
        found = json.loads(result.stdout)
        made = Settings.from_json(found["settings"])
        return made.study, made.joint

    return run


def test_a_dry_run_prints_a_script_and_leaves_nothing(dry, measured, tmp_path):
    folder = tmp_path / "run"
    options = ("--nodes", 2, "--partition", "work", "--output", folder)
    assert {"nodes=2", "partition=work", "time=14"} <= set(asked(dry(*options)))
    assert f"#   envkit submit --resume={folder}\n" in dry(*options)
    study, joint = measured(*options)
    assert [(arm.profile, arm.engine) for arm in study.arms] == [("baseline", "local"), ("intel-omp", "local")]
    assert (study.data, joint) == ("DATA", False)
    assert not folder.exists()


def test_options_of_the_measurement_go_to_each_node_and_mean_the_same_there(measured, tmp_path, write_profile):
    profile = write_profile("mine")
    options = ("--budget", "90s", "--margin", "1%", "--steps", 5, "--force", "--keep-env", "A", "--keep-env", "B")
    options = (*options, "--python", "bin/python", "--data", "synthetic")
    found, _ = measured(*options, profiles=("intel-omp", "mine.yaml"), cwd=tmp_path)
    assert [arm.profile for arm in found.arms] == ["baseline", "intel-omp", str(profile)]
    assert (found.stopping.budget_s, found.stopping.margin, found.training.steps, found.force) == (90, 0.01, 5, True)
    assert (found.keep_env, found.data) == (("A", "B"), "synthetic")
    assert found.engine_options.python == f"{tmp_path}/bin/python"


@pytest.mark.parametrize(("engine", "option"), [("apptainer", "sif"), ("enroot", "sqsh")])
def test_the_file_of_an_image_has_one_name_on_all_nodes(cli, tmp_path, engine, option):
    """And its digest is kept, against which each node holds its own."""
    (tmp_path / "x").write_bytes(b"hsqs")
    given = ("--engine", engine, f"--{option}", "x")
    result = cli("submit", "intel-omp", "--dry-run", "--json", *given, cwd=tmp_path)
    found = Settings.from_json(json.loads(result.stdout)["settings"])
    assert found.study.engine_options.to_json() == {option: f"{tmp_path}/x"}
    assert found.digest == f"sha256:{hashlib.sha256(b'hsqs').hexdigest()}"


def test_a_users_command(measured):
    found, _ = measured("--metric", "took ([0-9.]+)", "--loss-metric", "$.loss", "--", "python", "my train.py")
    own = found.user_command
    assert (own.argv, own.metric, own.loss_metric) == (("python", "my train.py"), "took ([0-9.]+)", "$.loss")
    assert found.data is None


def test_a_workload_that_makes_its_data_and_its_modes(measured):
    modes = ("--precision", "bf16-autocast", "--compile", "--channels-last", "--scale", 2, "--half-width", "1%")
    found, _ = measured("--workload", "segmentation", *modes)
    assert (found.workload, found.stopping.precision, found.data) == ("segmentation", 0.01, None)
    assert found.options == Options("bf16-autocast", compile=True, channels_last=True, scale=2)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (("--time-limit", "90s"), ["time=2"]),
        (("--time-limit", "2h"), ["time=120"]),
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
        ((), "submit needs a PROFILE; envkit profiles lists them"),
        (("no-such",), "no profile 'no-such' in "),
        (("intel-omp", "--engine", "docker"),
         "--engine docker: on nodes workers are started by local, apptainer or enroot; "),
        (("intel-omp", "--sif", "x.sif"), "--sif has no effect on the engine local; leave it out"),
        (("intel-omp", "--nodes", 1, "--nodelist", "a,b"), "--nodes 1 is less than the 2 that --nodelist names; leave"),
        (("intel-omp", "--sbatch", "time=5"),
         "--sbatch time=5: the batch script sets time itself; leave it out, and give --time-limit"),
        (("intel-omp", "--sbatch", "clusters=b"), "--sbatch clusters=b: the batch script sets clusters itself; leave"),
        (("intel-omp", "--sbatch", "export=NONE"), "--sbatch export=NONE: the batch script sets export itself"),
        (("intel-omp", "--sbatch=--account=a"), "--sbatch '--account=a': must be a long option of sbatch"),
        (("intel-omp", "--sbatch", "account=a\nrm"), "--sbatch 'account=a\\nrm': must be a long option of"),
        (("intel-omp", "--engine", "apptainer", "--sif", "/none.sif"), "/none.sif: No such file or directory; build"),
        (("intel-omp", "--engine", "enroot", "--sqsh", "/none.sqsh"),
         "/none.sqsh: No such file or directory; build it with: make sqsh, or name another"),
        (("intel-omp", "--engine", "enroot", "--sif", "x.sif"), "--sif has no effect on the engine enroot; leave it"),
        (("intel-omp", "--engine", "enroot", "--cpus", "2"), "--cpus has no effect on the engine enroot; leave it out"),
        (("intel-omp", "--full", "--steps", 3), "--steps has no effect with --full"),
        (("intel-omp", "--workload", "all"), "--workload all: envkit submit trains one workload; name one of: cnn, "),
        (("intel-omp", "--workload", "translation", "--channels-last"), "--channels-last has no effect on translation"),
        (("intel-omp", "--workload", "loader", "--data", "x"), "--data x: has no effect on loader, which makes its da"),
        (("intel-omp", "--output", "a\nb"), "--output '"),
        # ranks, and what shares no batches
        (("intel-omp", "--nodes", 2, "--nproc", 3),
         "--nodes 2 --nproc 3: a batch of cnn has 64 images, which 6 ranks can't share evenly; give one of: 1, 2, "),
        (("intel-omp", "--nodes", 3, "--nproc", 1),
         "--nodes 3 --nproc 1: a batch of cnn has 64 images, which 3 ranks can't share evenly; use another number"),
        (("intel-omp", "--nodes", 2, "--nproc", 2, "--workload", "loader"),
         "--nodes 2 --nproc 2: ranks can't share the batches of loader; leave it "),
        (("intel-omp", "--nodes", 2, "--nproc", 2, "--full"), "--nproc 2 has no effect with --full, which trains each"),
        (("intel-omp", "--nodes", 2, "--nproc", 1, "--", "python", "x.py"),
         "--nproc 1 has no effect on your own command; leave it out"),
        (("two.yaml", "--nodes", 2, "--nproc", 1), "profile 'two' has 2 ranks of its own; leave --nproc out"),
        # which measure one by one
        (("intel-omp", "--nodes", 2, "--weak"), "--weak: the batch grows with the ranks, and there is one; add --npro"),
        (("intel-omp", "--nodes", 64, "--nproc", 64, "--workload", "translation", "--weak"),
         "--weak: 4096 ranks with 32 sentences each need more than the 4,096 of translation; train on 128 ra"),
        (("three.yaml",), "profile 'three', ranks: 3: a batch of cnn has 64 images, which 3 ranks can't share evenly"),
    ],
)  # fmt: skip
def test_refused(refused, write_profile, tmp_path, options, said):
    for number, name in ((2, "two"), (3, "three")):
        write_profile(name, f"ranks: {number}\n")
    assert refused("submit", *options, "--dry-run", cwd=tmp_path).startswith(f"envkit: {said}")


def test_sbatch_is_missing(refused, tmp_path):
    said = refused("submit", "intel-omp", "--output", tmp_path / "run", PATH="/nowhere")
    assert said.startswith("envkit: sbatch is not found: this machine can't submit to a Slurm cluster; log in to one ")
    assert not (tmp_path / "run").exists()


# --- a submission that is there ---


@pytest.fixture
def submission(tmp_path):
    """One of which all nodes have measured: nothing is asked of Slurm."""
    folder = submission_in(tmp_path / "submission", nodes=2)
    for name in ("node1", "node2"):
        Outcome("17", 1.0, 2.0, 0).write(write(folder / name, run_events(ended="complete")))
    return folder


def test_a_submission_that_is_done_is_reported_again(cli, submission):
    result = cli("submit", "--resume", submission).ended(0)
    head, *rows = [line.split() for line in result.stdout.splitlines()][:3]
    assert head[:3] == ["node", "profile", "samples"]
    assert [row[:3] for row in rows] == [["node1", "mine", "7"], ["node2", "mine", "7"]]
    assert (result.stdout.count("FASTER"), result.stdout.count("faster")) == (0, 3)
    assert "mine 2.00x baseline speed (95% CI " in words(result.stdout)
    assert "on 2 nodes: faster; speedups of nodes differ by" in words(result.stdout)
    document = json.loads(cli("submit", "--resume", submission, "--json").stdout)
    assert [(one["node"], one["state"]) for one in document["nodes"]] == [("node1", "measured"), ("node2", "measured")]
    assert document == json.loads((submission / "summary.json").read_text())


@pytest.mark.parametrize("option", [("--nodes", 3), ("--seed", 1)])
def test_what_it_was_started_with_stays(refused, submission, option):
    said = refused("submit", "--resume", submission, *option)
    assert said == (
        f"envkit: {option[0]} can be given with --resume only if the whole command is given again; add the PROFILE "
        "and its options, or give --resume alone"
    )


def test_a_folder_without_a_submission(refused, tmp_path):
    assert f"{tmp_path}/record.jsonl: can't be read" in refused("submit", "--resume", tmp_path)
    run = write(tmp_path / "run", run_events())
    assert "is not the record of a submit" in refused("submit", "--resume", run)


def test_other_commands_know_a_submission(cli, refused, submission):
    for command in ("bench", "plan"):
        assert "is the record of a submission" in refused(command, "--resume", submission)
    assert cli("report", submission / "node1").returncode == 0
    assert recorded_runs.folders(submission.parent) == [submission / "node1", submission / "node2"]
    assert recorded_runs.folders(submission) == [submission / "node1", submission / "node2"]
    rows = json.loads(cli("export", submission, "--format", "json").stdout)
    assert [row["run"] for row in rows] == [str(submission / "node1")] * 14 + [str(submission / "node2")] * 14
    assert "2 nodes of this kind" in words(cli("fleet", "report", submission).stdout)


def test_its_report_is_that_of_all_nodes(cli, refused, submission):
    result = cli("report", submission).ended(0, stderr="")
    assert result.stdout == cli("submit", "--resume", submission).stdout
    document = json.loads(cli("report", submission, "--json").stdout)
    assert [one["state"] for one in document["nodes"]] == ["measured", "measured"]
    said = refused("report", submission, "--details")
    assert said.startswith(f"envkit: --details: {submission} has 2 runs; give the folder of one, as {submission}/node")


def test_the_report_of_one_run_is_that_runs(cli, submission, tmp_path, undrawn):
    shutil.rmtree(submission / "node2")
    assert cli("report", submission).stdout == cli("report", submission / "node1").stdout
    assert cli("report", submission, "--html", tmp_path / "page.html").returncode == 0


def test_the_report_of_what_has_not_begun(refused, submission):
    for name in ("node1", "node2"):
        shutil.rmtree(submission / name)
    assert refused("report", submission) == (
        f"envkit: {submission}: nothing was measured yet; follow it with: envkit submit --resume {submission}"
    )


def test_a_node_that_did_not_come_to_its_end_is_named_in_the_report(cli, submission):
    place = write(submission / "node2", run_events(ended="interrupted"))
    Outcome("17", 1.0, 2.0, 130, Printed("the time limit was near")).write(place)
    result = cli("report", submission)
    assert (result.returncode, result.stderr) == (0, "envkit: node2: the time limit was near\n")


def test_history_lists_a_submission_once(cli, submission):
    lines = cli("history", submission.parent).stdout.splitlines()
    assert len(lines) == 4
    assert [("mine" in line, "faster, " in line) for line in lines[1:3]] == [(True, True)] * 2
    assert lines[1].rstrip().endswith("faster, node1")
    assert "faster, node2" in lines[2]
    assert lines[3].split() == ["2", "nodes,", "local,", "cnn,", "7", "blocks,", "complete;", "submission"]
    (one,) = json.loads(cli("history", submission.parent, "--json").stdout)["runs"]
    assert (one["folder"], one["profiles"], len(one["nodes"])) == (str(submission), ["mine"], 2)
    assert one["nodes"][1]["folder"] == str(submission / "node2")


def test_history_counts_many_nodes(cli, submission):
    for number in range(3, 12):
        write(submission / f"node{number}", run_events(ended="complete"))
    lines = cli("history", submission.parent, "--limit", 1).stdout.splitlines()
    assert [line.split()[-1] for line in lines[1:5]] == ["node1", "node2", "node3", "node4"]
    assert lines[5].split() == ["and", "7", "more", "nodes"]
    assert "11 nodes, local" in lines[6]


# --- training on nodes together ---


def test_ranks_on_several_nodes_are_one_run(dry, measured, tmp_path):
    options = ("--nodes", 2, "--nproc", 4, "--output", tmp_path / "run")
    found, joint = measured(*options)
    assert (found.nodes, found.ranks, joint) == (2, 4, True)
    # of two profiles and one process, on all CPUs and on one rank's
    assert [arm.name for arm in found.arms] == ["baseline", "intel-omp", "1 process", "1 process on 1/4"]
    assert (found.stopping.budget_s, found.stopping.open_ended) == (480, True)
    assert "time=20" in asked(dry(*options))
    assert measured(*options, "--blocks", 3)[0].stopping.blocks == 3


def test_the_batch_grows_with_the_ranks_of_all_nodes(measured):
    found, _ = measured("--nodes", 3, "--nproc", 4, "--weak")  # 12 could not share the batch of one process
    assert (found.nodes, found.ranks, found.weak) == (3, 4, True)
    assert [arm.name for arm in found.arms] == ["baseline", "intel-omp", "1 process on 1/4"]


def test_ranks_on_one_node_are_a_run_like_others(measured, tmp_path):
    found, joint = measured("--nproc", 4, "--output", tmp_path / "run")
    assert (found.nodes, found.ranks, joint) == (1, 4, False)


def test_a_cluster_without_a_default_partition(refused, slurm, monkeypatch, tmp_path):
    monkeypatch.setattr(client, "partitions", lambda: [client.Partition("long", False, 2, "node[1-2]")])
    line = refused("submit", "intel-omp", "--data", "synthetic", "--output", tmp_path / "run")
    assert line.startswith("envkit: this cluster has no default partition; name one with --partition; ")
    assert not (tmp_path / "run").exists()


def test_slurm_that_does_not_answer_may_have_taken_the_job(refused, slurm, monkeypatch, tmp_path):
    def no_answer(*_):
        raise client.NoAnswer(Printed("sbatch did not end within 120 s"))

    monkeypatch.setattr(client, "submit", no_answer)
    folder = tmp_path / "run"
    assert refused("submit", "intel-omp", "--data", "synthetic", "--output", folder) == (
        "envkit: sbatch did not end within 120 s; Slurm may have accepted the job anyway: check and continue with: "
        f"envkit submit --resume {folder}"
    )
    assert record.read(folder, "submit")[-1]["event"] == "submitting"


@pytest.mark.parametrize(
    ("at", "fix"),
    [
        ("submit", "make room, then start it again"),
        ("submitted", "what was recorded is safe: make room, then envkit submit --resume "),
    ],
)
def test_a_full_disk(refused, slurm, monkeypatch, tmp_path, at, fix):
    """What was submitted by then goes on, and the line says how to follow it."""
    write = Record._write

    def full(self, document):
        if document["event"] == at:
            raise RecordFull(self.path.parent, "No space left on device")
        return write(self, document)

    monkeypatch.setattr(Record, "_write", full)
    folder = tmp_path / "run"
    line = refused("submit", "intel-omp", "--data", "synthetic", "--output", folder)
    why = "can't be written: No space left on device"
    assert line.startswith(f"envkit: {folder}/record.jsonl: {why}; {fix}")
    assert line.endswith(f"envkit submit --resume {folder}") == (at == "submitted")


def test_a_script_that_submits_is_told_the_job(cli, refused, slurm, tmp_path):
    options = ("submit", "intel-omp", "--data", "synthetic", "--detach", "--output", tmp_path / "run")
    result = cli(*options, "--json")
    assert json.loads(result.stdout) == {"job": "17", "record": str(tmp_path / "run")}
    assert refused(*options, "--start-within", "30m").startswith("envkit: --start-within has no effect with --detach")
