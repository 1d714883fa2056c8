"""``envkit fleet report``: what it prints and writes, its exit statuses, and bad input."""

from __future__ import annotations

import json
import shutil

import pytest
from envkit.bench import record

from tests.cli.commands.conftest import words
from tests.cluster.fleet.nodes import fleet, node
from tests.cluster.slurm.conftest import study, submission_in


def test_slow_nodes_and_what_they_share(cli, tmp_path):
    fleet(tmp_path, 30, fingerprint={"microcode": "0x2b"})
    for name in ("n04", "n05", "n06"):
        node(tmp_path, name, 0.3, fingerprint={"microcode": "0x24"})
    result = cli("fleet", "report", tmp_path).ended(1, stderr="")
    text = words(result.stdout)
    assert text.startswith("SLOW 3 of 30 nodes")
    assert "n04: microcode 0x24 (most: 0x2b)" in text
    assert "microcode 0x2b 27 0" in text
    assert "0x24 3 3" in text
    assert "Counts name no cause" in text
    assert f"records {tmp_path}" in text
    lines = result.stdout.splitlines()
    assert max(len(line.rstrip()) for line in lines[:-1]) <= 80


def test_no_slow_node(cli, tmp_path):
    result = cli("fleet", "report", fleet(tmp_path, 8)).ended(0, stderr="")
    assert result.stdout.startswith("NO SLOW NODE  none of 8 nodes is certain to be slow")
    assert "mine, workload cnn: begun 2026-" in result.stdout


def test_a_fleet_of_two_is_shown_and_not_judged(cli, tmp_path):
    fleet(tmp_path, 2, slower={"n01": 0.3})
    result = cli("fleet", "report", tmp_path).ended(0)
    text = words(result.stdout)
    assert text.startswith("NOT JUDGED fewer than 6 nodes of one kind can be compared")
    assert "n01 +1" in text


def test_a_node_with_another_image_is_left_out_and_that_is_a_status(cli, tmp_path):
    fleet(tmp_path, 8, digest="sha256:" + "a" * 64)
    node(tmp_path, "n08", digest="sha256:" + "b" * 64)
    result = cli("fleet", "report", tmp_path).ended(1)
    text = words(result.stdout)
    assert "LEFT OUT 1 node can't be compared: n08: measured something else: image digest sha256:bbb" in text
    assert text.startswith("NO SLOW NODE none of 8 nodes")


def test_a_truncated_record_counts_as_far_as_it_goes(cli, tmp_path):
    fleet(tmp_path, 8)
    path = tmp_path / "n03" / record.FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:15]) + lines[15][:40])
    result = cli("fleet", "report", tmp_path).ended(0)
    assert "1 node did not finish; what was measured counts: n03" in words(result.stdout)
    assert "7 to 10 samples each" in words(result.stdout)


def test_margin(cli, tmp_path):
    fleet(tmp_path, 12, slower={"n02": 0.1}, noise=0.003)
    assert cli("fleet", "report", tmp_path).returncode == 1
    result = cli("fleet", "report", tmp_path, "--margin", "20%").ended(0)
    assert "beyond +20.0% (--margin)" in words(result.stdout)


def test_a_profile_of_several(cli, tmp_path, refused):
    fleet(tmp_path, 6, profiles=("baseline", "a", "b"))
    line = refused("fleet", "report", tmp_path)
    assert line.endswith("n00: measured several profiles (a, b): choose one with --profile")
    assert "b, workload cnn" in cli("fleet", "report", tmp_path, "--profile", "b").stdout


def test_json_and_files(cli, tmp_path):
    place = fleet(tmp_path / "fleet", 12, slower={"n02": 0.3})
    html, text = tmp_path / "fleet.html", tmp_path / "fleet.prom"
    result = cli("fleet", "report", place, "--html", html, "--prometheus", text).ended(1, stdout="")
    assert result.stderr.splitlines() == [f"envkit: written: {html}", f"envkit: written: {text}"]
    assert "SLOW  1 of 12 nodes" in html.read_text()
    assert 'envkit_fleet_nodes{verdict="slow"} 1\n' in text.read_text()
    read = json.loads(cli("fleet", "report", place, "--json").stdout)
    assert read["nodes_by_verdict"] == {"ok": 11, "not certain": 0, "slow": 1, "not judged": 0, "left out": 0}


