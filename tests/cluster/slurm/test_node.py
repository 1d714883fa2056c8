"""What runs on a node, with simulated workers: as Slurm would start it where signals are told to it, else in here."""

from __future__ import annotations

import json
import os
import signal
import stat
import time

import pytest
from envkit.bench import record
from envkit.cli import slurm_node
from envkit.cli.workload_messages import StartsCommand
from envkit.cluster.slurm import node_status
from envkit.cluster.slurm.collect import collect
from envkit.cluster.slurm.messages import ClockApart
from envkit.cluster.slurm.settings import FILE_NAME, Settings
from envkit.engines.base import EngineOptions
from envkit.engines.measured_cores import MeasuredCores, keep
from envkit.messages import Printed, from_json
from envkit.rendering import text
from envkit.worker.host import cpu_facts, cpu_list, usable_cpus
from envkit.worker.request import UserCommand

from tests.cluster.slurm.conftest import JOB, settings, study
from tests.processes import PATIENCE_S, until
from tests.records import run_events, samples, write
from tests.sessions import rewrite
from tests.simulated_worker import inspection
from tests.simulation import times


@pytest.fixture
def submitted(folder, simulation, write_profile):
    """Write the settings of a submission of a profile with simulated workers."""
    simulation.worker("mine", seconds=times(0.5))

    def write(blocks=1, engine="local", digest=None, joint=False, sets="", matrix=False, **replaced):
        profile = str(write_profile("mine", f"{sets}env:\n  SIMULATED: mine\n"))
        options = EngineOptions(python=str(simulation.python))
        usual = {"engine_options": options, "data": "synthetic", "seed": 7, "steps": 3}
        asked = study(profile, engine, blocks=blocks, **{**usual, **replaced})
        measured = (profile, str(write_profile("other", "env:\n  SIMULATED: mine\n  OTHER: 1\n"))) if matrix else ()
        settings(study=asked, digest=digest, joint=joint, profiles=measured).write(folder)

    return write


@pytest.fixture
def node(on_node, instant, folder):
    """Run a node's part to its end: the exit status, and what it says of itself."""

    def run(name="node1", *options, job=JOB, **variables):
        status, _ = on_node(name, *options, SLURM_JOB_ID=job, **variables)
        return status, node_status.read(folder / name)

    return run


@pytest.fixture
def check(node):
    """Ask a node whether it could take part in a training on all nodes."""
    return lambda job=JOB, nodes="": node("node2", "--check", job=job, SLURM_JOB_NODELIST=nodes)


def ended(process, folder):
    """The exit status of a node's part that was started, and what it says of itself."""
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in stdout + stderr + log(folder)
    return process.returncode, node_status.read(folder / "node1")


def log(folder):
    return (folder / "node1/log.txt").read_text()


@pytest.mark.slow
def test_measures_and_says_so(submitted, start_node, folder):
    submitted(blocks=6)
    status, said = ended(start_node(), folder)
    assert (status, said.status, said.problem, said.job) == (0, 0, None, JOB)
    assert said.began <= said.ended <= time.time()
    assert len(samples(record.read(folder / "node1"))) == 12
    assert node_status.is_settled(folder / "node1")
    assert "FASTER  " in log(folder)


def test_a_job_that_is_requeued_leaves_a_node_alone_that_is_done(submitted, node, folder):
    submitted()
    node()
    before = (folder / "node1" / record.FILE_NAME).read_bytes()
    assert node()[0] == 0
    assert (folder / "node1" / record.FILE_NAME).read_bytes() == before


@pytest.mark.slow
def test_goes_on_with_what_is_there(submitted, start_node, folder, simulation):
    submitted(blocks=3)
    simulation.worker("mine", does="hang", **{"from": 2})
    process = start_node()
    until(lambda: len([one for one in simulation.starts() if one["name"] == "mine"]) == 3)
    process.kill()
    process.wait()
    earlier = samples(record.read(folder / "node1"))
    assert node_status.read(folder / "node1").status is None
    simulation.worker("mine", seconds=times(0.5))
    assert ended(start_node(), folder)[0] == 0
    later = samples(record.read(folder / "node1"))
    assert later[: len(earlier)] == earlier
    assert len(later) == 6


