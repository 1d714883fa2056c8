from __future__ import annotations

import json

import pytest

from runner import record
from tests.simulation import times


def test_the_report_is_that_of_the_run(bench, simulation, cli, run_folder):
    simulation.worker("mine", seconds=times(0.5))
    printed = bench("mine", OMP_NUM_THREADS="3").stdout
    again = cli("report", run_folder)
    assert (again.returncode, again.stdout, again.stderr) == (0, printed, "")


def test_a_run_without_any_sample(bench, simulation, cli, run_folder):
    simulation.worker("baseline", does="exit", status=3)
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine").returncode == 1
    assert cli("report", run_folder).returncode == 0
    document = json.loads(cli("report", run_folder, "--json").stdout)
    assert document["measured"] == []
    assert document["comparisons"][0]["verdict"] == "failed"
    assert [one["problem"] for one in document["failures"]] == ["ended with exit status 3"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "record.jsonl: can't be read: No such file or directory; give the folder of a run"),
        ("", "is not the record of a run"),
        ("nonsense\n", "record.jsonl:1: damaged line; remove it to read the rest"),
        ('{"event": "run", "schema": 99}\n', "was written by a later version (schema 99, "),
    ],
)
def test_a_folder_without_a_readable_record(refused, tmp_path, content, words):
    if content is not None:
        (tmp_path / record.FILE_NAME).write_text(content)
    assert words in refused("report", tmp_path)


def test_a_missing_folder(refused, tmp_path):
    message = refused("report", tmp_path / "none")
    assert message == (
        f"runner: {tmp_path}/none/record.jsonl: can't be read: No such file or directory; give the folder of a run"
    )
