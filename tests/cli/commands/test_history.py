"""``envkit history``: what was recorded, in 80 columns and for scripts."""

from __future__ import annotations

import json
import time
from datetime import datetime
from types import SimpleNamespace

import pytest
from envkit.bench import record
from envkit.cli import measuring
from envkit.cli.measuring import RESULTS

from tests.cli.commands.conftest import words
from tests.records import BEGUN, arm, run_events, write

DAY_S = 86400


@pytest.fixture
def results(tmp_path):
    """Four runs on four days: a is the first."""
    place = tmp_path / "results"
    write(place / "a", run_events(time=BEGUN, factor=0.5))
    write(place / "b", run_events(arm("baseline"), arm("slow"), time=BEGUN + DAY_S, factor=1.25))
    in_docker = arm("baseline", engine="docker"), arm("mine", engine="docker")
    write(place / "c", run_events(*in_docker, time=BEGUN + 2 * DAY_S, factor=1.0))
    write(place / "d", run_events(time=BEGUN + 3 * DAY_S, blocks=2, ended=None))
    return place


@pytest.fixture
def listed(cli, tmp_path):
    """The folders that are listed, in order."""

    def run(*options, folder=tmp_path):
        result = cli("history", folder, *options, "--json").ended(0, stderr="")
        return [one["folder"].rpartition("/")[2] for one in json.loads(result.stdout)["runs"]]

    return run


def test_a_run_and_what_it_found(cli, tmp_path):
    folder = write(tmp_path / "run", run_events())
    found = json.loads(cli("report", folder, "--json").stdout)["comparisons"][0]["speedup"]
    result = cli("history", tmp_path).ended(0, stderr="")
    began = datetime.fromtimestamp(BEGUN)
    speedup = f"mine {found['ratio']:.3f} ({found['low']:.3f}-{found['high']:.3f}) faster"
    assert words(result.stdout) == (
        f"runs in {tmp_path}, the latest first {began:%Y-%m-%d} {speedup} {began:%H:%M} local, cnn, 7 blocks, "
        "precise enough; run"
    )


def test_a_run_that_was_just_measured(bench, instant, cli, run_folder):
    bench("mine", "--blocks", 1)
    (one,) = json.loads(cli("history", run_folder.parent, "--since", "1h", "--json").stdout)["runs"]
    assert (one["folder"], one["profiles"]) == (str(run_folder), ["mine"])


def test_runs_are_kept_and_looked_for_where_one_stands(
    bench_arguments, instant, cli, refused, monkeypatch, run_folder, tmp_path
):
    monkeypatch.setattr(measuring, "RESULTS", RESULTS)  # as it is outside of tests
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    arguments = bench_arguments("mine")
    where = arguments.index("--output")
    assert cli(*arguments[:where], *arguments[where + 2 :], cwd=here).returncode == 0
    (folder,) = (here / "results").iterdir()
    (one,) = json.loads(cli("history", "--json", cwd=here).stdout)["runs"]
    assert one["folder"] == str(folder)
    assert cli("history", cwd=here).stdout.startswith("runs in results, the latest first\n")
    rows = json.loads(cli("export", "--format", "json", cwd=here).stdout)
    assert {row["run"] for row in rows} == {f"results/{folder.name}"}
    assert cli("baseline", "save", "first", cwd=here).returncode == 0
    why = "can't be read: No such file or directory; give a folder that holds runs"
    assert refused("history", cwd=elsewhere) == f"envkit: {elsewhere}/results: {why}"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "dcba"),  # the latest is the first
        (("--since", f"{datetime.fromtimestamp(BEGUN + 2 * DAY_S):%Y-%m-%d}"), "dc"),
        (("--profile", "mine"), "dca"),
        (("--profile", "slow"), "b"),
        (("--profile", "baseline"), ""),
        (("--engine", "docker"), "c"),
        (("--verdict", "faster"), "a"),
        (("--verdict", "slower"), "b"),
        (("--verdict", "no-difference"), "c"),
        (("--verdict", "not-ended"), "d"),
        (("--limit", "2"), "dc"),
        (("--verdict", "slower", "--limit", "1"), "b"),
        (("--profile", "slow", "--verdict", "faster"), ""),
    ],
)
def test_filters(listed, results, options, expected):
    assert "".join(listed(*options, folder=results)) == expected


def test_nothing_found_is_not_no_difference(listed, tmp_path):
    noisy = {"seconds": [1.2, 1.1, 0.8, 1.3, 0.9, 0.95, 1.05]}
    write(tmp_path / "a", run_events(factor=1.0, behaviour=noisy))
    assert (listed("--verdict", "no-difference"), listed("--verdict", "no-difference-found")) == ([], ["a"])


def test_since_so_long_ago(listed, tmp_path):
    for name, days in (("old", 8), ("new", 6)):
        write(tmp_path / name, run_events(time=time.time() - days * DAY_S))
    assert listed("--since", "7d") == ["new"]


def test_a_verdict_of_one_of_several_profiles_is_enough(listed, cli, tmp_path):
    events = run_events(arm("baseline"), arm("one"), arm("two"), factor=0.5)
    for event in events:
        if event.get("arm") == "two":
            event["seconds"] *= 4
            event["step_s"] = [step * 4 for step in event["step_s"]]
    write(tmp_path / "run", events)
    assert listed("--verdict", "faster") == listed("--verdict", "slower") == ["run"]
    assert listed("--profile", "two", "--verdict", "slower") == ["run"]
    assert listed("--profile", "two", "--verdict", "faster") == []
    lines = cli("history", tmp_path).stdout.splitlines()
    assert ["one" in lines[1], "faster" in lines[1]] == [True, True]
    assert ["two" in lines[2], "slower" in lines[2]] == [True, True]


