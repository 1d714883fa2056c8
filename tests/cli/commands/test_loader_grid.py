"""``envkit loader-grid`` with simulated workers, and the loader's workloads: what is measured, printed and refused."""

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
    result = loader_grid(*SMALL).ended(0)
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
    result = loader_grid(*SMALL).ended(0)
    assert result.stdout.startswith("FASTEST  ")
    assert f"envkit: {text(MissingExtra('the picture', 'matplotlib', 'plots'))}" in result.stderr.splitlines()
    assert not (run_folder / "grid.png").exists()
    assert "picture" not in result.stdout


# --- epochs that end: --start-method and --persistent-workers ---

ALL = [f"loader-w2-b32-p2-{start}{stay}" for start in ("fork", "forkserver", "spawn") for stay in ("", "-persistent")]


def test_what_it_takes_to_begin_an_epoch_is_told_apart_from_the_batches_in_it(loader_grid, simulation, run_folder):
    """20 steps take a second in all, and those that begin an epoch 3 seconds more."""
    simulation.worker("baseline", seconds=[1.0], begin_s=3.0)
    result = loader_grid("--start-method", "fork,spawn,forkserver", "--persistent-workers", "yes,no", "--blocks", 1)
    assert result.returncode == 0, result.stderr
    assert measured(simulation) == ALL
    study = Study.from_json(record.first(run_folder)["study"])
    assert {arm.profile for arm in study.arms} == {"baseline"}
    lines = result.stdout.splitlines()
    begin = lines.index("epochs of 5 batches of 32, 2 workers, prefetch_factor 2")
    assert [line.split() for line in lines[begin + 1 : begin + 4]] == [
        ["start", "persistent", "s", "to", "begin", "min", "to", "max", "ms/batch", "s/epoch"],
        ["fork", "yes", "3.050", "3.050", "to", "3.050", "50.0", "3.25"],
        ["fork", "no", "3.050", "3.050", "to", "3.050", "50.0", "3.25"],
    ]
    assert (run_folder / "grid.png").read_bytes().startswith(b"\x89PNG")


def test_one_option_is_enough_and_json_has_every_cell(loader_grid, simulation, undrawn):
    options = ("--persistent-workers", "no", "--batches", "16,32", "--blocks", 1)
    document = json.loads(loader_grid(*options, "--json").stdout)
    assert measured(simulation) == [f"loader-w2-b{batch}-p2-{start}" for batch in (16, 32)
                                    for start in ("fork", "forkserver", "spawn")]  # fmt: skip
    first = document["cells"][0]
    assert (first["start_method"], first["persistent_workers"], first["batches_per_epoch"]) == ("fork", False, 10)
    assert len(document["cells"]) == 6


def test_a_sample_has_whole_epochs_whatever_the_pace(loader_grid, simulation, undrawn):
    simulation.worker("baseline warming", seconds=[1.0], begin_s=5.0)  # of 12 steps some are 60 times as slow
    assert loader_grid("--start-method", "spawn", "--batches", "40", "--blocks", 1).returncode == 0
    for start in simulation.starts():
        assert (start["training"]["warmup_steps"], start["training"]["steps"]) == (4, 16)


STAYING = "loader-w2-b32-p2-spawn-persistent"


@pytest.mark.parametrize(
    ("workload", "seen", "said"),
    [
        (STAYING, {"start": "fork"}, "used spawn to start DataLoader workers, but used fork"),
        (STAYING, {"start": None}, "DataLoader workers by spawn, but how they were started is unknown"),
        (STAYING, {"persistent": False}, "kept its DataLoader workers between epochs, but the next epoch had new ones"),
        (STAYING, {"persistent": None}, "so it is unknown whether DataLoader's workers persist; give more --steps"),
        ("loader-w2-b32-p2-fork", {"persistent": True}, "started new DataLoader workers for each epoch, but kept them"),
    ],
)
def test_a_setting_that_did_not_take_effect_is_an_error(own, simulation, workload, seen, said):
    simulation.worker("mine", loader=seen)
    result = own("--workload", workload, "--steps", 10).ended(1)
    line = words(result.stdout).partition("Failed ")[2]
    assert line.startswith("block 1, mine: the worker ")
    assert said in line


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--persistent-workers", "yes", "--workers", "0,2"],
         "--persistent-workers has no effect with --workers 0, which starts no worker; leave it out"),
        (["--start-method", "fork", "--batches", "128"],
         "--batches 128: an epoch has 160 images, and needs 2 batches or more with --start-method; "
         "give at most 80"),
        (["--start-method", "fork", "--steps", "3"],
         "--steps 3: an epoch of batches of 32 has 5 steps, and a sample must see one end; give at least 5"),
    ],
)  # fmt: skip
def test_what_can_t_be(refused, run_folder, options, line):
    assert refused("loader-grid", *options, "--output", run_folder).startswith(f"envkit: {line}")
    assert not run_folder.exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["loader-grid", "--start-method", "fork,spwan"],
         "--start-method: no start method 'spwan' (did you mean 'spawn'?); choose one of: fork, spawn, forkserver"),
        (["loader-grid", "--persistent-workers", "maybe"],
         "--persistent-workers: no answer 'maybe'; choose one of: no, yes"),
        (["bench", "jemalloc", "--workload", "loader-w2-b32-p2-spwan"],
         "--workload: 'loader-w2-b32-p2-spwan' is not a loader workload; write them as "
         "loader-w4-b64-p2 or, with epochs that end"),
        (["bench", "jemalloc", "--workload", "loader-w0-b32-spawn"],
         "--workload: 'loader-w0-b32-spawn' is not a loader workload; write them as "),
        (["tune", "--workload", "cnn-spawn"], "--workload: no workload 'cnn-spawn'; choose one of: cnn, "),
    ],
)  # fmt: skip
def test_words_that_are_not_known(cli, arguments, line):
    result = cli(*arguments).ended(2, stdout="")
    assert result.stderr.startswith(f"envkit: {line}")