def hanging(start_node, simulation):
    simulation.worker("mine", does="hang", **{"from": 1})
    process = start_node()
    until(lambda: len([one for one in simulation.starts() if one["name"] == "mine"]) == 2 or process.poll() is not None)
    return process, simulation.starts()[-1]["pid"]


def interrupted(process, folder):
    status, said = ended(process, folder)
    assert (status, said.status) == (130, 130)
    end = record.read(folder / "node1")[-1]
    assert (end["event"], end["reason"]) == ("end", "interrupted")
    return text(said.problem)


@pytest.mark.slow
def test_a_near_time_limit_ends_it_in_good_order(submitted, start_node, folder, simulation):
    """The signal comes to all processes of the step, and means something to this one only."""
    submitted(blocks=2)
    process, worker = hanging(start_node, simulation)
    os.kill(worker, signal.SIGURG)
    process.send_signal(signal.SIGURG)
    assert interrupted(process, folder) == "the job's time limit was near"


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_slurms_sigterm_is_for_all_processes_and_comes_twice(submitted, start_node, folder, simulation, times):
    """The worker that it ends first has not failed."""
    submitted(blocks=2)
    process, worker = hanging(start_node, simulation)
    os.kill(worker, signal.SIGTERM)
    for _ in range(times):
        process.send_signal(signal.SIGTERM)
    assert interrupted(process, folder) == "Slurm told the job to end"
    assert not [event for event in record.read(folder / "node1") if event["event"] == "failure"]


def test_another_submissions_folder_is_not_this_ones(submitted, on_node, folder):
    submitted()
    status, stderr = on_node("node1", identity="another1")
    assert status == 2
    assert stderr.startswith(f"envkit: node1: {folder}: the results folder is a different one there; give one")
    assert not (folder / "node1").exists()


def test_bad_input_on_a_node_is_told_in_one_line(submitted, node):
    submitted(keep_env=("NOT_SET_ANYWHERE",))
    status, said = node()
    assert (status, said.status) == (2, 2)
    assert text(said.problem).startswith("--keep-env NOT_SET_ANYWHERE: it is not set in your environment")


def test_a_submission_of_another_version_is_bad_input_too(submitted, on_node, folder):
    submitted()
    path = folder / FILE_NAME
    path.write_text(path.read_text().replace('"margin"', '"no_such_key"'))
    why = f"{path}: not the settings of a submission (unknown key 'stopping.no_such_key'); submit again"
    assert on_node("node1") == (2, f"envkit: node1: {why}\n")


def test_a_failed_worker_is_not_tried_again_by_the_same_job(submitted, node, simulation):
    submitted()
    simulation.worker("mine", does="exit", status=3)
    assert node()[0] == 1
    starts = len(simulation.starts())
    assert node()[0] == 0
    assert len(simulation.starts()) == starts
    simulation.worker("mine", seconds=times(0.5))
    assert node(job="18")[1].status == 0  # the user went on


def test_a_clock_that_is_apart(submitted, node, folder):
    submitted()
    now = time.time()
    (folder / f"roll-call-{JOB}").write_text(
        f"before node1 {now}\nanswer node1 {now} nothing\nanswer node2 {now - 100} nothing\nafter node1 {now + 1}\n"
    )
    status, said = node("node2")
    assert status == 2
    assert text(said.problem) == text(ClockApart("node1", -100.0))
    assert text(said.problem).startswith("its clock differs from that of node1 by -100 s")
    assert not (folder / "node2" / record.FILE_NAME).exists()
    assert node("node1")[0] == 0
    submitted(force=True)
    assert node("node2", job="17")[0] == 0  # tried by this job already
    (folder / "roll-call-18").write_text((folder / f"roll-call-{JOB}").read_text())
    assert node("node2", job="18")[1].status == 0


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(("engine", "option"), [("apptainer", "sif"), ("enroot", "sqsh")])
def test_an_image_that_is_missing_or_another(submitted, node, tmp_path, engine, option, there):
    image = tmp_path / "image"
    if there:
        image.write_bytes(b"another one")
    submitted(engine=engine, engine_options=EngineOptions(**{option: str(image)}), digest=f"sha256:{'0' * 64}")
    status, said = node()
    assert status == 2
    wrong = f"{image}: is another image here (sha256:" if there else f"{image}: No such file or directory; "
    assert text(said.problem).startswith(wrong)
    assert text(said.problem).endswith("or put it on a file system that all nodes share")


