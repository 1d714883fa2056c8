"""``envkit export``: what gets where, and what happens when it can't."""

from __future__ import annotations

import csv
import io
import json

import pytest
from envkit.bench import record
from envkit.report.exports import FORMATS

from tests.records import arm, run_events, samples, write
from tests.simulation import times


@pytest.fixture
def results(tmp_path):
    """Two runs of seven blocks."""
    place = tmp_path / "results"
    write(place / "a", run_events())
    write(place / "b", run_events(arm("baseline"), arm("other")))
    return place


def test_every_sample_of_a_real_run_is_a_row(bench, simulation, instant, cli, run_folder):
    simulation.worker("mine", seconds=times(0.5))
    assert bench("mine", "--blocks", 2).returncode == 0
    result = cli("export", run_folder, "--format", "csv").ended(0, stderr="")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    recorded = samples(record.read(run_folder))
    assert [(int(row["block"]), row["arm"], float(row["seconds"])) for row in rows] == [
        (event["block"], event["arm"], event["seconds"]) for event in recorded
    ]
    assert {row["run"] for row in rows} == {str(run_folder)}


def test_a_folder_of_runs(cli, results):
    rows = json.loads(cli("export", results, "--format", "json").stdout)
    assert [row["run"] for row in rows] == [str(results / "a")] * 14 + [str(results / "b")] * 14
    assert {row["profile"] for row in rows} == {"baseline", "mine", "other"}


def test_several_folders_and_no_run_twice(cli, results):
    rows = json.loads(cli("export", results / "b", results, "--format", "json").stdout)
    assert [row["run"] for row in rows][::14] == [str(results / "b"), str(results / "a")]
    assert len(rows) == 28


def test_openmetrics(cli, results):
    text = cli("export", results, "--format", "openmetrics").stdout
    assert sum(line.startswith("envkit_speedup_ratio{") for line in text.splitlines()) == 2
    assert sum(line.startswith("envkit_samples{") for line in text.splitlines()) == 4
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_holds_what_would_be_printed(cli, results, tmp_path, name):
    file = tmp_path / "out"
    cli("export", results, "--format", name, "--output", file).ended(0, stdout="", stderr="")
    if name == "parquet":
        from pyarrow import parquet  # not before it is needed: each process that collects tests would import it

        assert parquet.read_table(file).num_rows == 28
    else:
        assert file.read_text() == cli("export", results, "--format", name).stdout


def test_a_record_that_cannot_be_used_is_named_and_the_others_are_written(cli, results):
    (results / "a" / record.FILE_NAME).write_text("nonsense\n")
    result = cli("export", results, "--format", "json").ended(0)
    assert {row["run"] for row in json.loads(result.stdout)} == {str(results / "b")}
    assert result.stderr == (
        f"envkit: left out: {results}/a/record.jsonl:1: damaged line; remove it to read the rest\n"
    )


@pytest.mark.parametrize("content", ["nonsense\n", f'{{"event": "run", "time": 1, "schema": {record.SCHEMA}}}\n'])
def test_a_record_that_was_asked_for_by_name_must_be_usable(refused, results, content):
    (results / "a" / record.FILE_NAME).write_text(content)
    assert f"{results}/a/record.jsonl" in refused("export", results / "a", "--format", "json")


@pytest.mark.parametrize("arguments", [(), ("--format", "xlsx")])
def test_the_format_is_chosen_among_those_that_there_are(cli, arguments):
    result = cli("export", *arguments).ended(2)
    assert "--format" in result.stderr.splitlines()[-1]


def test_an_export_without_a_row_says_so(cli, tmp_path):
    folder = write(tmp_path / "run", run_events(blocks=0))
    result = cli("export", folder, "--format", "csv")
    assert (result.returncode, result.stdout.strip()) == (0, "")
    assert result.stderr == f"envkit: {folder}: no worker has ended a sample, so there is nothing to export\n"
