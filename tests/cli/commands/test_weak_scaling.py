"""``--nproc N --weak``: what is started, worked out and refused; with simulated workers of 4 CPUs and 2 cores."""

from __future__ import annotations

import json

import pytest
from envkit.bench.study import Study
from envkit.engines import step

from tests.cli.commands.conftest import words
from tests.simulation import STEADY, times

# What a step takes on two ranks, which train twice the batch, beside one process on half the CPUs.
BASELINE, MINE = 1.25, 1.0
WEAK = ("--nproc", 2, "--weak")


@pytest.fixture
def workers(simulation, instant):
    """Workers of known speed: `mine` on 2 ranks, with what else is given."""

    def plant(**behaviour):
        simulation.worker("baseline on 2 ranks", seconds=times(BASELINE))
        simulation.worker("mine on 2 ranks", **{"seconds": times(MINE), **behaviour})
        simulation.worker("baseline on 1/2", seconds=STEADY)

    plant()
    return plant


def test_efficiency_is_items_per_second_of_each_rank_over_those_of_one_process(bench, workers):
    result = bench("mine", *WEAK, "--blocks", 8, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["study"]["weak"] is True
    scaling = {one["arm"]: one for one in found["scaling"]}
    for arm, factor in (("baseline", BASELINE), ("mine", MINE)):
        one = scaling[arm]
        assert (one["kind"], one["ranks"], one["losses"]) == ("weak scaling", 2, None)
        assert one["speedup_over"] == "1 process on 1/2"
        assert one["speedup"]["ratio"] == pytest.approx(2 / factor, rel=0.02)
        assert one["speedup"]["low"] < 2 / factor < one["speedup"]["high"]
    efficiency = scaling["baseline"]["efficiency"]
    assert efficiency["low"] < 1 / BASELINE < efficiency["high"]
    assert efficiency["ratio"] == pytest.approx(1 / BASELINE, rel=0.02)
    assert scaling["baseline"]["efficiency_over"] == "1 process on 1/2"
    assert scaling["mine"]["efficiency"] is None
    (verdict,) = found["comparisons"]
    assert (verdict["verdict"], verdict["losses"]["agree"]) == ("faster", True)


def test_the_report(bench, cli, workers, run_folder, undrawn):
    text = words(bench("mine", *WEAK, "--blocks", 8).stdout)
    assert "Scaling baseline on 2 ranks, 2 times the batch: 1.6" in text
    assert "x the images/s of 1 baseline process on 1/2 of the CPUs (95% CI " in text
    assert "; efficiency 0.8" in text
    assert text.count("not compared: 2 ranks train on 2 times the batch") == 2
    assert "weak scaling: 2 ranks, 2 times the batch of 1 process; compare images/s" in text
    assert "workload cnn (2 ranks, weak scaling)" in text
    page, markdown = run_folder / "x.html", cli("report", run_folder, "--markdown").stdout
    assert cli("report", run_folder, "--html", page).returncode == 0
    assert "mine against baseline, weak scaling" in page.read_text()
    assert "mine on 2 ranks, 2 times the batch: 2.0" in markdown
    details = words(cli("report", run_folder, "--details").stdout)
    assert "splitting each batch; weak scaling: 2 ranks, 2 times the batch" in details
    assert "(2 ranks, weak scaling)" in words(cli("history", run_folder.parent).stdout)


def test_the_baseline_alone(bench, workers):
    text = words(bench("baseline", *WEAK, "--blocks", 8).stdout)
    assert text.startswith("EFFICIENCY baseline on 2 ranks: 0.8"), text
    assert "x the images/s of 1 baseline process on 1/2 of the CPUs" in text


def test_losses_are_held_against_those_of_as_many_ranks_alone(bench, workers):
    workers(losses=[2.3 * 1.01, 2.299, 2.298])
    text = words(bench("mine", *WEAK, "--blocks", 8).stdout)
    assert "Losses DIFFER by up to 1.0%: results change" in text
    assert "DIFFER from 1 process" not in text


@pytest.mark.parametrize("what", ["code", "data"])
def test_ranks_train_by_the_same_code_on_the_same_data(bench, workers, what):
    workers(digests={what: "9" * 64})
    result = bench("mine", *WEAK, "--blocks", 2)
    assert result.returncode == 1
    assert f"the worker its {what} differs from that of earlier samples" in words(result.stdout)


def test_one_process_for_each_node_has_all_of_its_cpus(bench_arguments, cli, monkeypatch):
    monkeypatch.setattr(step, "require", lambda nodes: None)
    result = cli(*bench_arguments("mine", "--nodes", 2, "--weak", "--dry-run"))
    assert result.returncode == 0, result.stderr
    asked = json.loads(result.stdout)
    assert [arm["name"] for arm in asked["arms"]] == ["baseline", "mine", "1 process"]
    assert (asked["nodes"], asked["ranks"], asked["weak"]) == (2, 1, True)


ONE = "--weak: the batch grows with the ranks, and there is one; add --nproc N, or leave it out"
FEWER = "--weak: 2 ranks with 768 images each need more than the 1,024 of segmentation; give a smaller --scale"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--weak",), ONE),
        (("--weak", "--nproc", 1), ONE),
        (
            (*WEAK, "--workload", "loader"),
            "--weak: loader has no batch that grows with ranks; leave it out, or name one of: cnn, cnn-nobias, ",
        ),
        ((*WEAK, "--workload", "all-reduce"), "--weak: all-reduce has no batch that grows with ranks; leave it out, "),
        ((*WEAK, "--workload", "segmentation", "--scale", 64), FEWER),
        (
            ("--weak", "--nproc", 128, "--workload", "segmentation"),
            "--weak: 128 ranks with 12 images each need more than the 1,024 of segmentation; train on 85 ranks",
        ),
        ((*WEAK, "--against-python", "/usr/bin/env"), "--weak: no arm runs one process on the CPUs of one rank for co"),
        (("--weak", "--full"), ONE),
    ],
)
def test_what_can_not_grow(refused, bench_arguments, run_folder, options, said):
    assert refused(*bench_arguments("mine", *options)).startswith(f"envkit: {said}")
    assert not run_folder.exists()