def test_a_command_of_ones_own_runs_in_its_folder(submitted, node, tmp_path):
    start = tmp_path / "not-there"
    submitted(user_command=UserCommand(("python", "x.py"), str(start)))
    status, said = node()
    assert status == 2
    assert text(said.problem) == f"{start}: No such file or directory here; start from a folder that all nodes share"


@pytest.mark.slow
def test_a_command_of_ones_own_is_shown_before_it_starts(submitted, start_node, folder, tmp_path):
    submitted(user_command=UserCommand(("python", "x.py", "--lr 1"), str(tmp_path)))
    ended(start_node(), folder)
    said = text(StartsCommand(str(folder / "submit.json"), str(tmp_path), ("python", "x.py", "--lr 1")))
    assert log(folder).splitlines()[0] == f"envkit: {said}"
    assert said.endswith(f"submit.json starts, in {tmp_path}: python x.py '--lr 1'")


def test_the_record_has_what_the_node_ran(submitted, node, folder):
    submitted()
    node()
    assert record.read(folder / "node1")[0]["command"] == ["envkit", "submit", f"--resume={folder}"]
    assert json.loads((folder / "node1" / "node.json").read_text())["job"] == JOB


def test_a_node_that_could_take_part_leaves_nothing(submitted, check, folder):
    submitted(joint=True)
    assert check() == (0, None)
    assert not (folder / "all-nodes").exists()


def test_a_node_that_could_not_take_part_says_why(submitted, check, tmp_path):
    options = EngineOptions(sif=str(tmp_path / "image.sif"))
    submitted(joint=True, engine="apptainer", engine_options=options, digest=f"sha256:{'0' * 64}")
    status, said = check()
    assert (status, said.status) == (2, 2)
    assert text(said.problem).startswith(f"{tmp_path}/image.sif: No such file or directory; ")
    submitted(joint=True)
    assert check(job="18") == (0, None)  # it was fixed


def test_a_node_of_several_with_too_few_cores(submitted, check):
    submitted(joint=True, ranks=10_000)
    status, said = check()
    assert (status, said.status) == (2, 2)
    assert text(said.problem).startswith("--nproc 10000: only ")
    assert " usable (this node), and each rank needs its own; " in text(said.problem)


def test_a_node_of_several_counts_the_cores_that_were_measured_on_it(submitted, check):
    cpus = cpu_list(usable_cpus())
    keep(MeasuredCores(cpus, (cpus,), "2026-11-28"))
    submitted(joint=True, ranks=2)
    assert text(check()[1].problem).startswith("--nproc 2: only 1 core is usable (this node)")


@pytest.fixture
def vendors(monkeypatch, simulation):
    """Give the node a processor of this maker."""

    def make(vendor):
        monkeypatch.setattr(slurm_node, "facts_here", lambda: {**cpu_facts(), "cpu_vendor": vendor})
        simulation.inspection(facts={**inspection([], {})["facts"], "cpu_vendor": vendor})

    return make


LACKING = "needs a cpu_vendor other than GenuineIntel, and here it is GenuineIntel"
OF_ANOTHER_KIND = f"profile 'mine' {LACKING}: it does not apply"


def test_a_node_of_several_for_which_a_profile_is_not(submitted, check, vendors):
    """The runner looks at the first node alone."""
    submitted(joint=True, sets="needs: {cpu_vendor: {not: GenuineIntel}, gpus: 1}\n")
    vendors("AuthenticAMD")
    assert check() == (0, None)
    vendors("GenuineIntel")
    status, said = check(job="18")
    assert (status, said.status) == (2, 2)
    assert text(said.problem) == f"{OF_ANOTHER_KIND} to this node; name other nodes"


def test_of_nodes_of_two_kinds_those_measure_for_which_the_profile_is(submitted, node, vendors, folder):
    submitted(sets="needs: {cpu_vendor: {not: GenuineIntel}}\n")
    vendors("AuthenticAMD")
    assert node("node1")[0] == 0
    vendors("GenuineIntel")
    status, said = node("node2")
    assert (status, said.status) == (2, 2)
    assert text(said.problem) == f"{OF_ANOTHER_KIND} to this machine; choose another"
    assert not record.is_begun(folder / "node2")
    seen = {one.name: (one.state, one.problem) for one in collect(folder, settings(), None)}
    assert seen["node1"] == ("measured", None)
    assert seen["node2"] == ("refused", said.problem)


