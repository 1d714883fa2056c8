"""What earlier versions wrote is read: a record, a baseline and a tuned profile, as they were made then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.profiles import profile

HERE = Path(__file__).parent
# A run of intel-omp against the baseline in 90 s, on two cores, 2026-11-24; its folders are called otherwise here, and
# the digests follow from that.
RECORD = HERE / "2026-11"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORD, tmp_path / "run"))


def test_a_record_is_reported(cli, folder):
    result = cli("report", folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("no difference found between intel-omp and the baseline here: ")
    document = json.loads(cli("report", folder, "--json").stdout)
    assert (document["ended"], document["design"]["planned"]) == ("planned blocks measured", 16)
    assert [one["samples"] for one in document["measured"]] == [16, 16]
    assert all(one["in_effect"] for one in document["measured"])


def test_a_record_is_drawn_listed_and_exported(cli, folder, tmp_path):
    options = ("--html", tmp_path / "page.html", "--markdown", tmp_path / "report.md")
    assert cli("report", folder, *options).returncode == 0
    assert "intel-omp" in cli("history", folder).stdout
    rows = json.loads(cli("export", folder, "--format", "json").stdout)
    assert len(rows) == len([event for event in record.read(folder) if event["event"] == "sample"]) == 32


def test_a_record_becomes_a_baseline_that_equals_the_one_that_was_made_then(cli, folder, tmp_path):
    saved = HERE / "2026-11-baseline.json"
    assert cli("baseline", "save", "again", "--from", folder, "--folder", tmp_path).returncode == 0
    shutil.copy(saved, tmp_path / "earlier.json")
    found = json.loads(cli("baseline", "diff", "earlier", "again", "--folder", tmp_path, "--json").stdout)
    assert (found["regression"], found["not_compared"], found["differences"]) == (False, [], [])


def test_a_tuned_profile_is_loaded():
    loaded = profile.load(str(HERE / "tuned-2026-11.yaml"))
    assert loaded.name == "tuned-2026-11"
    assert loaded.env or loaded.preload
