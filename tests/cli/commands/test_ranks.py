"""``envkit bench --nproc`` and ``--weak``: what is worked out and refused; simulated workers of 4 CPUs and 2 cores."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest
from envkit.bench import quality
from envkit.bench.study import Study
from envkit.engines import step
from envkit.engines.messages import ExitStatus, Killed, OverMemoryLimit
from envkit.rendering import text
from envkit.worker.messages import ProcessKilled
from envkit.worker.workloads import WORKLOADS

from tests.cli.commands.conftest import words
from tests.simulation import STEADY, times


@dataclass(frozen=True)
class Scaling:
    """How two ranks train, what a step takes on them beside one process on half the CPUs, and what is printed."""

    options: tuple[str, ...]
    kind: str
    beside: str  # the arm that speedups are over
    baseline: float
    mine: float
    work: int  # of a step, in steps of what it is beside
    printed: tuple[str, ...]
    page: str
    markdown: str
    details: str


STRONG = Scaling(
    (), "strong scaling", "1 process", 0.625, 0.5, 1,
    ("Scaling baseline on 2 ranks: 1.6", "x the speed of 1 baseline process (95% CI ", "workload cnn (2 ranks)",
     ": within 0.0e+00 of 1 process's over 3 steps (tolerance 0.001)"),
    "Scaling", "mine on 2 ranks: 2.0", "ranks baseline 2, mine 2; each on its share of the CPUs",
)  # fmt: skip
WEAK = Scaling(
    ("--weak",), "weak scaling", "1 process on 1/2", 1.25, 1.0, 2,
    ("Scaling baseline on 2 ranks, 2 times the batch: 1.6", "workload cnn (2 ranks, weak scaling)",
     "x the images/s of 1 baseline process on 1/2 of the CPUs (95% CI ",
     "not compared: 2 ranks train on 2 times the batch",
     "weak scaling: 2 ranks, 2 times the batch of 1 process; compare images/s"),
    "mine against baseline, weak scaling", "mine on 2 ranks, 2 times the batch: 2.0",
    "splitting each batch; weak scaling: 2 ranks, 2 times the batch",
)  # fmt: skip
both = pytest.mark.parametrize("scaling", [STRONG, WEAK], ids=["strong", "weak"])
EFFICIENCY = 0.8


@pytest.fixture
def on_two(bench, simulation, instant):
    """Measure on two ranks by workers of known speed; those of ``mine`` with what else is given."""
    simulation.worker("baseline on 1/2", seconds=STEADY)

    def run(*options, scaling=STRONG, profile="mine", blocks=8, **behaviour):
        simulation.worker("baseline on 2 ranks", seconds=times(scaling.baseline))
        simulation.worker("mine on 2 ranks", **{"seconds": times(scaling.mine), **behaviour})
        return bench(profile, "--nproc", 2, *scaling.options, "--blocks", blocks, *options)

    return run


@both
def test_speedup_efficiency_and_communication(on_two, cli, run_folder, undrawn, scaling):
    """In as many blocks as four comparisons take."""
    result = on_two(scaling=scaling).ended(0)
    found = json.loads(cli("report", run_folder, "--json").stdout)
    (verdict,) = found["comparisons"]
    assert (verdict["arm"], verdict["verdict"], verdict["losses"]["agree"]) == ("mine", "faster", True)
    told = {one["arm"]: one for one in found["scaling"]}
    assert told.keys() == {"baseline", "mine"}
    for arm, factor in (("baseline", scaling.baseline), ("mine", scaling.mine)):
        one, expected = told[arm], scaling.work / factor
        assert (one["kind"], one["ranks"], one["speedup_over"]) == (scaling.kind, 2, scaling.beside)
        assert one["speedup"]["ratio"] == pytest.approx(expected, rel=0.02)
        assert one["speedup"]["low"] < expected < one["speedup"]["high"]
        assert (one["communication_s"], one["communication_share"]) == (0.002, 0.1)
        losses = one["losses"] and (one["losses"]["agree"], one["losses"]["largest_difference"])
        assert losses == (None if scaling is WEAK else (True, 0))
    efficiency = told["baseline"]["efficiency"]
    assert efficiency["low"] < EFFICIENCY < efficiency["high"]
    assert efficiency["ratio"] == pytest.approx(EFFICIENCY, rel=0.02)
    assert told["baseline"]["efficiency_over"] == "1 process on 1/2"
    assert told["mine"]["efficiency"] is None  # the baseline on a rank's part of the CPUs says nothing of it

    text = words(result.stdout)
    for said in (*scaling.printed, "; efficiency 0.8", "-- torchrun --nproc-per-node 2 train.py"):
        assert said in text
    assert text.count("'s ranks communicate or wait for 10% of a step, by the profiler") == 2
    assert text.count("over 3 steps (tolerance 0.001)") + text.count("not compared: 2 ranks") == 2
    # one process is what the others are held against, and no profile to choose
    assert "keep 1 process" not in text
    page, markdown = run_folder / "x.html", cli("report", run_folder, "--markdown").stdout
    assert cli("report", run_folder, "--html", page).returncode == 0
    assert scaling.page in page.read_text()
    assert scaling.markdown in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|") and "reference" in line]
    assert [line.split("|")[1].strip() for line in rows] == ["baseline"]
    assert scaling.details in words(cli("report", run_folder, "--details").stdout)
    assert ("(2 ranks, weak scaling)" in words(cli("history", run_folder.parent).stdout)) == (scaling is WEAK)


def test_how_unlike_ranks_communicate(on_two, cli, run_folder):
    text = words(on_two(blocks=1, of_rank={"0": {"communication": {"seconds": 0.001, "share": 0.05}}}).stdout)
    assert text.count("for 10% of a step, by the profiler (5.0% to 10.0% by rank)") == 1
    assert text.count("for 10% of a step, by the profiler") == 2
    scaling = json.loads(cli("report", run_folder, "--json").stdout)["scaling"]
    assert {one["arm"]: one["communication_range"] for one in scaling} == {"mine": [0.05, 0.1], "baseline": [0.1, 0.1]}


@pytest.mark.parametrize(
    ("scaling", "first"), [(STRONG, "FASTER baseline on 2 ranks: 1.6"), (WEAK, "EFFICIENCY baseline on 2 ranks: 0.8")]
)
def test_the_baseline_alone(on_two, scaling, first):
    text = words(on_two(scaling=scaling, profile="baseline").stdout)
    assert text.startswith(first)
    assert scaling.printed[0] in text


@pytest.mark.parametrize(
    ("scaling", "said"),
    [
        (STRONG, "DIFFER from 1 process's by 1.0e-02 over 3 steps (tolerance 0.001)"),
        # of twice the batch one process has others
        (WEAK, "Losses DIFFER by up to 1.0%: results change"),
    ],
)
def test_losses_of_ranks_are_held_against_those_of_the_same_training(on_two, scaling, said):
    text = words(on_two(scaling=scaling, losses=[2.3 * 1.01, 2.299, 2.298]).stdout)
    assert said in text
    assert ("DIFFER from 1 process" in text) == (scaling is STRONG)


@pytest.mark.parametrize("what", ["code", "data"])
def test_ranks_of_larger_batches_train_by_the_same_code_on_the_same_data(on_two, what):
    result = on_two(scaling=WEAK, blocks=2, digests={what: "9" * 64}).ended(1)
    assert f"the worker its {what} differs from that of earlier samples" in words(result.stdout)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_one_process_on_a_part_of_the_cpus_must_have_as_many_as_a_rank(on_two, simulation, seed):
    """Whichever of them comes first."""
    simulation.worker("baseline on 1/2", seconds=STEADY, usage={"worker_cpus": 4})
    result = on_two("--seed", seed).ended(1)
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
def test_what_an_engine_knows_of_a_failure_is_said_beside_the_rank(on_two, failure, more):
    problem = ProcessKilled("rank 1", "SIGKILL")
    result = on_two(does="problem", text=json.dumps({"problem": problem.to_json()}), failure=failure.to_json())
    said = f"mine: the worker {text(problem)}{f'; it {text(failure)}' if more else ''} "
    assert said in f"{words(result.stdout)} "


@pytest.mark.parametrize("name", [name for name, workload in WORKLOADS.items() if workload.batch])
def test_two_ranks_can_share_the_batches_of_whatever_says_so(instant, bench_arguments, name, cli, monkeypatch):
    monkeypatch.setattr(quality, "require", lambda workloads: None)  # these workers translate nothing
    arguments = bench_arguments("mine", "--nproc", 2, "--blocks", 1, "--workload", name)
    if WORKLOADS[name].generated:
        at = arguments.index("--data")
        del arguments[at : at + 2]
    assert cli(*arguments).returncode == 0


# --- profiles that have ranks of their own, and several nodes ---

OWN_RANKS = "ranks: 2\nexpect:\n  openmp.max_threads: ${physical_cores}\n"


def test_a_profile_with_ranks_is_measured_beside_one_process(bench, simulation, instant, events):
    simulation.worker("mine on 2 ranks", seconds=times(0.5))
    result = bench("mine", text=OWN_RANKS).ended(0)
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


# --- batches that grow with the ranks ---


def test_one_process_for_each_node_has_all_of_its_cpus(bench_arguments, cli, monkeypatch):
    monkeypatch.setattr(step, "require", lambda nodes: None)
    result = cli(*bench_arguments("mine", "--nodes", 2, "--weak", "--dry-run")).ended(0)
    asked = json.loads(result.stdout)
    assert [arm["name"] for arm in asked["arms"]] == ["baseline", "mine", "1 process"]
    assert (asked["nodes"], asked["ranks"], asked["weak"]) == (2, 1, True)


TWO = ("--nproc", 2, "--weak")
ONE = "--weak: the batch grows with the ranks, and there is one; add --nproc N, or leave it out"
FEWER = "--weak: 2 ranks with 768 images each need more than the 1,024 of segmentation; give a smaller --scale"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--weak",), ONE),
        (("--weak", "--nproc", 1), ONE),
        (
            (*TWO, "--workload", "loader"),
            "--weak: loader has no batch that grows with ranks; leave it out, or name one of: cnn, cnn-nobias, ",
        ),
        ((*TWO, "--workload", "all-reduce"), "--weak: all-reduce has no batch that grows with ranks; leave it out, "),
        ((*TWO, "--workload", "segmentation", "--scale", 64), FEWER),
        (
            ("--weak", "--nproc", 128, "--workload", "segmentation"),
            "--weak: 128 ranks with 12 images each need more than the 1,024 of segmentation; train on 85 ranks",
        ),
        ((*TWO, "--against-python", "/usr/bin/env"), "--weak: no arm runs one process on the CPUs of one rank for co"),
        (("--weak", "--full"), ONE),
    ],
)
def test_what_can_not_grow(refused, bench_arguments, run_folder, options, said):
    assert refused(*bench_arguments("mine", *options)).startswith(f"envkit: {said}")
    assert not run_folder.exists()