def test_many_left_out_are_counted(cli, tmp_path):
    fleet(tmp_path, 6)
    for number in range(30):
        (tmp_path / f"x{number:02}").mkdir()
    text = words(cli("fleet", "report", tmp_path).stdout)
    assert "30 nodes can't be compared" in text
    assert "and 20 more; all of them: --html FILE or --json" in text


def test_bad_input(refused, tmp_path):
    assert refused("fleet", "report", tmp_path / "none") == (
        f"envkit: {tmp_path}/none: can't be read: No such file or directory; give a folder with a folder per node"
    )
    assert "holds no records" in refused("fleet", "report", tmp_path)
    fleet(tmp_path, 2, samples=3)
    line = refused("fleet", "report", tmp_path)
    assert line.endswith("none of its 2 nodes can be used; n00: has 3 samples only, and 6 are needed")
    (tmp_path / "file").write_text("x")
    assert "Not a directory" in refused("fleet", "report", tmp_path / "file")


def test_the_help_has_the_exit_statuses_of_each_of_its_uses(cli):
    said = words(cli("fleet", "--help").stdout)
    assert (
        "1 a worker failed, or a node is slow, was not measured or can't be compared, or (diff) became slower" in said
    )


def test_a_file_that_cannot_be_written(refused, tmp_path):
    fleet(tmp_path, 6)
    assert "can't be written" in refused("fleet", "report", tmp_path, "--prometheus", tmp_path / "no/such/folder")


# --- measuring; jobs themselves: tests/engines ---

SUBMITTED = ("--data", "synthetic", "--detach", "--output")


def test_a_dry_run_prints_the_script_of_a_node(cli, tmp_path):
    options = ("--nodelist", "node1,node2,node7", "--dry-run", "--output", tmp_path / "run", "--margin", "5%")
    result = cli("fleet", "intel-omp", *options, "--html", tmp_path / "page.html").ended(0, stderr="")
    asked = [line.removeprefix("#SBATCH --") for line in result.stdout.splitlines() if line.startswith("#SBATCH")]
    assert {"nodes=1", f"output={tmp_path}/run/slurm-%j.out"} <= set(asked)
    document = json.loads(cli("fleet", "intel-omp", *options, "--json").stdout)
    assert document["settings"]["study"]["stopping"]["margin"] == 0.05
    assert "page.html" not in result.stdout
    assert not (tmp_path / "run").exists()


def test_each_node_that_is_in_service_is_given_a_job(cli, slurm, run_folder):
    submitted, states = slurm
    states["node2"] = "drained"
    result = cli("fleet", "intel-omp", "--nodelist", "node1,node2", *SUBMITTED, run_folder).ended(0)
    assert result.stderr == "envkit: left out: node2: Slurm says drained (planted)\n"
    assert [command[2] for command in submitted] == ["--nodelist=node1"]
    first, submitting, _ = record.read(run_folder, "submit")
    assert first["settings"]["nodelist"] == ["node1", "node2"]
    assert (submitting["wanted"], submitting["out"]) == (["node1"], {"node2": "drained (planted)"})


def test_without_names_a_fleet_is_all_nodes_that_are_in_service(cli, slurm, run_folder):
    submitted, states = slurm
    states["node2"] = "down*"
    result = cli("fleet", "intel-omp", *SUBMITTED, run_folder)
    assert result.stderr == "envkit: left out: node2: Slurm says down and does not respond (planted)\n"
    assert [command[2] for command in submitted] == ["--nodelist=node1", "--nodelist=node3"]
    assert record.first(run_folder, "submit")["settings"]["nodes"] == 2


def test_no_node_is_in_service(refused, slurm, tmp_path):
    _, states = slurm
    states |= dict.fromkeys(states, "drained")
    options = ("--nodelist", "node1,node3", "--data", "synthetic", "--output", tmp_path / "run")
    assert refused("fleet", "intel-omp", *options) == (
        "envkit: none of the nodes is in service (node1, node3: Slurm says drained (planted)); wait, or name others"
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "fleet needs a PROFILE; envkit profiles lists them"),
        (
            ("intel-omp", "--nodelist", "a", "--workload", "all"),
            "--workload all: envkit fleet trains one workload; name",
        ),
        (("intel-omp", "--nodelist", "a", "--full"), "--full trains once, and a node is judged by 6 samples at least"),
        (("intel-omp", "--nodelist", "a", "--blocks", "5"), "--blocks 5: a node is judged by 6 samples at least; give"),
        (("intel-omp", "--nodelist", "a", "--sbatch", "hold"), "--sbatch hold: the batch script sets hold itself; lea"),
    ],
)
def test_refused(refused, options, said):
    assert refused("fleet", *options, "--dry-run").removeprefix("envkit: ").startswith(said)


