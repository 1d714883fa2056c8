"""What a real Slurm cluster, or a node of it, is not given or can't take: one line says what is wrong."""

from __future__ import annotations

from pathlib import Path

from envkit.bench import record

from tests.engines.slurm.cluster import (
    CONFIGURATION,
    LOCAL,
    NODES,
    SHORT,
    events,
    job_state,
    last_lines,
    measured,
)


def refusal(result, folder):
    """The one line of a submission that was refused before there was a job."""
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1), result
    assert not folder.exists()
    return result.stderr.strip().removeprefix("envkit: ")


def test_a_partition_that_is_not_there(cli, simulated, folder):
    said = refusal(cli(*simulated("--partition", "wrok")), folder)
    assert said == "--partition wrok: no such partition (did you mean 'work'?); choose one of: work, urgent, closed"


def test_more_nodes_than_there_are(cli, simulated, folder):
    said = refusal(cli(*simulated("--nodes", 3)), folder)
    assert said == ("--nodes 3: the partition work has 2 (node[1-2]); ask for fewer, or name another with --partition")


def test_a_node_that_is_not_there(cli, simulated, folder):
    said = refusal(cli(*simulated("--nodelist", "node[2-3]")), folder)
    assert said == "--nodelist: the partition work has no node node3; it has node[1-2]; name others"


def test_what_sbatch_itself_refuses(cli, simulated, folder):
    said = refusal(cli(*simulated("--sbatch", "gpus-per-node=4")), folder)
    assert said.startswith("sbatch refuses the job: ")
    assert said.endswith("; nothing was submitted")


def test_munge_does_not_run(cli, simulated, folder, tmp_path):
    """As far as Slurm's commands can see: they look for it where this configuration says."""
    text = CONFIGURATION.read_text().replace("AuthInfo=", f"AuthInfo=socket={tmp_path}/no-munge,")
    (tmp_path / "slurm.conf").write_text(text)
    said = refusal(cli(*simulated(), SLURM_CONF=str(tmp_path / "slurm.conf")), folder)
    assert said.startswith(
        "munge does not answer here, and Slurm takes no request without it; start it (systemctl start"
    )


def test_a_job_that_never_starts(cli, simulated, folder):
    result = cli(*simulated("--partition", "closed", "--start-within", "3s"))
    assert (result.returncode, result.stdout) == (2, ""), result
    (line,) = last_lines(result)
    number = events(folder, "submitted")[0]["job"]
    assert line.startswith(
        f"job {number} did not start within 3 s and was cancelled: Slurm says PartitionDown (its part"
    )
    assert f"job {number} waits: PartitionDown (its partition starts no jobs now)" in result.stderr
    assert job_state(folder).startswith("CANCELLED")


def test_a_results_folder_that_one_node_does_not_share(cli, simulated):
    folder = LOCAL / "run"
    result = cli(*simulated("--nodes", 2, "--blocks", 1, output=folder))
    assert result.returncode == 2, result
    assert last_lines(result)[0].startswith(f"node2: {folder}: the results folder is not the same one there; give one")
    assert len(measured(folder, "node1")) == 2


def test_a_node_without_the_image(cli, folder):
    """Seen before Apptainer is started: no image is needed for this."""
    sif = LOCAL / "image.sif"
    sif.write_bytes(b"the image")
    options = ("--engine", "apptainer", "--sif", sif, "--nodelist", "node2", *SHORT, "--blocks", 6)
    result = cli("submit", "gnu-omp", *options, "--output", folder)
    assert result.returncode == 2, result
    assert last_lines(result)[0] == (
        f"node2: {sif}: No such file or directory; copy it here, or put it on a file system that all nodes share"
    )


def test_two_nodes_with_clocks_apart(cli, simulated, folder):
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    (NODES / "node2/tasks").write_text(f"export LD_PRELOAD={library}\nexport FAKETIME=+1h\n")
    result = cli(*simulated("--nodes", 2, "--blocks", 1))
    assert result.returncode == 2, result
    assert last_lines(result)[0].startswith("node2: its clock differs from that of node1 by +3,")
    assert " s, so their records don't fit together; set the clocks" in last_lines(result)[0]
    assert len(measured(folder, "node1")) == 2
    assert not (folder / "node2" / record.FILE_NAME).exists()
