"""Nodes of a real Slurm cluster that train together: ranks and nodes die here."""

from __future__ import annotations

import signal

import pytest
from envkit.bench import record

from tests.conftest import CODE_PATH
from tests.engines.slurm.cluster import (
    HELD_S,
    LOCAL,
    NODES,
    REAL_S,
    SHORT,
    all_measure,
    ended,
    events,
    kill,
    last_lines,
    measured,
    waiting_for,
)
from tests.processes import running

# From the death of a rank or a node to the end of all others.
DEATH_S = 120
TOGETHER = "all-nodes"
# Enough for samples: both nodes share the CPUs of this machine.
JOINT = ("--nodes", 2, "--nproc", 1, "--warmup-steps", 1, *SHORT, "--steps", 2)
BOTH = [(0, "node1"), (1, "node2")]
# What a rank runs at its start: the counters of the CPUs are read when steps are about to be timed.
TROUBLE = """
import os, sys
def fail(event, arguments):
    if event == "open" and str(arguments[0]) == "/proc/stat":
        open("{died}", "w").close()
        raise RuntimeError("planted trouble")
if os.environ.get("RANK") == "1" and "ENVKIT_RANK" not in os.environ:
    sys.addaudithook(fail)
"""


def ranks_of(events):
    return {
        event["arm"]: [(rank["rank"], rank["node"]) for rank in event["ranks"]] for event in events if "ranks" in event
    }


def test_ranks_on_both_nodes_under_apptainer_train_together(cli, tmp_path, engine_options, surroundings, project):
    folder = tmp_path / "run"
    arguments = ["submit", "jemalloc", *engine_options("apptainer"), *JOINT, "--blocks", 1, "--output", folder]
    result = cli(*arguments, cwd=project, timeout_s=REAL_S, **surroundings)
    assert result.returncode == 0, result
    rows = [line.split()[:2] for line in result.stdout.splitlines() if line.startswith(TOGETHER)]
    assert rows == [[TOGETHER, "jemalloc"], [TOGETHER, "1"]]
    found = measured(folder, TOGETHER)
    assert ranks_of(found) == {"baseline": BOTH, "jemalloc": BOTH}
    by_arm = {event["arm"]: event for event in found}
    assert (len(found), by_arm.keys()) == (3, {"baseline", "jemalloc", "1 process"})
    for rank in by_arm["jemalloc"]["ranks"]:
        # what the profile sets is in effect in each, and nothing of Slurm's or the user's
        assert rank["evidence"]["malloc"]["allocator"] == "jemalloc"
        assert [*rank["evidence"]["variables"]["sensitive"]] == ["LD_PRELOAD"]
    losses = by_arm["baseline"]["losses"]
    assert losses == pytest.approx(by_arm["1 process"]["losses"], rel=1e-3)
    assert "1 process" in cli("report", folder).stdout
    assert [path.name for path in folder.iterdir() if path.is_dir()] == [TOGETHER]


@pytest.fixture
def simulated(simulation, write_profile, folder):
    """The arguments that train on both nodes with simulated workers, which Slurm starts as it does real ones."""
    profile = write_profile("mine", "env:\n  SIMULATED: mine\n")
    python = ("--python", simulation.python)
    return ["submit", profile, *JOINT, *python, "--blocks", 2, "--output", folder]


def test_what_was_measured_when_it_was_interrupted_stays_and_it_goes_on(start, cli, simulated, simulation, folder):
    for arm in ("baseline", "mine"):
        simulation.worker(f"{arm} on 2 ranks", delay=1)
    process = start(*simulated)
    all_measure(folder, process, [TOGETHER])
    for arm in ("baseline", "mine"):
        simulation.worker(f"{arm} on 2 ranks", delay=HELD_S)
    process.send_signal(signal.SIGINT)
    interrupted = ended(process)
    assert interrupted.returncode == 130, interrupted
    assert record.read(folder / TOGETHER)[-1]["reason"] == "interrupted"
    earlier = measured(folder, TOGETHER)
    assert 2 <= len(earlier) < 6
    for arm in ("baseline", "mine"):
        simulation.worker(f"{arm} on 2 ranks")
    result = cli("submit", "--resume", folder)
    assert result.returncode == 0, result
    found = measured(folder, TOGETHER)
    assert found[: len(earlier)] == earlier
    assert sorted(event["arm"] for event in found) == sorted(["baseline", "mine", "1 process"] * 2)
    assert events(folder, "submitting")[-1]["wanted"] == ["node1", "node2"]


def test_a_rank_that_dies_is_named_and_its_log_shown_and_the_others_end(cli, folder, tmp_path):
    died = tmp_path / "died"
    (tmp_path / "sitecustomize.py").write_text(TROUBLE.format(died=died))
    result = cli("submit", "baseline", *JOINT, "--blocks", 1, "--output", folder, PYTHONPATH=f"{tmp_path}:{CODE_PATH}")
    assert result.returncode == 1, result
    # the end of its log, of which the last line is in the line of what failed, too
    shown = [line.strip() for line in result.stdout.splitlines() if line.strip().startswith("| ")]
    assert len(shown) > 1, result
    assert "planted trouble" in " ".join(shown)
    failed, go_on = last_lines(result)
    assert failed.startswith(f"{TOGETHER}: block 1, baseline: the worker lost rank 1 on node2, which ended with exit ")
    assert failed.endswith("RuntimeError: planted trouble"), failed
    assert go_on == f"unfinished; continue with: envkit submit --resume {folder}"
    (failure,) = [event for event in record.read(folder / TOGETHER) if event["event"] == "failure"]
    assert failure["time"] - died.stat().st_mtime < DEATH_S


def test_a_node_that_dies_ends_the_others(start, simulated, simulation, folder):
    simulation.worker("mine on 2 ranks", delay=HELD_S)
    process = start(*simulated)
    waiting_for(lambda: process.poll() is not None or started(simulation, "mine on 2 ranks") == 2)
    assert process.poll() is None, process.communicate()
    kill("node2")
    waiting_for(lambda: not running(f"{simulation.folder}/config.json"), DEATH_S)
    result = ended(process)
    assert result.returncode == 1, result
    assert last_lines(result)[0].startswith(f"{TOGETHER}: block 1, mine: the worker lost node2")
    assert record.read(folder / TOGETHER)[-1]["reason"] == "a worker failed"


def started(simulation, name):
    """How many simulated workers of this name were started: one on each node for each sample."""
    return [start["name"] for start in simulation.starts()].count(name)


def test_more_ranks_than_cores(cli, folder):
    """Each node is asked before any of them trains."""
    many = ("--nproc", 2048, "--scale", 64)  # of whose batches they could have an image each
    result = cli("submit", "baseline", "--nodes", 2, *many, *SHORT, "--blocks", 1, "--output", folder)
    assert result.returncode == 2, result
    line = last_lines(result)[0]
    assert line.startswith("node1, node2: --nproc 2048: only "), line
    assert " usable (this node), and each rank needs its own; " in line
    assert not (folder / TOGETHER).exists()


def test_a_node_of_several_that_has_another_image(cli, folder):
    """None of them trains; Apptainer is not started."""
    sif = LOCAL / "image.sif"
    sif.write_bytes(b"the image")
    (NODES / "node2/local/image.sif").write_bytes(b"another image")
    result = cli("submit", "baseline", "--engine", "apptainer", "--sif", sif, *JOINT, "--blocks", 1, "--output", folder)
    assert result.returncode == 2, result
    assert last_lines(result)[0].startswith(f"node2: {sif}: is another image here (sha256:")
    assert not (folder / TOGETHER).exists()
