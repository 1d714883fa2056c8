"""``envkit bench --nproc``: what is started, worked out and refused; with simulated workers of 4 CPUs and 2 cores."""

from __future__ import annotations

import json
import re

import pytest
from envkit.bench import quality
from envkit.bench.study import Study
from envkit.engines import step
from envkit.engines.messages import ExitStatus, Killed, OverMemoryLimit
from envkit.rendering import text
from envkit.worker.messages import ProcessKilled
from envkit.worker.request import Ranks, Train
from envkit.worker.workloads import WORKLOADS

from tests.cli.commands.conftest import words
from tests.simulation import STEADY, times
from tests.worker_runs import document_of

# What a step takes beside that of one process: on two ranks of the baseline and of the profile, and on half the CPUs.
BASELINE, MINE, HALF = 0.625, 0.5, 1.0


@pytest.fixture
def workers(simulation, instant):
    """Workers of known speed: `mine` on 2 ranks, with what else is given."""

    def plant(**behaviour):
        simulation.worker("baseline on 2 ranks", seconds=times(BASELINE))
        simulation.worker("mine on 2 ranks", **{"seconds": times(MINE), **behaviour})
        simulation.worker("baseline on 1/2", seconds=[HALF * second for second in STEADY])

    plant()
    return plant


def test_speedup_efficiency_and_communication(bench, workers):
    """In as many blocks as four comparisons take."""
    result = bench("mine", "--nproc", 2, "--blocks", 8, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    (verdict,) = found["comparisons"]
    assert (verdict["arm"], verdict["verdict"]) == ("mine", "faster")
    scaling = {one["arm"]: one for one in found["scaling"]}
    assert scaling.keys() == {"baseline", "mine"}
    for arm, factor in (("baseline", BASELINE), ("mine", MINE)):
        one = scaling[arm]
        assert one["ranks"] == 2
        assert one["speedup"]["ratio"] == pytest.approx(1 / factor, rel=0.02)
        assert one["speedup"]["low"] < 1 / factor < one["speedup"]["high"]
        assert (one["communication_s"], one["communication_share"]) == (0.002, 0.1)
        assert (one["losses"]["agree"], one["losses"]["largest_difference"]) == (True, 0)
    efficiency = scaling["baseline"]["efficiency"]
    assert efficiency["low"] < HALF / (2 * BASELINE) < efficiency["high"]
    assert efficiency["ratio"] == pytest.approx(HALF / (2 * BASELINE), rel=0.02)
    assert scaling["mine"]["efficiency"] is None  # the baseline on a rank's part of the CPUs says nothing of it
    assert [one["arm"] for one in found["measured"]] == ["baseline", "mine", "1 process", "1 process on 1/2"]


def test_the_report(bench, cli, workers, run_folder, undrawn):
    result = bench("mine", "--nproc", 2, "--blocks", 8)
    text = words(result.stdout)
    assert "Scaling baseline on 2 ranks: 1.6" in text
    assert "x the speed of 1 baseline process (95% CI " in text
    assert "; efficiency 0.8" in text
    assert text.count("'s ranks communicate or wait for 10% of a step, by the profiler") == 2
    assert text.count(": within 0.0e+00 of 1 process's over 3 steps (tolerance 0.001)") == 2
    assert "workload cnn (2 ranks)" in text
    # one process is what the others are held against, and no profile to choose
    assert "-- torchrun --nproc-per-node 2 train.py" in text
    assert "keep 1 process" not in text
    page, markdown = run_folder / "x.html", cli("report", run_folder, "--markdown")
    assert cli("report", run_folder, "--html", page).returncode == 0
    assert "Scaling" in page.read_text()
    assert "mine on 2 ranks: 2.0" in markdown.stdout
    rows = [line for line in markdown.stdout.splitlines() if line.startswith("|") and "reference" in line]
    assert [line.split("|")[1].strip() for line in rows] == ["baseline"]
    assert (
        "ranks     baseline 2, mine 2; each on its share of the CPUs" in cli("report", run_folder, "--details").stdout
    )


def test_how_unlike_ranks_communicate(bench, cli, workers, run_folder):
    workers(of_rank={"0": {"communication": {"seconds": 0.001, "share": 0.05}}})
    text = words(bench("mine", "--nproc", 2, "--blocks", 1).stdout)
    assert text.count("for 10% of a step, by the profiler (5.0% to 10.0% by rank)") == 1
    assert text.count("for 10% of a step, by the profiler") == 2
    scaling = json.loads(cli("report", run_folder, "--json").stdout)["scaling"]
    assert {one["arm"]: one["communication_range"] for one in scaling} == {"mine": [0.05, 0.1], "baseline": [0.1, 0.1]}


def test_the_baseline_alone(bench, workers):
    assert "FASTER baseline on 2 ranks: 1.6" in words(bench("baseline", "--nproc", 2, "--blocks", 8).stdout)


def test_losses_of_ranks_are_held_against_those_of_one_process(bench, workers):
    workers(losses=[2.3 * 1.01, 2.299, 2.298])
    said = "DIFFER from 1 process's by 1.0e-02 over 3 steps (tolerance 0.001)"
    assert said in words(bench("mine", "--nproc", 2, "--blocks", 8).stdout)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_one_process_on_a_part_of_the_cpus_must_have_as_many_as_a_rank(bench, simulation, workers, seed):
    """Whichever of them comes first."""
    simulation.worker("baseline on 1/2", seconds=STEADY, usage={"worker_cpus": 4})
    result = bench("mine", "--nproc", 2, "--seed", seed)
    assert result.returncode == 1
    assert re.search(
        "1 process on 1/2: the worker had 4 CPUs where one of (baseline|mine) had 2; efficiency needs"
        "|(baseline|mine): the worker had 2 CPUs where one of 1 process on 1/2 had 4; efficiency needs",
        words(result.stdout),
    )


@pytest.mark.parametrize(
    ("failure", "more"),
    [
        (OverMemoryLimit("1g"), True),
        (Killed("SIGKILL", "1g"), True),
        (Killed("SIGKILL"), False),
        (ExitStatus(137), False),
    ],
)
def test_what_an_engine_knows_of_a_failure_is_said_beside_the_rank(bench, workers, failure, more):
    problem = ProcessKilled("rank 1", "SIGKILL")
    workers(does="problem", text=json.dumps({"problem": problem.to_json()}), failure=failure.to_json())
    said = f"mine: the worker {text(problem)}{f'; it {text(failure)}' if more else ''} "
    assert said in f"{words(bench('mine', '--nproc', 2).stdout)} "


@pytest.mark.parametrize("name", [name for name, workload in WORKLOADS.items() if workload.batch])
def test_two_ranks_can_share_the_batches_of_whatever_says_so(workers, bench_arguments, name, cli, monkeypatch):
    monkeypatch.setattr(quality, "require", lambda workloads: None)  # these workers translate nothing
    arguments = bench_arguments("mine", "--nproc", 2, "--blocks", 1, "--workload", name)
    if WORKLOADS[name].generated:
        at = arguments.index("--data")
        del arguments[at : at + 2]
    assert cli(*arguments).returncode == 0


# --- profiles that have ranks of their own, and several nodes ---

OWN_RANKS = "ranks: 2\nexpect:\n  openmp.max_threads: ${physical_cores}\n"


def test_a_profile_with_ranks_is_measured_beside_one_process(bench, simulation, instant, events):
    simulation.worker("mine on 2 ranks", seconds=times(MINE))
    result = bench("mine", text=OWN_RANKS)
    assert result.returncode == 0, result.stdout
    assert {start["name"] for start in simulation.starts()} == {"baseline", "mine on 2 ranks"}
    assert "Waiting mine's ranks communicate" in words(result.stdout)
    assert [arm.ranks for arm in Study.from_json(events()[0]["study"]).arms] == [None, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--nodes 2: this process is not in a Slurm job; submit one: envkit submit PROFILE --nodes 2"),
        (("--engine", "docker"), "--engine docker: on nodes workers are started by local, apptainer or enroot; choose"),
    ],
)
def test_nodes_without_a_job(refused, options, said, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    assert refused("bench", "intel-omp", "--nodes", 2, *options).startswith(f"envkit: {said}")


def test_a_profile_s_own_ranks_are_on_one_node(refused, write_profile, monkeypatch):
    monkeypatch.setattr(step, "require", lambda nodes: None)
    line = refused("bench", write_profile("mine", "ranks: 2\n"), "--nodes", 2)
    assert line == "envkit: profile 'mine' has 2 ranks of its own, on one node; leave --nodes out"
