"""What runs on each node in a worker's place, started as srun would start it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest
from envkit.engines.base import PROJECT
from envkit.engines.messages import NotPassedOn, NotStartedOn
from envkit.engines.start import GIVEN, interface
from envkit.messages import from_json

START = (str(PROJECT / "runner/envkit/engines/start.py"),)
REQUEST = '{"work": "what to do"}\n'
SHOW = (sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))")


@pytest.fixture
def started():
    """What comes of it on the node of this number."""

    def start(argv=SHOW, number=0, inside="", environment=None, within=False, request=REQUEST, **own):
        given = {"argv": [*argv], "environment": environment or {"A": "1"}, "inside": inside, "request": request}
        given |= {"host": "127.0.0.1", "port": 20017, "nodes": ["node1", "node2"], "within": within}
        return subprocess.run(
            [sys.executable, *START],
            cwd=PROJECT, capture_output=True, text=True, check=False,
            env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": f"node{number + 1}", GIVEN: json.dumps(given), **own},
        )  # fmt: skip

    return start


def test_it_has_the_environment_that_it_was_given_and_no_other(started):
    seen = json.loads(started(SLURM_JOB_ID="17", LD_LIBRARY_PATH="/mine").stdout)
    seen.pop("LC_CTYPE", None)  # Python's own
    assert seen.pop("A") == "1"
    assert seen == {"GLOO_SOCKET_IFNAME": "lo", "ENVKIT_RENDEZVOUS": "127.0.0.1:20017", "ENVKIT_NODE_RANK": "0"}


def test_in_a_container_it_has_the_image_s_too(started):
    """What only the host has is of no use."""
    seen = json.loads(started(within=True, A="0", B="2", TMPDIR="/tmp/of-the-node").stdout)
    assert (seen["A"], seen["B"]) == ("1", "2")
    assert not {"TMPDIR", GIVEN} & seen.keys()


def test_it_starts_where_no_package_of_the_kit_is(started):
    """An empty entry of PYTHONPATH means that folder. A container has a folder of its own for that."""
    where = (sys.executable, "-c", "import os; print(os.getcwd())")
    assert [started(where, within=within).stdout for within in (False, True)] == ["/\n", f"{PROJECT}\n"]


def test_what_each_node_has_of_its_own(started):
    environment = {"TMPDIR": "/tmp/of-the-runner", "HOME": "/home/me"}
    seen = json.loads(started(environment=environment, TMPDIR="/tmp/of-the-node", HOME="/home/other").stdout)
    assert (seen["TMPDIR"], seen["HOME"]) == ("/tmp/of-the-node", "/home/me")
    assert "TMPDIR" not in json.loads(started(TMPDIR="/tmp/of-the-node").stdout)


@pytest.mark.parametrize("number", [0, 1])
def test_ranks_are_told_where_to_meet_and_which_node_this_is(started, number):
    for inside in ("", "APPTAINERENV_"):
        seen = json.loads(started(number=number, inside=inside).stdout)
        met = (seen[f"{inside}ENVKIT_RENDEZVOUS"], seen[f"{inside}ENVKIT_NODE_RANK"])
        assert met == ("127.0.0.1:20017", str(number))


def test_the_worker_reads_its_request(started):
    """One that takes more than a pipe usually has room for, too."""
    assert started((sys.executable, "-c", "print(input())")).stdout == REQUEST
    count = (sys.executable, "-c", "import sys; print(len(sys.stdin.read()))")
    assert started(count, request="x" * 10**5).stdout == "100000\n"


def test_the_interface_to_an_address():
    assert (interface("127.0.0.1"), interface("no.such.host.invalid")) == ("lo", None)


@pytest.mark.parametrize(
    ("inside", "chosen", "found"),
    [
        ("", {"GLOO_SOCKET_IFNAME": "ib0"}, {"GLOO_SOCKET_IFNAME": "ib0"}),
        ("APPTAINERENV_", {}, {"APPTAINERENV_GLOO_SOCKET_IFNAME": "lo"}),
        # which a container would not see
        ("APPTAINERENV_", {"GLOO_SOCKET_IFNAME": "eth7"},
         {"GLOO_SOCKET_IFNAME": "eth7", "APPTAINERENV_GLOO_SOCKET_IFNAME": "lo"}),
    ],
)  # fmt: skip
def test_an_interface_of_the_users_choice_or_for_a_container(started, inside, chosen, found):
    seen = json.loads(started(inside=inside, environment=chosen).stdout)
    assert {name: value for name, value in seen.items() if name.endswith("GLOO_SOCKET_IFNAME")} == found


def test_slurm_that_passes_nothing_on():
    result = subprocess.run([sys.executable, *START], cwd=PROJECT, capture_output=True, text=True, check=False, env={})
    assert (result.returncode, result.stderr) == (2, "")
    assert from_json(json.loads(result.stdout)["problem"]) == NotPassedOn("ENVKIT_STEP")


def test_a_command_that_this_node_does_not_have(started):
    result = started(["/no/such/python"])
    assert (result.returncode, result.stderr) == (127, "")
    problem = from_json(json.loads(result.stdout)["problem"])
    assert problem == NotStartedOn("/no/such/python", platform.node(), "No such file or directory")