@pytest.mark.parametrize("option", ["--html", "--prometheus"])
def test_a_page_that_can_not_be_written_is_refused_before_anything_is_measured(refused, slurm, tmp_path, option):
    submitted, _ = slurm
    options = ("--data", "synthetic", "--output", tmp_path / "run")
    for path, why in ((tmp_path / "none/page", "No such file or directory"), (tmp_path, "Is a directory")):
        assert refused("fleet", "intel-omp", option, path, *options) == f"envkit: {path}: can't be written: {why}"
    assert submitted == []
    assert not (tmp_path / "run").exists()


@pytest.fixture
def submission(tmp_path):
    """One of which all nodes have measured: nothing is asked of Slurm."""
    names = tuple(f"n{number:02}" for number in range(8))
    folder = fleet(submission_in(tmp_path / "submission", nodes=8, nodelist=names, fleet=True), 8, slower={"n03": 0.4})
    for name in names:
        (folder / f"{name}/node.json").write_text('{"job": "17", "began": 1.0, "ended": 2.0, "status": 0}')
    return folder


def test_a_fleet_that_was_measured_is_reported_again(cli, submission, tmp_path):
    text = tmp_path / "fleet.prom"
    result = cli("fleet", "--resume", submission, "--prometheus", text)
    assert (result.returncode, result.stderr) == (1, f"envkit: written: {text}\n")
    assert result.stdout.startswith("SLOW  1 of 8 nodes")
    assert 'envkit_fleet_nodes{verdict="slow"} 1\n' in text.read_text()
    assert cli("fleet", "report", submission).stdout == result.stdout
    document = json.loads(cli("fleet", "--resume", submission, "--json").stdout)
    assert document["nodes_by_verdict"]["slow"] == 1
    assert [one["state"] for one in document["submission"]["nodes"]] == ["measured"] * 8


def test_nodes_that_never_began_are_in_the_report(cli, submission):
    shutil.rmtree(submission / "n03")
    shutil.rmtree(submission / "n05")
    result = cli("fleet", "report", submission).ended(1)
    text = words(result.stdout)
    assert text.startswith("NO SLOW NODE none of 6 nodes")
    for name in ("n03", "n05"):
        assert f"{name}: has no folder: its job did not begin" in text


def test_the_margin_is_that_of_the_measurement_unless_one_is_given(cli, tmp_path):
    submission_in(tmp_path, nodes=12, fleet=True, study=study("mine", margin=0.2))
    fleet(tmp_path, 12, slower={"n02": 0.1}, noise=0.003)
    assert "beyond +20.0% (--margin)" in words(cli("fleet", "report", tmp_path).stdout)
    assert cli("fleet", "report", tmp_path, "--margin", "2%").stdout.startswith("SLOW  1 of 12 nodes")


def test_a_fleet_goes_on_as_a_fleet(refused, submission):
    said = refused("submit", "--resume", submission)
    assert said == f"envkit: --resume {submission}: goes on with: envkit fleet --resume {submission}"
    assert refused("fleet", "--resume", submission, "--nproc", 3).startswith(
        "envkit: --nproc can be given with --resume only"
    )


def test_a_page_may_be_in_the_folder_that_is_made(cli, slurm, run_folder):
    cli("fleet", "intel-omp", "--html", run_folder / "fleet.html", *SUBMITTED, run_folder).ended(0)


def test_the_profile_to_judge_by_is_in_the_command_that_goes_on(cli, slurm, run_folder):
    result = cli("fleet", "intel-omp", "jemalloc", "--profile", "jemalloc", *SUBMITTED, run_folder)
    assert result.stdout.endswith(f"follow it with: envkit fleet --resume {run_folder} --profile jemalloc\n")
