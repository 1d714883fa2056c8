"""The tuner and the grid are held against each other by fresh samples, and the page judges by whole intervals."""

from __future__ import annotations

import json

import pytest
from envkit.cli import tuning

from benchmarks import tune_against_grid
from tests.benchmarks.conftest import refusal
from tests.instant_engine import replace_engine
from tests.tuning.planted_engine import PlantedEngine

SPACE = """\
name: small
title: A test
parameters:
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000]}
  bind: {variable: OMP_DYNAMIC, values: [unset, true]}
  allocator: {choices: {glibc: , jemalloc: {preload: [jemalloc]}}}
"""


@pytest.fixture
def engine(simulation, monkeypatch):
    """jemalloc and one spin count are good."""
    made = PlantedEngine(
        simulation, lambda given: 0.2 * ("LD_PRELOAD" in given) + 0.15 * (given.get("GOMP_SPINCOUNT") == "1000")
    )
    replace_engine(monkeypatch, "local", made)
    return made


@pytest.fixture
def run(engine, in_process, write_profile, benchmark_script, tmp_path, monkeypatch):
    """Run the benchmark from ``tmp_path``, with the runner's commands in this process."""
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    write_profile("baseline", folder=shipped)
    monkeypatch.setattr(tuning, "SHIPPED_FOLDER", shipped)
    (tmp_path / "small.yaml").write_text(SPACE)

    monkeypatch.chdir(tmp_path)

    def start(*options):
        fixed = ["--space", "small.yaml", "--data", "synthetic", "--steps", 3, "--grid-blocks", 32]
        paths = ["--results", "results/t.jsonl", "--page", "page.md"]
        return benchmark_script(tune_against_grid, *fixed, *paths, "--searches", 2, "--side-blocks", 10, *options)

    return start


def test_the_searches_are_held_against_the_best_of_the_grids_first_three(run, engine, tmp_path):
    result = run()
    assert (result.returncode, result.stderr) == (0, ""), result
    page = (tmp_path / "page.md").read_text()
    lines = [json.loads(line) for line in (tmp_path / "results/t.jsonl").read_text().splitlines()]
    grid, searches, side = lines[1], lines[2:4], lines[4]
    assert list(side["grid"]) == ["grid-1", "grid-2", "grid-3"]
    assert side["optimum"] == max(side["grid"], key=lambda name: side["grid"][name]["ratio"])
    optimum = grid["top"][int(side["optimum"][-1]) - 1]["title"]
    assert f"- the grid's optimum: {optimum}; its speed is 1.4" in page
    assert "best 3 of the grid and what each search wrote" in page
    verdicts = []
    for seed, line in enumerate(searches, 1):
        verdicts.append("met" if "spin=1000" in line["found"] and "jemalloc" in line["found"] else "missed")
        row = next(row for row in page.splitlines() if row.startswith(f"| search, seed {seed} |"))
        assert row.endswith(f" | {verdicts[-1]} | {line['found']} |")
    assert f"interval: {verdicts.count('met')} met, 0 open, {verdicts.count('missed')} missed" in page
    shares = [f"{line['seconds'] / grid['seconds']:.1%}" for line in searches]
    assert f"took, against the quarter: {', '.join(shares)}: " in page

    # the page alone is made again, and nothing that was measured otherwise is mixed in
    trained = engine.trained
    assert run().returncode == 0
    for option, now, key, before in (
        ("--searches", 1, "searches", 2),
        ("--side-blocks", 11, "side_blocks", 10),
        ("--steps", 5, "steps", 3),
        ("--warmup-steps", 5, "warmup_steps", "the tuner's own"),
    ):
        said = f"tune_against_grid: {tmp_path}/results/t.jsonl: was measured with {key} {before}, and now it is {now}; "
        assert refusal(run(option, now)).startswith(f"{said}move the file away")
    assert engine.trained == trained


def test_too_few_blocks_for_intervals_are_named_before_anything_is_measured(run, engine):
    said = refusal(run("--side-blocks", 6))
    assert "--side-blocks 6: too few for 9 intervals that hold together; give more" in said
    assert engine.trained == 0


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.97, 1.01, "met"), (0.96, 0.98, "open"), (0.94, 0.969, "missed")]
)
def test_three_percent_is_judged_by_the_whole_interval(low, high, verdict):
    assert tune_against_grid._verdict({"low": low, "high": high}) == verdict


def test_a_search_that_took_longer_than_the_quarter_is_counted_as_such():
    shares = tune_against_grid._shares([{"seconds": 24.0}, {"seconds": 26.0}], {"seconds": 100.0})
    assert shares == "24.0%, 26.0%: 1 of 2 within it"
