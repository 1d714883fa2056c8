"""The tuner's two orders are held against each other on models whose truth is given."""

from __future__ import annotations

import json

import pytest

from benchmarks import tune_order
from benchmarks.tune_order import Model, search
from tests.benchmarks.conftest import refusal

# The best is far behind in the space's order, and expected to be good.
LATE = {"truth": {"intel-omp": 1.3, "glibc-retain": 1.0}, "expected": {"intel-omp": 1.2, "glibc-retain": 1.0}}
# The best is the first of the space's order, and what is expected is wrong.
WRONG = {"truth": {"mimalloc-retain-mkl": 1.4, "intel-omp": 1.0}, "expected": {"intel-omp": 1.2}}
NOTHING = {"truth": {"intel-omp": 1.01}, "expected": {"intel-omp": 1.0}}


@pytest.fixture
def run(benchmark_script, tmp_path):
    def start(document):
        path = tmp_path / "map.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return benchmark_script(tune_order, "--runs", 3, "--map", path, "--page", tmp_path / "page.md")

    return start


def test_the_page_has_both_orders_for_each_model_that_gains(run, tmp_path):
    result = run({"models": {"late": LATE, "nothing": NOTHING}})
    assert (result.returncode, result.stderr) == (0, ""), result
    text = (tmp_path / "page.md").read_text()
    assert "Medians of 3 searches for each of 1 models, at 7 s a trial" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| late | intel-omp: 1.30 |")]
    tried_before, tried, settled_before, settled = (cell.split() for cell in row.strip("| ").split(" | ")[2:])
    assert int(tried[0]) <= 7 < int(tried_before[0])
    assert int(settled[0]) < int(settled_before[0])
    assert "Not here, as no profile makes them 3% faster: nothing." in text


def test_what_is_expected_wrongly_costs_little():
    model = Model("wrong", WRONG["truth"], WRONG["expected"])
    for seed in range(3):
        before, expected = (search(model, seed, by_expectation) for by_expectation in (False, True))
        assert max(before.tried, expected.tried) <= 7
        assert expected.settled < float("inf")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "must be JSON of the shape"),
        ({"models": {"late": {"truth": {"intel-omp": "fast"}, "expected": {}}}}, "must be JSON of the shape"),
        ({"models": {}}, "has no model"),
        ({"models": {"nothing": NOTHING}}, "no profile makes any model 3% faster"),
    ],
)
def test_a_map_that_says_nothing_is_refused(run, tmp_path, document, said):
    assert f"--map {tmp_path / 'map.json'}: {said}" in refusal(run(document))
