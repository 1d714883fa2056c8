"""The report that a fleet leaves: which is read, and what is said of one that is damaged."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from envkit.bench.record_messages import UnusableRecord
from envkit.cluster.fleet import findings, kept
from envkit.cluster.fleet.messages import MeasuredOtherwise, NoRecord, TooFewSamples

from tests.cluster.fleet.nodes import fleet, node
from tests.records import BEGUN


@pytest.fixture
def then(tmp_path):
    return fleet(tmp_path / "then", 8)


@pytest.fixture
def document(tmp_path):
    """A report as it is, to be damaged."""
    place = fleet(tmp_path / "now", 8)
    kept.write(place, *kept.read(place, None))
    return json.loads((place / kept.FILE_NAME).read_text())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "can't be read: No such file or directory; give a fleet's folder, or its report"),
        ("{", "is not a fleet report, or is damaged; give another report, or a fleet's folder with its records"),
        ("[" * 100_000, "is not a fleet report, or is damaged"),
        ("[]", "is not a fleet report, or is damaged"),
        ('{"nodes": [], "left_out": []}', "is not a fleet report, or is damaged"),
        ('{"schema": 1, "left_out": []}', "nodes: is not a list"),
        ('{"schema": 1, "nodes": [], "left_out": []}', "nodes: is not a list with a node"),
        (
            '{"schema": 1, "nodes": [{"name": "n01"}], "left_out": []}',
            "nodes[0]: is not an entry with the keys of a report",
        ),
        (
            '{"schema": 1, "nodes": [], "left_out": [{"name": "n01", "reason": 1}]}',
            "left_out[0].reason: is not a text, or a message of this version of envkit",
        ),
    ],
)
def test_a_report_that_is_none(refused, then, tmp_path, content, said):
    path = tmp_path / "fleet.json"
    if content is not None:
        path.write_text(content)
    assert refused("fleet", "diff", then, path).startswith(f"envkit: {path}: {said}")


REASONS = "is not a text, or a message of this version of envkit"


@pytest.mark.parametrize(
    "reason",
    [
        {"code": "no.such"},
        {"code": "cluster.too-few-samples", "samples": 3},
        {"code": "cluster.too-few-samples", "samples": "3", "least": 6},
        {"code": "cluster.too-few-samples", "samples": True, "least": 6},
        {"code": "cluster.other-profiles", "profile": "x", "profiles": ["a", 2]},
        {"code": "cluster.in-report", "which": "first", "reason": {"code": "cluster.no-sample", "arm": 7}},
        {"code": "cluster.no-sample", "arm": "\ud800"},
        ["cluster.no-folder"],
    ],
)
def test_a_report_whose_reason_is_no_message(refused, then, tmp_path, document, reason):
    path = tmp_path / "fleet.json"
    document["left_out"] = [{"name": "n99", "reason": reason}]
    path.write_text(json.dumps(document))
    said = f"envkit: {path}: left_out[0].reason: {REASONS}"
    assert refused("fleet", "diff", then, path).startswith(said)


def test_reasons_are_read_as_they_were_written(then):
    node(then, "few", samples=3)
    node(then, "other", steps=5)
    node(then, "broken").joinpath("record.jsonl").write_text("nonsense\n")
    (then / "empty").mkdir()
    found = findings.find(then, None, 0.02)
    kept.write(then, [one.node for one in found.results], found.left_out)
    _, left_out = kept.read(then / kept.FILE_NAME, None)
    assert left_out == found.left_out
    assert [type(one.reason) for one in left_out] == [UnusableRecord, NoRecord, TooFewSamples, MeasuredOtherwise]


TIMES = "is not a list of times above 0, in seconds; give another report"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("step_s", ["0.025"] * 10, TIMES),
        ("step_s", [0.025] * 9 + [float("nan")], TIMES),
        ("step_s", [0.025] * 9 + [float("inf")], TIMES),
        ("step_s", [0.025] * 9 + [10**400], TIMES),
        ("step_s", [0.025] * 9 + [-0.025], TIMES),
        ("step_s", [0.025] * 9 + [0], TIMES),
        ("step_s", [True] * 10, TIMES),
        ("step_s", [], TIMES),
        ("step_s", None, TIMES),
        ("must_agree", ["mode"], "is not texts by name"),
        ("facts", None, "is not texts by name"),
        ("facts", {"kernel": 6}, "is not texts by name"),
        ("name", 7, "is not a text"),
        ("name", "n\ud800", "is not a text"),
        ("memory_bytes", True, "is not a whole number, or null"),
        ("memory_bytes", -1, "is not a whole number, or null"),
        ("memory_bytes", 2**63, "is not a whole number, or null"),
        ("clock_mhz", 0, "is not a number above 0, or null"),
        ("reference_kernel_digest", "\ud800", "is not a text, or null"),
        ("samples_with_interference", 0.5, "is not a number of samples"),
        ("began", -1.0, "is not a time in seconds since 1970"),
        ("finished", "yes", "is not true or false"),
    ],
)
def test_a_report_with_a_node_that_is_damaged(refused, then, tmp_path, document, key, value, said):
    path = tmp_path / "fleet.json"
    document["nodes"][2][key] = value
    path.write_text(json.dumps(document))
    assert refused("fleet", "diff", then, path).startswith(f"envkit: {path}: nodes[2].{key}: {said}")


def test_a_report_that_has_a_node_twice(refused, then, tmp_path, document):
    path = tmp_path / "fleet.json"
    document["nodes"][2] = document["nodes"][5]
    path.write_text(json.dumps(document))
    assert refused("fleet", "diff", path, then).startswith(f"envkit: {path}: nodes: has n05 twice; ")


def test_records_that_are_newer_than_the_report_are_read(cli, then, tmp_path):
    now = fleet(tmp_path / "now", 8, began=BEGUN + 60)
    assert cli("fleet", "report", now).returncode == 0
    assert cli("fleet", "diff", then, now).returncode == 0
    written = (now / kept.FILE_NAME).stat().st_mtime
    record = node(now, "n03", 0.4) / "record.jsonl"
    os.utime(record, (written - 60, written - 60))
    assert cli("fleet", "diff", then, now).returncode == 0
    os.utime(record, (written + 60, written + 60))
    result = cli("fleet", "diff", then, now)
    assert (result.returncode, result.stdout.split(" node")[0]) == (1, "SLOWER  1 of 8")


def test_a_report_that_vanishes_is_made_of_the_records(document, tmp_path, monkeypatch):
    """As one that another command removes, or a folder whose files may not be looked at."""
    now = tmp_path / "now"
    stat = Path.stat

    def removed(path, **options):
        if path.name == kept.FILE_NAME:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", removed)
    nodes, left_out = kept.read(now, None)
    assert [node.name for node in nodes] == [node["name"] for node in document["nodes"]]
    assert left_out == []


def test_a_report_that_can_not_be_kept_is_printed_all_the_same(cli, then):
    (then / kept.FILE_NAME).symlink_to(then / "none/such")
    result = cli("fleet", "report", then).ended(0)
    assert result.stdout.startswith("NO SLOW NODE")
    assert result.stderr == (
        f"envkit: {then}/fleet.json: can't be written: No such file or directory; "
        "later reports can't be compared with this one\n"
    )


def test_a_damaged_report_beside_its_records_is_written_anew(cli, refused, then, tmp_path):
    now = fleet(tmp_path / "now", 8, began=BEGUN + 60)
    (now / kept.FILE_NAME).write_text("{")
    assert refused("fleet", "diff", then, now) == (
        f"envkit: {now}/fleet.json: is not a fleet report, or is damaged; write it again: envkit fleet report {now}"
    )
    cli("fleet", "report", now)
    assert cli("fleet", "diff", then, now).returncode == 0


def test_the_profile_of_a_report_is_the_one_that_it_was_judged_by(cli, refused, then, tmp_path):
    now = fleet(tmp_path / "now", 8, profiles=("mine", "theirs"))
    cli("fleet", "report", now, "--profile", "mine")
    assert cli("fleet", "diff", then, now, "--profile", "mine").returncode == 0
    # which its records have, too
    assert "did not measure theirs" in refused("fleet", "diff", then, now, "--profile", "theirs")
    for folder in now.glob("n*"):
        shutil.rmtree(folder)
    assert cli("fleet", "diff", then, now, "--profile", "mine").returncode == 0
    said = f"{now}/fleet.json: judged its nodes by mine; leave --profile out"
    assert refused("fleet", "diff", now, then, "--profile", "theirs").startswith(f"envkit: {said}")


def test_names_that_are_no_utf_8_are_printed_all_the_same(cli, tmp_path):
    """As of a file system whose names are in Latin-1."""
    place = fleet(tmp_path / "then", 8)
    node(place, "other", 0.4).rename(place / "b\udcfccher")
    files = (tmp_path / "nodes.prom", tmp_path / "page.html")
    assert cli("fleet", "report", place, "--prometheus", files[0], "--html", files[1]).returncode == 1
    assert all(r"\xfccher" in path.read_text() for path in files)
    again = shutil.copytree(place, tmp_path / "again")
    node(again, "n00", samples=11)
    assert cli("fleet", "diff", place, again, "--prometheus", files[0]).returncode == 0
    assert r"\xfccher" in files[0].read_text()
