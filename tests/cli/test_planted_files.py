"""Others put a FIFO, a device or junk instead of a file: every command answers at once, in one line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from envkit.bench.record import FILE_NAME, Record
from envkit.bench.record_messages import ResultsUnwritable
from envkit.cluster.slurm.settings import FILE_NAME as SUBMISSION
from envkit.cluster.slurm.settings import Settings
from envkit.common.file_messages import NotRegular
from envkit.rendering import text

from tests.records import arm, run_events, write
from tests.refusals import refusal

NOBODY = 65534
SECRET = "a secret line"


def link_of_another(path):
    if os.geteuid() != 0:
        pytest.skip("only root makes links of another user")
    secret = path.with_name("secret")
    secret.write_text(f"{SECRET}\n" * 3)
    secret.chmod(0o600)
    path.symlink_to(secret)
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def folder_of_root(path):
    path.mkdir()


def large(path):
    with path.open("wb") as file:
        file.truncate(2**40)


PLANTED = {
    "FIFO": (os.mkfifo, "it is a FIFO, not a regular file"),
    "zeros": (lambda path: path.symlink_to("/dev/zero"), "it is a device, not a regular file"),
    "link of another": (link_of_another, f"user {NOBODY} made this link to a file of user 0; copy that file"),
    "folder": (folder_of_root, "Is a directory"),
    "large": (large, "at most"),
}
planted = pytest.mark.parametrize(("make", "reason"), PLANTED.values(), ids=PLANTED)


@pytest.fixture
def results(tmp_path):
    """A folder with a good run, and a place for a bad one."""
    write(tmp_path / "results/good", run_events(arm("baseline"), arm("mine")))
    (tmp_path / "results/bad").mkdir()
    return tmp_path / "results"


def assert_refused(result, file, reason):
    """The command named the file in its one line, and showed nothing of what is in it."""
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert str(file) in line
    assert reason in line
    assert SECRET not in result.stdout + line


@planted
@pytest.mark.parametrize(
    "command",
    [
        ("report",), ("report", "--json"), ("export", "--format", "csv"), ("bench", "--resume"), ("ablate", "--resume"),
        ("submit", "--resume"), ("matrix", "--resume"), ("tune", "--resume"), ("baseline", "save", "mine", "--from"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_record_that_is_named(cli, results, make, reason, command):
    make(results / "bad" / FILE_NAME)
    assert_refused(cli(*command, results / "bad", cwd=results), FILE_NAME, reason)


@planted
def test_a_record_among_others(cli, results, make, reason):
    make(results / "bad" / FILE_NAME)
    found = json.loads(cli("history", results, "--json").stdout)
    assert [Path(one["folder"]).name for one in found["runs"]] == ["good"]
    assert [(Path(one["folder"]).name, reason in one["problem"]) for one in found["unreadable"]] == [("bad", True)]
    exported = cli("export", results, "--format", "csv").ended(0)
    assert len(exported.stdout.splitlines()) > 7
    assert reason in exported.stderr
    fleet = cli("fleet", "report", results)
    assert fleet.returncode == 1  # a node was left out
    kept = json.loads((results / "fleet.json").read_text())
    assert [one["name"] for one in kept["left_out"]] == ["bad"]


@planted
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("mine.yaml", ("show", "./mine.yaml")),
        ("mine.yaml", ("tune", "--space", "mine.yaml")),
        ("mine.yaml", ("bench", "intel-omp", "--workload", "mine.yaml")),
        ("mine.json", ("baseline", "check", "./mine.json")),
        ("mine.json", ("fleet", "diff", "mine.json", "results/good")),
        ("fleet.json", ("fleet", "diff", ".", "results/good")),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_another_file(cli, results, monkeypatch, make, reason, name, command):
    monkeypatch.chdir(results.parent)
    make(Path(name))
    result = cli(*command).ended(2)
    (line,) = result.stderr.splitlines()
    assert name in line
    assert SECRET not in line
    # if it is not a regular file, some commands say that it is missing
    assert any(words in line for words in (reason, "no such", "larger than", "holds no records"))


@planted
def test_the_settings_of_a_submission(tmp_path, make, reason):
    make(tmp_path / SUBMISSION)
    assert reason in text(refusal(Settings.read, tmp_path))


def test_a_record_is_not_begun_in_the_place_of_a_fifo(results):
    os.mkfifo(results / "bad" / FILE_NAME)
    assert refusal(Record.create, results / "bad") == ResultsUnwritable(str(results / "bad"), NotRegular("a FIFO"))


def test_links_of_ones_own_go_on_working(cli, results, tmp_path):
    """Results on another disk, and a record that was moved there."""
    (tmp_path / "scratch").mkdir()
    (results / "good" / FILE_NAME).rename(tmp_path / "scratch/moved")
    (results / "good" / FILE_NAME).symlink_to(tmp_path / "scratch/moved")
    results.rename(tmp_path / "scratch/results")
    results.symlink_to("scratch/results")
    cli("report", results / "good").ended(0, stderr="")
