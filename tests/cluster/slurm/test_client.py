"""What Slurm's commands say when they can't ask, or are told no; the rest is tried with a real cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from envkit.engines.slurm import client
from envkit.engines.slurm.client import Job, NoAnswer, Refused
from envkit.engines.slurm.messages import (
    NOTHING_PRINTED,
    CantSubmit,
    NoCluster,
    NoController,
    NoMunge,
    NotCancelled,
    SlurmMissing,
    SlurmSilent,
)

SILENT = SlurmSilent("sbatch", 120.0)
MUNGE = """\
sbatch: error: If munged is up, restart with --num-threads=10
sbatch: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file or directory
sbatch: error: slurm_send_node_msg: auth_g_create: REQUEST_PARTITION_INFO has authentication error
slurm_load_partitions: Protocol authentication error
"""


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (MUNGE, NoMunge()),
        (
            "slurm_load_partitions: Unable to contact slurm controller (connect failure)",
            NoController("sinfo"),
        ),
        (
            "sinfo: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
            "sinfo: fatal: Could not establish a configuration source",
            NoCluster("sinfo"),
        ),
    ],
)
def test_no_answer_and_its_mend(said, message):
    problem = client._problem("sinfo", said)
    assert isinstance(problem, NoAnswer)
    assert problem.message == message


def test_refused_with_slurms_own_last_words():
    said = (
        "sbatch: error: invalid account\n"
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n"
    )
    problem = client._problem("sbatch", said)
    assert isinstance(problem, Refused)
    assert problem.said.startswith("Batch job submission failed: Invalid account")


def test_a_command_that_failed_and_printed_nothing():
    problem = client._problem("sbatch", "\n")
    assert isinstance(problem, Refused)
    assert problem.said == NOTHING_PRINTED


def test_commands_that_are_missing(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoAnswer) as error:
        client.require()
    assert error.value.message == CantSubmit()
    with pytest.raises(NoAnswer) as error:
        client.partitions()
    assert error.value.message == SlurmMissing("sinfo")


@pytest.mark.parametrize(("help_text", "does"), [("--container-image=PATH  [pyxis] the image", True), ("-c", False)])
def test_whether_srun_makes_containers(monkeypatch, tmp_path, help_text, does):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert client.starts_containers() is False  # where there is none, or one without Pyxis
    (tmp_path / "srun").write_text(f"#!/bin/sh\n[ \"$1\" = --help ] && echo '{help_text}'\n")
    (tmp_path / "srun").chmod(0o755)
    assert client.starts_containers() is does


def test_options_in_variables_are_left_out_unless_they_say_who_pays():
    caller = {
        "SBATCH_EXCLUSIVE": "user", "SQUEUE_STATES": "RUNNING", "SLURM_CONF": "/c", "SBATCH_ACCOUNT": "a", "HOME": "/h",
        "SLURM_CPUS_PER_TASK": "4", "SRUN_CPUS_PER_TASK": "4", "SLURM_MEM_PER_CPU": "2048", "SLURMD_NODENAME": "node1",
        "SLURM_JWT": "j",
    }  # fmt: skip
    assert client._environment(caller) == {"SLURM_CONF": "/c", "SBATCH_ACCOUNT": "a", "HOME": "/h", "SLURM_JWT": "j"}


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("Resources", "Resources (the nodes that it could use are busy)"),
        (
            "ReqNodeNotAvail, UnavailableNodes:node2",
            "ReqNodeNotAvail, UnavailableNodes:node2 (a node that it needs is down,",
        ),
        ("Licenses", "Licenses"),
        ("None", "no reason given yet"),
    ],
)
def test_why_a_job_waits(reason, why):
    assert Job("1", "PENDING", "", reason).why.startswith(why)


def test_squeues_lines():
    assert client._job("17|RUNNING|node[1-2]||None", False) == Job("17", "RUNNING", "node[1-2]", "None")
    # of a job the nodes that it asks for are no matter; in a fleet they are its own
    assert client._job("17|PENDING||node1|Resources", False) == Job("17", "PENDING", "", "Resources")
    assert client._job("17|PENDING||node1|Resources", True) == Job("17", "PENDING", "node1", "Resources")


@pytest.fixture
def asked(monkeypatch):
    """What Slurm is asked; its answers are numbers from 17 on, or after two of them what ``refused`` has for it."""
    found: list[tuple[str, ...]] = []
    refused: dict[str, BaseException] = {}

    def answer(*command):
        found.append(command)
        if command[0] in refused and len(found) > 2:
            raise refused[command[0]]
        return f"{16 + len(found)}\n"

    monkeypatch.setattr(client, "_ask", answer)
    return found, refused


def test_each_node_of_a_fleet_is_a_job(asked):
    found, _ = asked
    assert client.submit_each(Path("batch.sh"), ["node1", "node7"]) == "17,18"
    assert found == [
        ("sbatch", "--parsable", "--nodelist=node1", "batch.sh"),
        ("sbatch", "--parsable", "--nodelist=node7", "batch.sh"),
    ]


@pytest.mark.parametrize("what", [Refused("too many jobs"), NoAnswer(SILENT), KeyboardInterrupt()])
def test_a_fleet_of_which_a_node_is_refused_is_cancelled(asked, what):
    found, refused = asked
    refused |= {"sbatch": what}
    with pytest.raises(type(what)):
        client.submit_each(Path("batch.sh"), ["node1", "node2", "node3"])
    assert found[-1] == ("scancel", "17", "18")


@pytest.mark.parametrize("what", [Refused("too many jobs"), NoAnswer(SILENT)])
def test_jobs_of_such_a_fleet_that_could_not_be_cancelled_are_named(asked, what):
    _, refused = asked
    refused |= {"sbatch": what, "scancel": NoAnswer(SILENT)}
    with pytest.raises(NoAnswer) as error:
        client.submit_each(Path("batch.sh"), ["node1", "node2", "node3"])
    assert error.value.message == NotCancelled(what.message, ("scancel", "17", "18"))


def test_one_node_takes_no_question(asked):
    found, _ = asked
    assert (client.hosts("node1"), client.hosts("")) == (["node1"], [])
    assert found == []


@pytest.mark.parametrize(
    ("said", "is_over"),
    [
        ("Kill job error on job id 17: Invalid job id specified", True),
        ("Kill job error on job id 17: Job/step already completing or completed", True),
        ("Kill job error on job id 17: Access/permission denied", False),
    ],
)
def test_a_job_that_has_ended_needs_no_cancelling(monkeypatch, said, is_over):
    def answer(*_):
        raise Refused(said)

    monkeypatch.setattr(client, "_ask", answer)
    if is_over:
        client.cancel("17,18")
        return
    with pytest.raises(Refused) as error:
        client.cancel("17,18")
    assert error.value.said == said
