"""Jobs on a real Slurm cluster of two nodes on this machine, as .ci/engines/slurm makes it: nodes die here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from runner import record
from runner.blocks import samples
from runner.engines.base import PROJECT
from tests.processes import PATIENCE_S
from tests.simulation import times

CLUSTER = PROJECT / ".ci/engines/slurm"
CONFIGURATION = Path("/etc/slurm/slurm.conf")
MARK = "# Written by .ci/engines/slurm."
NODES = Path("/var/lib/kit-slurm")  # each node's own folder on this machine
LOCAL = Path("/srv/kit-local")  # node1's is this machine's, node2 has its own
SHORT = ("--steps", "3", "--data", "synthetic", "--seed", "7")


def slurm(*command):
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=150, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def waiting_for(found, patience_s=PATIENCE_S):
    """The answer, as soon as it counts as true. Slurm is asked once a second at most."""
    end = time.monotonic() + patience_s
    while not (answer := found()):
        assert time.monotonic() < end
        time.sleep(0.5)
    return answer


def idle():
    return slurm("sinfo", "--noheader", "--Node", "--partition", "work", "--format", "%N %T").split() == [
        "node1", "idle", "node2", "idle",
    ]  # fmt: skip


@pytest.fixture(autouse=True)
def cluster(requires):
    """Both nodes up and idle, before and after; what a test planted there is gone."""
    requires("sbatch")
    if not CONFIGURATION.exists() or MARK not in CONFIGURATION.read_text() or os.geteuid() != 0:
        pytest.skip("this is not the Slurm cluster of .ci/engines/slurm, or not root: these tests kill its nodes")
    slurm(CLUSTER)
    yield
    slurm("scancel", "--user", "root")
    for name in ("node1", "node2"):
        (NODES / name / "tasks").unlink(missing_ok=True)
    for path in (*LOCAL.iterdir(), *(NODES / "node2/local").iterdir()):
        subprocess.run(["rm", "-rf", path], check=True)
    slurm(CLUSTER)
    waiting_for(idle)


@pytest.fixture
def folder(run_folder):
    return run_folder


@pytest.fixture
def simulated(simulation, write_profile, folder):
    """The arguments that submit a profile with simulated workers."""
    profile = write_profile("mine", "env:\n  SIMULATED: mine\n")
    simulation.worker("mine", seconds=times(0.5))

    def arguments(*options, output=folder):
        length = () if "--blocks" in options else ("--blocks", 6)
        return ["submit", profile, *SHORT, *length, "--python", simulation.python, "--output", output, *options]

    return arguments


@pytest.fixture
def slow(simulation):
    """Have workers take so long, so that there is time to do something to them."""

    def take(seconds):
        simulation.worker("baseline", delay=seconds)
        simulation.worker("mine", seconds=times(0.5), delay=seconds)

    return take


def measured(folder, node):
    """What a node has recorded so far."""
    path = folder / node / record.FILE_NAME
    return samples(record.read(folder / node)) if path.exists() and b"\n" in path.read_bytes() else []


def all_measure(folder, process, nodes=("node1", "node2"), at_least=2):
    """Wait until each node has some samples."""
    waiting_for(lambda: process.poll() is not None or all(len(measured(folder, node)) >= at_least for node in nodes))
    assert process.poll() is None, process.communicate()


def events(folder, kind):
    return [event for event in record.read(folder, "submit") if event["event"] == kind]


def job_state(folder):
    number = events(folder, "submitted")[-1]["job"]
    return slurm("squeue", "--noheader", "--states", "all", "--jobs", number, "--format", "%T").strip()


def last_lines(result):
    """What is said on stderr of trouble."""
    return [line.removeprefix("runner: ") for line in result.stderr.splitlines() if line.startswith("runner: ")]


def ended(process, patience_s=180):
    stdout, stderr = process.communicate(timeout=patience_s)
    assert "Traceback" not in stdout + stderr
    return subprocess.CompletedProcess([], process.returncode, stdout, stderr)


# --- measuring ---


def test_each_node_measures_and_has_its_row(cli, simulated, folder):
    result = cli(*simulated("--nodes", 2, "--partition", "work"))
    assert result.returncode == 0, result
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("node")]
    assert [(row[0], row[1], row[2], row[-2]) for row in rows[1:]] == [
        ("node1", "mine", "6", "FASTER"), ("node2", "mine", "6", "FASTER"),
    ]  # fmt: skip
    for node in ("node1", "node2"):
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


def test_real_workers_on_both_nodes(cli, tmp_path):
    folder = tmp_path / "run"
    result = cli("submit", "gnu-omp", "--nodes", 2, *SHORT, "--blocks", 1, "--output", folder)
    assert result.returncode == 0, result
    for node in ("node1", "node2"):
        by_arm = {event["arm"]: event for event in measured(folder, node)}
        assert by_arm.keys() == {"baseline", "gnu-omp"}
        assert by_arm["gnu-omp"]["evidence"]["openmp"]["runtime"] == "gnu"
        # Slurm's own variables and the user's don't get in
        assert by_arm["baseline"]["evidence"]["variables"]["sensitive"] == {}


def test_real_workers_under_apptainer_on_both_nodes(cli, tmp_path, engine_options, surroundings, project):
    folder = tmp_path / "run"
    image = engine_options("apptainer")
    arguments = ["submit", "gnu-omp", "--nodes", 2, *image, *SHORT, "--blocks", 1, "--output", folder]
    result = cli(*arguments, cwd=project, **surroundings)
    assert result.returncode == 0, result
    digests = set()
    for node in ("node1", "node2"):
        assert {event["arm"] for event in measured(folder, node)} == {"baseline", "gnu-omp"}
        digests.add(record.read(folder / node)[0]["engines"]["apptainer"]["engine"]["digest"])
    assert len(digests) == 1


# --- going on ---


def test_ctrl_c_cancels_the_job_and_keeps_what_was_measured(start, cli, simulated, slow, folder):
    slow(0.5)
    process = start(*simulated("--nodes", 2))
    all_measure(folder, process)
    process.send_signal(signal.SIGINT)
    result = ended(process)
    assert result.returncode == 130, result
    assert last_lines(result)[-1] == f"interrupted; go on with: runner submit --resume {folder}"
    assert job_state(folder).startswith("CANCELLED")
    earlier = {node: measured(folder, node) for node in ("node1", "node2")}
    assert "FAILED" not in result.stdout + result.stderr
    slow(0)
    resumed = cli("submit", "--resume", folder)
    assert resumed.returncode == 0, resumed
    for node, before in earlier.items():
        assert measured(folder, node)[: len(before)] == before
        assert len(measured(folder, node)) == 12
        assert "failure" not in [event["event"] for event in record.read(folder / node)]


def test_killed_and_resumed_follows_the_job_that_went_on(start, cli, simulated, slow, folder):
    slow(0.3)
    process = start(*simulated("--nodes", 2))
    all_measure(folder, process)
    process.kill()
    process.wait()
    slow(0)
    result = cli("submit", "--resume", folder)
    assert result.returncode == 0, result
    assert len(events(folder, "submitted")) == 1


def test_detached_and_followed_later(cli, simulated, folder):
    result = cli(*simulated("--detach"))
    assert (result.returncode, result.stderr) == (0, "")
    number = events(folder, "submitted")[0]["job"]
    assert result.stdout == f"job {number} was submitted; follow it with: runner submit --resume {folder}\n"
    assert cli("submit", "--resume", folder).returncode == 0
    assert len(events(folder, "submitted")) == 1


def test_a_time_limit_comes_near(cli, simulated, slow, folder, simulation):
    """Slurm tells the job some time before its limit: the record has an end, and the same command goes on."""
    slow(1)
    result = cli(*simulated("--nodes", 2, "--time", "1m", "--blocks", 40))
    assert result.returncode == 1, result
    assert last_lines(result) == [
        "node1, node2: the job's time limit was near",
        f"0 of 2 nodes measured; go on with: runner submit --resume {folder}",
    ]
    earlier = {node: measured(folder, node) for node in ("node1", "node2")}
    for node, before in earlier.items():
        assert record.read(folder / node)[-1]["reason"] == "interrupted"
        assert 0 < len(before) < 80
    slow(0)
    resumed = cli("submit", "--resume", folder, "--time", "10m")
    assert resumed.returncode == 0, resumed
    for node, before in earlier.items():
        assert measured(folder, node)[: len(before)] == before
        assert len(measured(folder, node)) == 80


@pytest.mark.parametrize("by", ["another job", "scontrol"])
def test_a_job_that_is_requeued_goes_on(start, simulated, slow, folder, by):
    """To make room for a more urgent job, with some time to end in; or at once."""
    slow(0.5)
    process = start(*simulated("--nodes", 2, "--partition", "work", "--blocks", 10))
    all_measure(folder, process)
    if by == "another job":
        urgent = ("--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap", "sleep 1")
        slurm("sbatch", *urgent)
    else:
        slurm("scontrol", "requeue", events(folder, "submitted")[0]["job"])
    result = ended(process)
    assert result.returncode == 0, result
    assert len(events(folder, "submitted")) == 1
    for node in ("node1", "node2"):
        assert len(measured(folder, node)) == 20
        assert "resume" in [event["event"] for event in record.read(folder / node)]
        assert "failure" not in [event["event"] for event in record.read(folder / node)]


def test_a_node_dies(start, cli, simulated, slow, folder):
    slow(0.5)
    process = start(*simulated("--nodes", 2, "--blocks", 20))
    all_measure(folder, process)
    slurm(CLUSTER, "stop-node", "node2")
    result = ended(process)
    assert result.returncode == 1, result
    lost, go_on = last_lines(result)
    assert lost.startswith("node2: did not end by itself: Slurm says that the node is down and does not respond")
    assert go_on == f"1 of 2 nodes measured; go on with: runner submit --resume {folder}"
    assert len(measured(folder, "node1")) == 40
    earlier = measured(folder, "node2")
    assert 2 <= len(earlier) < 40
    slurm(CLUSTER, "start-node", "node2")
    slow(0)
    done = (folder / "node1" / record.FILE_NAME).read_bytes()
    resumed = cli("submit", "--resume", folder)
    assert resumed.returncode == 0, resumed
    assert measured(folder, "node2")[: len(earlier)] == earlier
    assert len(measured(folder, "node2")) == 40
    # only the node that lacked something was asked for
    assert (folder / "node1" / record.FILE_NAME).read_bytes() == done
    assert events(folder, "submitting")[-1]["wanted"] == ["node2"]


def test_a_worker_that_fails_on_the_nodes(cli, simulated, simulation, folder):
    simulation.worker("mine", does="exit", status=3)
    result = cli(*simulated("--nodes", 2))
    assert result.returncode == 1, result
    said = "node1, node2: block 1, mine: the worker ended with exit status 3: simulated trouble"
    assert last_lines(result)[0] == said


# --- bad input ---


def refusal(result, folder):
    """The one line of a submission that was refused before there was a job."""
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1), result
    assert not folder.exists()
    return result.stderr.strip().removeprefix("runner: ")


def test_a_partition_that_is_not_there(cli, simulated, folder):
    said = refusal(cli(*simulated("--partition", "wrok")), folder)
    assert said == "--partition wrok: no such partition (did you mean 'work'?); there are: work, urgent, closed"


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
    resumed = cli("submit", "--resume", folder, "--partition", "work")
    assert resumed.returncode == 0, resumed


def test_a_results_folder_that_no_node_shares(cli, simulated):
    folder = LOCAL / "run"
    result = cli(*simulated("--nodelist", "node2", output=folder))
    assert result.returncode == 2, result
    said = (
        f" left nothing on node2: {folder}: the results folder is not the same one there; give one that all nodes share"
    )
    assert last_lines(result)[0].endswith(f"{said} with --output, for example in your home")


def test_a_results_folder_that_one_node_does_not_share(cli, simulated):
    folder = LOCAL / "run"
    result = cli(*simulated("--nodes", 2, output=folder))
    assert result.returncode == 2, result
    assert last_lines(result)[0].startswith(f"node2: {folder}: the results folder is not the same one there; give one")
    assert len(measured(folder, "node1")) == 12


@pytest.mark.parametrize("there", [False, True])
def test_a_node_without_the_image_or_with_another(cli, simulation, tmp_path, there):
    """Seen before Apptainer is started: no image is needed for this."""
    sif = LOCAL / "image.sif"
    sif.write_bytes(b"the image")
    if there:
        (NODES / "node2/local/image.sif").write_bytes(b"another image")
    options = ("--engine", "apptainer", "--sif", sif, "--nodelist", "node2", *SHORT, "--blocks", 6)
    result = cli("submit", "gnu-omp", *options, "--output", tmp_path / "run")
    assert result.returncode == 2, result
    wrong = "is another image here (sha256:" if there else "No such file or directory; "
    assert last_lines(result)[0].startswith(f"node2: {sif}: {wrong}")


def test_two_nodes_with_clocks_apart(cli, simulated, folder):
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    (NODES / "node2/tasks").write_text(f"export LD_PRELOAD={library}\nexport FAKETIME=+1h\n")
    result = cli(*simulated("--nodes", 2))
    assert result.returncode == 2, result
    assert last_lines(result)[0].startswith("node2: its clock is 3,")
    assert " s ahead of that of node1, so their records don't fit together; set the clocks" in last_lines(result)[0]
    assert len(measured(folder, "node1")) == 12
    assert not (folder / "node2" / record.FILE_NAME).exists()
