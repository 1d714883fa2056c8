"""``envkit submit --resume`` of what was interrupted: which nodes it asks for. Jobs: tests/engines."""

from __future__ import annotations

import pytest
from envkit.bench import record
from envkit.cluster.slurm.node_status import Outcome
from envkit.engines.slurm import client
from envkit.messages import Printed

from tests.cluster.slurm.conftest import submission_in
from tests.records import run_events, write


@pytest.fixture
def begun(tmp_path):
    """Of two nodes, of which node1 was asked for by name, node2 began, and was interrupted."""
    folder = submission_in(tmp_path / "submission", nodes=2, nodelist=("node1",))
    place = write(folder / "node2", run_events(ended="interrupted"))
    Outcome("17", 1.0, 2.0, 130, Printed("Slurm told the job to end")).write(place)
    return folder


def asked_for(folder):
    (event,) = [event for event in record.read(folder, "submit") if event["event"] == "submitting"]
    return event["nodes"], event["wanted"]


def test_it_goes_on_with_nodes_that_were_named_and_those_that_have_begun(cli, begun, slurm):
    cli("submit", "--resume", begun, "--detach").ended(0, stderr="")
    assert asked_for(begun) == (2, ["node1", "node2"])


def test_it_does_not_wait_for_a_node_that_has_begun_and_is_down(cli, begun, slurm):
    _, states = slurm
    states["node2"] = "down*"
    result = cli("submit", "--resume", begun, "--detach").ended(0)
    assert result.stderr == (
        "envkit: another node is asked for in place of node2: Slurm says down and does not respond (planted)\n"
    )
    assert asked_for(begun) == (2, ["node1"])


@pytest.fixture
def joint(tmp_path):
    """A training on node1 and node2 together that was interrupted."""
    folder = submission_in(tmp_path / "submission", nodes=2, joint=True)
    place = write(folder / "all-nodes", run_events(ended="interrupted"))
    Outcome("17", 1.0, 2.0, 130, Printed("Slurm told the job to end"), "node[1-2]").write(place)
    return folder


def test_ctrl_c_while_it_is_handed_in_and_slurm_says_nothing(cli, joint, slurm, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    def no_answer(*_):
        raise client.NoAnswer(Printed("busy"))

    monkeypatch.setattr(client, "submit", interrupted)
    monkeypatch.setattr(client, "find", no_answer)
    assert cli("submit", "--resume", joint).returncode == 130
    # the next --resume asks Slurm again for the job of that name
    assert record.read(joint, "submit")[-1]["event"] == "submitting"


def test_a_training_on_nodes_goes_on_where_it_was(cli, joint, slurm):
    result = cli("submit", "--resume", joint, "--detach").ended(0)
    assert result.stdout == f"job 17 was submitted; follow it with: envkit submit --resume {joint}\n"
    submitting = [event for event in record.read(joint, "submit") if event["event"] == "submitting"]
    assert [event["wanted"] for event in submitting] == [["node1", "node2"]]
    assert "#SBATCH --nodelist=node1,node2\n" in (joint / "batch.sh").read_text()


def test_a_training_on_nodes_waits_for_none_that_is_down(refused, joint, slurm):
    submitted, states = slurm
    states["node2"] = "down*"
    assert refused("submit", "--resume", joint) == (
        "envkit: node2: Slurm says that the node is down and does not respond (planted); a training on several nodes "
        "goes on only where it was: wait for the node, or start a new run"
    )
    assert submitted == []
