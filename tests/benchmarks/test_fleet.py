"""The simulated fleet is what it says, and the page has what was found of it."""

from __future__ import annotations

import json

import pytest
from envkit.bench import record
from envkit.cluster.fleet import findings

from benchmarks import fleet as benchmark
from benchmarks import fleet_alarms, fleet_records
from benchmarks.fleet_alarms import NOISES, SPREADS
from benchmarks.fleet_records import PLANTED
from tests import records
from tests.benchmarks.conftest import refusal
from tests.cluster.fleet.nodes import node


@pytest.fixture
def template(tmp_path):
    return node(tmp_path, "template", profiles=("baseline",))


def test_records_have_what_was_planted(template, tmp_path):
    fleet = fleet_records.simulated(1000, 8, seed=1)
    assert [fleet.slower.count(group.slower) for group in PLANTED] == [group.of_thousand for group in PLANTED]
    few = fleet_records.Simulated(fleet.slower[:5], [{"microcode": "x"}, {}, {}, {}, {}], fleet.step_s[:5])
    events = fleet_records.quiet(record.read(template))
    written = fleet_records.write(tmp_path / "fleet", events, few, seed=1)
    assert written == sum(path.stat().st_size for path in tmp_path.glob("fleet/*/record.jsonl"))
    nodes, left_out = findings.reading.read(tmp_path / "fleet", None)
    assert left_out == []
    assert [one.name for one in nodes] == few.names
    for one, step_s in zip(nodes, few.step_s, strict=True):
        assert one.step_s == pytest.approx(step_s.tolist(), rel=1e-4)
        assert one.samples_with_interference == 0
    assert [one.facts.get("microcode") for one in nodes] == ["x", None, None, None, None]


def test_the_same_seed_is_the_same_fleet():
    one, again, other = (fleet_records.simulated(50, 6, seed) for seed in (1, 1, 2))
    assert (one.step_s == again.step_s).all()
    assert not (one.step_s == other.step_s).all()


@pytest.fixture
def quick(monkeypatch):
    """The report in this process, and two lines about false alarms."""

    def report(place, folder):
        document = json.loads(json.dumps(findings.find(place, None, 0.02).to_json()))
        return benchmark.Reported(1.5, 0.5, 2**28, document)

    monkeypatch.setattr(benchmark, "_report", report)
    monkeypatch.setattr(benchmark, "LINES", (("normal", "none", 50, 8), ("heavy tails", "2%", 8, 20)))


def test_the_page(quick, template, benchmark_script, page_file, tmp_path):
    arguments = ("--nodes", 60, "--samples", 8, "--alarm-nodes", 100, "--template", template)
    result = benchmark_script(benchmark, *arguments, "--folder", tmp_path / "here", "--page", page_file)
    assert result.returncode == 0, result.stderr
    text = page_file.read_text()
    assert "60 records of 8 samples each" in text
    assert "| in the page cache | 1.5 | 60 | 0.5 | 256 | 1,024 | yes |" in text
    for line in ("| 50% | 1 | 1 |", "| healthy | 55 | 0 |", "| normal | none | 50 x 8 |"):
        assert line in text
    assert list((tmp_path / "here").iterdir()) == []


def test_a_report_as_a_process_of_its_own(tmp_path):
    place = tmp_path / "fleet"
    for number in range(6):
        node(place, f"n{number}", 0.5 if number == 0 else 0.0)
    reported = benchmark._report(place, tmp_path)
    assert benchmark.called_slow(reported.document) == {"n0"}
    assert reported.cpu_s > 0
    assert 0 < reported.seconds < 100
    assert 2**24 < reported.peak_bytes < 2**31


def test_a_template_that_is_none(benchmark_script, tmp_path):
    several = records.write(tmp_path / "run", records.run_events())
    said = refusal(benchmark_script(benchmark, "--template", several, "--nodes", 5))
    assert "must be a run of one profile that ended" in said


def test_rates_count_healthy_and_slow_nodes_apart():
    found = fleet_alarms.rates(NOISES["normal"], SPREADS["none"], 50, 20, at_least=150)
    assert found.nodes == 150 - 6
    assert (found.false_alarms, found.found[0.25]) == (0, 1.0)
