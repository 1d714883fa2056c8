"""A worker on several nodes, as srun is asked to start it; real ones are in tests/engines."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from pathlib import Path

import pytest
from envkit.common.errors import InputError
from envkit.engines import start, step
from envkit.engines.base import Outcome
from envkit.engines.messages import ExitStatus, NodeLost, NoNodesToTrainOn
from envkit.engines.slurm import client
from envkit.engines.slurm.messages import NotOnANode, SlurmMissing, SrunRefused, TooFewNodes
from envkit.engines.start import GIVEN
from envkit.messages import Printed


@pytest.fixture
def asked(monkeypatch):
    """What is run in the place of srun, in a job of three nodes whose second one the runner is on."""
    step._address.cache_clear()
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-3]")
    monkeypatch.setenv("SLURMD_NODENAME", "node2")
    monkeypatch.setenv("LD_PRELOAD", "")
    # ports of this process's own, and none of a real job's: others of the tests may look for one at the same moment
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    monkeypatch.setattr(step, "FIRST_PORT", 13000 + 50 * process)
    monkeypatch.setattr(client, "hosts", lambda short: ["node1", "node2", "node3"])
    monkeypatch.setattr(client, "address", lambda name: "127.0.0.1")
    monkeypatch.setattr(client, "out_of_service", lambda names, states: {})
    calls = []

    def run(argv, environment, folder, timeout_s):
        calls.append((argv, environment))
        return outcomes.pop() if outcomes else Outcome("{}\n", "", 1.0, None)

    outcomes: list[Outcome] = []
    monkeypatch.setattr(step, "run_process", run)
    yield calls, outcomes
    step._address.cache_clear()


def test_srun_has_the_runners_environment_and_the_worker_its_own(asked):
    calls, _ = asked
    step.run(["python", "-m", "x"], {"LD_PRELOAD": "/lib/mine.so", "SECRET": "s3"}, 2, 60.0)
    ((argv, environment),) = calls
    assert argv[:4] == ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
    assert {"--kill-on-bad-exit=1", "--nodelist=node2,node1"} <= {*argv}
    assert argv[-2:] == [sys.executable, start.__file__]
    assert "s3" not in " ".join(argv)
    assert environment["LD_PRELOAD"] == ""
    given = json.loads(environment[GIVEN])
    assert given["argv"] == ["python", "-m", "x"]
    assert given["environment"] == {"LD_PRELOAD": "/lib/mine.so", "SECRET": "s3"}
    # the ranks meet where the runner is
    assert (given["host"], given["port"], given["nodes"]) == ("127.0.0.1", step.FIRST_PORT + 17, ["node2", "node1"])


def test_a_container_that_srun_makes_is_given_what_it_is_to_have_and_no_more(asked, monkeypatch):
    """But for what Slurm sets itself. Its Python finds the code under the name that this has inside."""
    calls, _ = asked
    monkeypatch.setenv("PYXIS_CONTAINER_NAME", "mine")
    inside, options = {"TOKEN": "s3"}, ["--container-image=/x.sqsh", "--container-workdir=/kit"]
    step.run(["python", "-m", "x"], inside, 2, 60.0, container=options, made={"ENROOT_LOGIN_SHELL": "no"})
    ((argv, environment),) = calls
    assert argv[-4:] == [*options, "/opt/kit/bin/python", "/kit/envkit/engines/start.py"]
    assert [word for word in argv if word.startswith("--export=")] == ["--export=ENVKIT_STEP,ENROOT_LOGIN_SHELL"]
    assert environment["ENROOT_LOGIN_SHELL"] == "no"
    assert "PYXIS_CONTAINER_NAME" not in environment
    given = json.loads(environment[GIVEN])
    assert (given["argv"], given["environment"], given["within"]) == (["python", "-m", "x"], inside, True)


def test_a_port_that_is_taken_is_passed_over(asked):
    calls, _ = asked
    with socket.socket() as taken:
        taken.bind(("", step.FIRST_PORT + 17))
        taken.listen()
        step.run(["x"], {}, 2, 60.0)
    assert json.loads(calls[0][1][GIVEN])["port"] == step.FIRST_PORT + 18


def test_a_node_that_was_lost_is_named(asked, monkeypatch):
    """The ranks on other nodes only say that a connection was closed."""
    _, outcomes = asked
    outcomes.append(Outcome('{"problem": "lost rank 0"}\n', "reset by peer", 9.0, ExitStatus(1)))
    monkeypatch.setattr(client, "out_of_service", lambda names, states: {"node3": "down (Not responding)"})
    found = step.run(["x"], {}, 3, 60.0)
    assert (found.stdout, found.failure) == ("", NodeLost("node3", "down (Not responding)"))
    assert found.stderr_tail == "reset by peer"


def test_a_worker_that_failed_on_nodes_that_are_well(asked):
    _, outcomes = asked
    failed = Outcome('{"problem": "lost rank 1"}\n', "", 9.0, ExitStatus(1))
    outcomes.append(failed)
    assert step.run(["x"], {}, 2, 60.0) == failed


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(), SlurmMissing("srun")),
        (OSError(errno.E2BIG, os.strerror(errno.E2BIG)), SrunRefused("Argument list too long")),
    ],
)
def test_srun_that_can_not_be_started(asked, monkeypatch, error, message):
    def run(*arguments):
        raise error

    monkeypatch.setattr(step, "run_process", run)
    with pytest.raises(InputError) as refused:
        step.run(["x"], {}, 2, 60.0)
    assert refused.value.message == message


def test_nodes_without_a_job_or_more_than_it_has(asked, monkeypatch):
    step.require(3)
    with pytest.raises(InputError) as refused:
        step.require(4)
    assert refused.value.message == TooFewNodes(4, 3)
    monkeypatch.delenv("SLURMD_NODENAME")
    with pytest.raises(InputError) as refused:
        step.require(2)
    assert refused.value.message == NotOnANode(2)
    monkeypatch.delenv("SLURM_JOB_NODELIST")
    with pytest.raises(InputError) as outside:
        step.require(2)
    assert outside.value.message == NoNodesToTrainOn(2)


def test_where_no_address_can_be_found_it_is_the_name(asked, monkeypatch):
    calls, _ = asked

    def unknown(name):
        raise client.Refused("no such node")

    monkeypatch.setattr(client, "address", unknown)
    step.run(["x"], {}, 2, 60.0)
    assert json.loads(calls[0][1][GIVEN])["host"] == Path("/proc/sys/kernel/hostname").read_text().strip()


def test_of_what_nodes_say_the_cause_comes_first_and_its_log_last(asked):
    _, outcomes = asked
    consequence = '{"problem": "lost rank 0", "order": [1, 99.5], "log": "connection closed"}\n'
    cause = '{"problem": "lost rank 1", "order": [0, 0], "log": "RuntimeError: planted"}\n'
    said = "Sending a signal\nsrun: error: oh\n"
    outcomes.append(Outcome(f"noise\n{consequence}{cause}", said, 9.0, ExitStatus(1)))
    found = step.run(["x"], {}, 2, 60.0)
    assert found.stdout == f"{cause}{consequence}noise\n"
    assert found.stderr_tail == "Sending a signal\nRuntimeError: planted"


def test_what_slurm_says_does_not_hide_what_a_rank_said(asked):
    _, outcomes = asked
    ends = "srun: error: node1: task 0: Killed\nslurmstepd: error: *** STEP CANCELLED\npyxis: creating container\n"
    said = f"RuntimeError: planted\n{ends}"
    outcomes.append(Outcome("", said, 9.0, ExitStatus(1)))
    assert step.run(["x"], {}, 2, 60.0).stderr_tail == "RuntimeError: planted\n"
    outcomes.append(Outcome("", "srun: error: oh\n", 9.0, ExitStatus(1)))
    assert step.run(["x"], {}, 2, 60.0).stderr_tail == "srun: error: oh\n"


def test_slurm_is_asked_for_the_address_once(asked, monkeypatch):
    calls, _ = asked
    step.run(["x"], {}, 2, 60.0)

    def away(name):
        raise client.NoAnswer(Printed("the Slurm controller does not answer"))

    monkeypatch.setattr(client, "address", away)
    step.run(["x"], {}, 2, 60.0)
    assert [json.loads(environment[GIVEN])["host"] for _, environment in calls] == ["127.0.0.1"] * 2