def test_a_matrix_of_nodes_of_two_kinds_leaves_the_profile_out_on_one(submitted, node, vendors, folder, write_profile):
    submitted(sets="needs: {cpu_vendor: {not: GenuineIntel}}\n", blocks=6, matrix=True)
    for name, vendor, measured in (("node1", "AuthenticAMD", 3), ("node2", "GenuineIntel", 2)):
        vendors(vendor)
        assert node(name)[0] == 0, name
        arms = [arm["name"] for arm in record.first(folder / name)["study"]["arms"]]
        assert len(arms) == measured, arms
    (event,) = [one for one in record.read(folder / "node2") if one["event"] == "left-out"]
    assert {name: text(from_json(one)) for name, one in event["profiles"].items()} == {"mine": LACKING}


def test_a_node_of_several_whose_clock_is_apart(submitted, check, folder):
    submitted(joint=True)
    (folder / f"roll-call-{JOB}").write_text("before node1 50\nanswer node2 160 nothing\nafter node1 60\n")
    status, said = check()
    assert status == 2
    assert text(said.problem) == text(ClockApart("node1", 100.0))


def test_a_run_of_all_nodes_goes_on_only_where_it_began(submitted, check, folder):
    """Slurm may give a job other nodes when it is requeued."""
    submitted(joint=True)
    place = write(folder / "all-nodes", run_events(ended="interrupted"))
    node_status.Outcome(JOB, 1.0, 2.0, 130, Printed("stopped"), "node[1-2]").write(place)
    assert check(nodes="node[1-2]") == (0, None)
    status, said = check(nodes="node[2-3]")
    assert status == 2
    assert text(said.problem) == (
        "this job has node[2-3], and the run began on node[1-2]: times of other nodes can't be added to it; "
        f"go on there with: envkit submit --resume {folder}"
    )


def test_the_run_of_all_nodes_is_in_a_folder_of_its_own(submitted, on_node, folder):
    """There are no other nodes here: that is what it says."""
    submitted(joint=True, nodes=2)
    status, _ = on_node("node1")
    said = node_status.read(folder / "all-nodes")
    assert (status, said.status) == (2, 2)
    assert text(said.problem).startswith("--nodes 2: this process is not in a Slurm job; submit one: ")
    assert not (folder / "node1").exists()


# --- what a node runs is what was submitted ---


def evil(folder, tmp_path):
    """Edit what was submitted so that it names a script; returns its SHA-256 before, and the file that says it ran."""
    script, ran, path = tmp_path / "script", tmp_path / "ran", folder / FILE_NAME
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    before, document = Settings.read(folder).sha256, json.loads(path.read_text())
    document["study"]["engine_options"]["python"] = str(script)
    path.write_text(json.dumps(document))
    return before, ran


def test_what_was_edited_since_it_was_submitted_is_not_run(submitted, on_node, folder, tmp_path):
    submitted()
    sha256, ran = evil(folder, tmp_path)
    said = f"{folder}/submit.json: is not what was submitted, or was edited since; submit again"
    assert on_node("node1", sha256=sha256) == (2, f"envkit: node1: {said}\n")
    assert on_node("node1", "--check", sha256=sha256)[0] == 2
    assert (ran.exists(), (folder / "node1").exists()) == (False, False)


def test_a_record_on_a_node_is_only_compared(submitted, node, folder, simulation, tmp_path):
    submitted(blocks=3)
    simulation.worker("mine", does="exit", status=3, **{"from": 2})
    assert node()[0] == 1
    simulation.worker("mine", seconds=times(0.5))
    rewrite(folder / "node1", lambda run: run["study"]["engine_options"].update(python="/tmp/evil"))
    status, said = node(job="18")
    assert (status, said.status) == (2, 2)
    assert "engine_options.python was /tmp/evil and is now " in text(said.problem)


def test_what_a_node_leaves_is_for_its_user_alone(submitted, node, folder):
    submitted()
    before = os.umask(0)
    try:
        assert node()[0] == 0
    finally:
        os.umask(before)
    place = folder / "node1"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    files = [path for path in place.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {"log.txt", "node.json", "record.jsonl"} == {path.name for path in files if path.parent == place}
    assert stat.S_IMODE((place / "requests").stat().st_mode) == 0o700
