"""``envkit loader-grid`` with simulated workers: which cells it measures, what it prints and refuses."""

from __future__ import annotations

import json

import pytest
from envkit.bench import record
from envkit.bench.study import Study
from envkit.common import extras
from envkit.common.messages import MissingExtra
from envkit.rendering import text

from tests.cli.commands.conftest import words

SMALL = ("--workers", "0,2", "--batches", "16,32", "--blocks", 1)


def measured(simulation):
    return sorted({start["training"]["workload"] for start in simulation.starts()})


def test_every_cell_is_measured_in_one_interleaved_run(loader_grid, simulation, run_folder):
    result = loader_grid(*SMALL)
    assert result.returncode == 0, result.stderr
    assert measured(simulation) == ["loader-w0-b16", "loader-w0-b32", "loader-w2-b16-p2", "loader-w2-b32-p2"]
    study = Study.from_json(record.first(run_folder)["study"])
    assert (study.workload, study.data_of(study.reference)) == ("loader", "generated")
    assert {arm.profile for arm in study.arms} == {"baseline"}
    # as many images in each sample
    found = {start["training"]["workload"]: start["training"]["steps"] for start in simulation.starts()}
    assert found["loader-w0-b16"] == 2 * found["loader-w0-b32"] == 96
    assert "s per 1,000 images, prefetch_factor 2" in result.stdout
    assert result.stdout.startswith("FASTEST  ")
    assert "workload loader-w0-b16, loader-w0-b32, loader-w2-b16-p2, loader-w2-b32-p2" in words(result.stdout)
    assert (run_folder / "grid.png").read_bytes().startswith(b"\x89PNG")


def test_the_usual_grid(loader_grid, simulation, run_folder, undrawn):
    result = loader_grid()
    assert (result.returncode, "workload loader, 16 settings" in words(result.stdout)) == (0, True)
    names = {f"loader-w{workers}-b{batch}{'-p2' if workers else ''}"
             for workers in (0, 1, 2, 4) for batch in (16, 32, 64, 128)}  # fmt: skip
    assert set(measured(simulation)) == names
    assert len(simulation.starts()) == 3 * len(names)


@pytest.mark.parametrize(
    ("options", "workloads"),
    [
        # batches are made ahead by workers only
        (("--workers", "0,2", "--prefetch", "2,8"), ["loader-w0-b16", "loader-w2-b16-p2", "loader-w2-b16-p8"]),
        (("--workers", "1", "--pin-memory"), ["loader-w1-b16-p2", "loader-w1-b16-p2-pin"]),
    ],
)
def test_the_cells_of_other_settings(loader_grid, simulation, undrawn, options, workloads):
    assert loader_grid("--batches", "16", *options, "--blocks", 1).returncode == 0
    assert measured(simulation) == workloads


def test_a_profile(loader_grid, simulation, write_profile, run_folder, undrawn):
    path = write_profile("mine", "env:\n  SIMULATED: mine\n")
    assert loader_grid(path, *SMALL).returncode == 0
    assert {start["name"] for start in simulation.starts()} == {"mine"}


def test_without_matplotlib_it_prints_the_report_and_says_what_pictures_need(loader_grid, run_folder, monkeypatch):
    monkeypatch.setattr(extras, "is_there", lambda package: package != "matplotlib")
    result = loader_grid(*SMALL)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("FASTEST  ")
    assert f"envkit: {text(MissingExtra('the picture', 'matplotlib', 'plots'))}" in result.stderr.splitlines()
    assert not (run_folder / "grid.png").exists()
    assert "picture" not in result.stdout