ENGINES = [arm("local", "mine"), arm("docker", "mine", "docker")]
FULL = {"blocks": 1, "epochs": 10, "ended": "complete"}
NOT_IN_EFFECT = {"behaviour": {"evidence": {"openmp": {"runtime": "intel"}}}}


@pytest.mark.parametrize(
    ("arms", "fields", "options", "said"),
    [
        ([arm("baseline")], {}, (), "baseline - nothing to compare with"),
        ([arm("baseline"), arm("again", "baseline")], {"factor": 1}, ("--profile", "baseline"), "again 1.0"),
        (ENGINES, {}, (), "mine in docker 2."),
        (ENGINES, {}, (), "local, docker, cnn, 7 blocks, against mine"),
        ([], FULL, ("--verdict", "one-run-each"), "mine 2.010 one run each"),
        ([], NOT_IN_EFFECT, ("--verdict", "not-in-effect"), "mine - NOT IN EFFECT"),
    ],
    ids=["reference alone", "calibration", "engine", "engines", "full training", "not in effect"],
)
def test_what_is_said_of_a_run(cli, tmp_path, arms, fields, options, said):
    write(tmp_path / "run", run_events(*arms, **fields))
    assert said in words(cli("history", tmp_path, *options).stdout)


def test_a_run_that_has_not_ended(cli, results):
    assert "2 blocks, runs, or was killed; d" in words(cli("history", results, "--limit", "1").stdout)


def test_it_fits_80_columns(cli, tmp_path):
    write(tmp_path / "20261121-071858-jemalloc-retain",
          run_events(arm("baseline"), arm("jemalloc-retain"), factor=1.0, ended="budget used up"))  # fmt: skip
    write(tmp_path / "20261122-071858-compare-engines-mine",
          run_events(*(arm(name, "mine", name) for name in ("local", "docker", "apptainer"))))  # fmt: skip
    lines = cli("history", tmp_path).stdout.splitlines()
    assert max(len(line.rstrip()) for line in lines[1:]) <= 80
    assert "jemalloc-retain    1.000 (" in lines[1]
    assert "no difference" in lines[1]


def test_what_cannot_be_read_is_said_at_the_end_and_stops_nothing(cli, results):
    for name, content in (
        ("x-damaged", "nonsense\n"),
        ("x-half", '{"event": "run"'),
        ("x-other", f'{{"event": "run", "time": 5, "schema": {record.SCHEMA}, "study": {{"colour": "red"}}}}\n'),
        ("x-undated", f'{{"event": "run", "time": "today", "schema": {record.SCHEMA}}}\n'),
    ):
        (results / name).mkdir()
        (results / name / record.FILE_NAME).write_text(content)
    events = run_events(time=BEGUN - DAY_S)
    del events[3]["usage"]
    write(results / "x-incomplete", events)
    result = cli("history", results).ended(0, stderr="")
    *_, half, other, undated, incomplete = lines = result.stdout.splitlines()
    assert lines[-5] == "not read: x-damaged: record.jsonl:1: damaged line; remove it to read the rest"
    assert half.startswith("not read: x-half: record.jsonl: is not the record of a run: it has no whole line; ")
    assert other == "not read: x-other: record.jsonl: an event lacks 'arms'; the record can't be used"
    assert undated.startswith("not read: x-undated: record.jsonl:1: is not understood ('time' has another type")
    assert incomplete == "not read: x-incomplete: record.jsonl: an event lacks 'usage'; the record can't be used"
    assert [name in result.stdout for name in "abcd"] == [True] * 4
    document = json.loads(cli("history", results, "--json").stdout)
    assert len(document["runs"]) == 4
    assert len(document["unreadable"]) == 5
    assert document["unreadable"][0]["folder"] == str(results / "x-damaged")


def test_json_has_what_a_script_needs(cli, results):
    (one,) = json.loads(cli("history", results, "--verdict", "faster", "--json").stdout)["runs"]
    assert {key: one[key] for key in ("profiles", "engines", "workload", "blocks", "ended", "reference")} == {
        "profiles": ["mine"], "engines": ["local"], "workload": "cnn", "blocks": 7, "ended": "precise enough",
        "reference": "baseline",
    }  # fmt: skip
    assert datetime.fromisoformat(one["started"]).timestamp() == BEGUN
    assert one["comparisons"][0]["verdict"] == "faster"


def test_a_folder_without_runs(cli, tmp_path):
    result = cli("history", tmp_path).ended(0)
    assert result.stdout == f"no runs in {tmp_path}; measure one with: envkit bench PROFILE\n"


def test_nothing_like_that(cli, results):
    said = f"no run in {results} matches these options (4 runs looked at)\n"
    assert cli("history", results, "--profile", "none").stdout == said


def test_when_nothing_can_be_read_only_that_is_said(cli, tmp_path):
    (tmp_path / record.FILE_NAME).write_text("nonsense\n")
    lines = cli("history", tmp_path).stdout.splitlines()
    assert lines == [f"not read: {tmp_path}: record.jsonl:1: damaged line; remove it to read the rest"]


def test_runs_of_one_name_that_begin_in_one_second_have_a_folder_each(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "RESULTS", tmp_path)
    monkeypatch.setattr(measuring, "time", SimpleNamespace(strftime=lambda form: "20261128-120000"))
    folders = [write(measuring.new_folder("mine"), run_events()) for _ in range(3)]
    assert [folder.name for folder in folders] == [f"20261128-120000-mine{suffix}" for suffix in ("", "-2", "-3")]
