"""The page of a matrix run, from its record."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from envkit.cli import measuring
from envkit.messages import Printed

from benchmarks import matrix
from tests import records
from tests.benchmarks.conftest import refusal
from tests.reports import events_of
from tests.simulation import times

STARTED = {"command": ["/somewhere/__main__.py", "matrix", "--steps", "3"], "kit_version": "0.1.0"}


@pytest.fixture
def folder(tmp_path):
    others = {"tcmalloc": {"seconds": times(0.7)}, "jemalloc": {"seconds": times(1.6)}, "same": {}}
    events = events_of(blocks=12, others=others)
    left_out = {
        "event": "left-out",
        "time": events[0]["time"],
        "profiles": {"smt": Printed("needs two | threads").to_json()},
    }
    return records.write(tmp_path / "20261121-120000-matrix", [{**events[0], **STARTED}, left_out, *events[1:]])


def test_the_page_has_the_ranking_the_profiles_and_what_was_left_out(folder, benchmark_script, page_file):
    result = benchmark_script(matrix, folder, "--page", page_file)
    assert (result.returncode, result.stderr) == (0, "")
    text = page_file.read_text()
    ranking = text.split("## The ranking\n\n")[1].split("\n\n")[0].splitlines()[2:]
    assert [row.split(" | ")[0].lstrip("| ") for row in ranking][:2] == ["mine", "tcmalloc"]
    assert ranking[-1].startswith("| jemalloc | ")
    assert "| slower |" in ranking[-1]
    assert "The run: `envkit matrix --steps 3`" in text
    assert "- left out: smt: needs two | threads" in text
    facts, *samples = map(json.loads, page_file.with_suffix(".jsonl").read_text().splitlines())
    assert facts["usable_cpus"] >= 1
    assert len(samples) == 12 * 5  # 12 blocks of five arms
    assert samples[0].keys() == {"arm", "block", "seconds", "disturbed"}
    assert [(sample["arm"], sample["block"]) for sample in samples[:2]] == [("baseline", 0), ("baseline", 1)]
    about = text.split("## What they are")[1]
    assert "| tcmalloc | A test | Many threads with small blocks" in about
    assert "- Use: envkit exec " in text
    for theme, ink in (("light", "#1f1f1f"), ("dark", "#e8e8e6")):
        picture = page_file.with_name(f"page-{theme}.svg").read_text()
        assert "tcmalloc" in "".join(ElementTree.fromstring(picture).itertext())
        assert ink in picture


def test_a_run_that_was_cut_short_makes_no_page(folder, benchmark_script, page_file):
    path = folder / "record.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    said = refusal(benchmark_script(matrix, folder, "--page", page_file))
    assert f"did not come to its end; continue with: envkit bench --resume {folder}" in said
    assert not page_file.exists()


def test_the_latest_run_is_taken(folder, benchmark_script, monkeypatch, page_file):
    monkeypatch.setattr(measuring, "RESULTS", folder.parent)
    assert benchmark_script(matrix, "--page", page_file).returncode == 0


def test_without_a_run_it_says_how_to_make_one(benchmark_script, page_file):
    said = refusal(benchmark_script(matrix, "--page", page_file))
    assert "has no run of all profiles yet; make one with: make matrix" in said
