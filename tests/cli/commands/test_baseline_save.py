"""``envkit baseline save``: which runs make a baseline, and where it goes."""

from __future__ import annotations

import errno
import json
import os

import pytest
from envkit.bench import record
from envkit.cli import measuring

from tests import records
from tests.sessions import BLOCKS, rewrite, session

OTHER = "a" * 64


def test_saving_says_what_and_where_and_what_next(cli, folder, tmp_path):
    made = session(tmp_path / "run")
    result = cli("baseline", "save", "cnn", "--from", made, "--folder", folder).ended(0, stderr="")
    assert result.stdout.splitlines()[0].startswith(f"baseline  cnn: baseline, mine, {BLOCKS} blocks, measured 2026-")
    assert f"file      {folder}/cnn.json (commit it; later: envkit baseline check cnn PROFILE)\n" in result.stdout
    assert [path.name for path in folder.iterdir()] == ["cnn.json"]
    assert (folder / "cnn.json").stat().st_size < 10_000
    document = json.loads(cli("baseline", "save", "other", "--from", made, "--folder", folder, "--json").stdout)
    assert (document["source"], document["blocks"], document["arms"]) == (
        f"{folder}/other.json", BLOCKS, ["baseline", "mine"]
    )  # fmt: skip


def test_baselines_go_to_a_folder_of_that_name(cli, tmp_path):
    made = session(tmp_path / "run")
    assert cli("baseline", "save", "cnn", "--from", made, cwd=tmp_path).returncode == 0
    assert (tmp_path / "baselines/cnn.json").is_file()
    assert "cnn" in cli("baseline", "list", cwd=tmp_path).stdout


def test_synthetic_data_are_mentioned(cli, folder, tmp_path):
    made = session(tmp_path / "run", data="synthetic")
    assert "synthetic data" in cli("baseline", "save", "cnn", "--from", made, "--folder", folder).stdout


def test_a_baseline_is_not_written_over_unless_told(save, save_refused, folder, tmp_path):
    path = save()
    before = path.read_bytes()
    said = save_refused(session(tmp_path / "again", seed=9))
    assert said == f"envkit: {path}: already exists; give another name, or replace it with --replace"
    assert path.read_bytes() == before
    save("old", "--replace", seed=9)
    assert path.read_bytes() != before
    assert len(list(folder.iterdir())) == 1


def test_a_full_disk_leaves_the_old_baseline(save, save_refused, folder, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = save()
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    said = save_refused(session(tmp_path / "again", seed=9), "--replace")
    assert said == f"envkit: {path}: can't be written: No space left on device; {path.name} is unchanged"
    assert (path.read_bytes(), len(list(folder.iterdir()))) == (before, 1)


def test_a_folder_that_can_not_be_made(save_refused, folder, tmp_path):
    folder.write_text("x")
    said = save_refused(session(tmp_path / "run"))
    assert said == f"envkit: {folder}: can't be made: File exists; give another --folder"


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "two words"])
def test_a_name_must_be_fit_for_a_file(refused, folder, tmp_path, name):
    made = session(tmp_path / "run")
    message = refused("baseline", "save", f"--from={made}", f"--folder={folder}", name)
    assert "can't be a baseline's name; use letters, digits, '.', '_' and '-', as in cnn-epyc" in message
    assert not folder.exists()


NOT_IN_EFFECT = {"behaviour": {"evidence": {"openmp": {"runtime": "intel", "max_threads": 2, "settings": {}}}}}


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ({"reference_kernel": None}, "has no reference kernel; measure again"),
        ({"blocks": 5}, "has 5 complete blocks, and 6 are needed; measure more --blocks"),
        ({"blocks": 5, "ended": "interrupted"}, "6 are needed; continue with: envkit bench --resume"),
        ({"blocks": 5, "ended": None}, "has 5 complete blocks, and 6 are needed; continue with: envkit bench --resume"),
        (
            {"no_reference_kernel_in": {2, 5}},
            "2 of 10 blocks have no reference kernel, because the worker ended with exit status 1; no later run",
        ),
        (
            {"no_reference_kernel_in": range(10)},
            "10 of 10 blocks have no reference kernel, because the worker ended with exit status 1",
        ),
        ({"ended": "a worker failed"}, "a worker failed in this run; measure again"),
        (NOT_IN_EFFECT, "mine was not in effect in this run; see: envkit report"),
    ],
)
def test_runs_that_make_no_baseline(save_refused, folder, tmp_path, planted, said):
    made = session(tmp_path / "run", **planted)
    message = save_refused(made)
    assert message.startswith(f"envkit: {made}: ")
    assert said in message
    assert not folder.exists()


def test_a_reference_kernel_that_ran_when_the_run_went_on_is_as_good(cli, folder, tmp_path):
    made = session(tmp_path / "run")
    path = made / record.FILE_NAME
    lines = path.read_text().splitlines()
    failure = {"event": "reference-kernel-failure", "time": 1.0, "block": 0, "problem": {}, "stderr": ""}
    path.write_text("\n".join([lines[0], json.dumps(failure), *lines[1:]]) + "\n")
    assert cli("baseline", "save", "old", "--from", made, "--folder", folder).returncode == 0


@pytest.mark.parametrize("key", ["study", "engines", "environments", "allowed_variables"])
def test_a_record_that_lacks_something_is_refused(save, save_refused, check_refused, folder, tmp_path, key):
    save()
    made = rewrite(session(tmp_path / "run"), lambda run: run.pop(key))
    expected = f"envkit: {made}/record.jsonl: an event lacks '{key}'; the record can't be used"
    assert save_refused(made) == check_refused(made) == expected
    assert [path.name for path in folder.iterdir()] == ["old.json"]


def in_results(name, days, **planted):
    """A run in the folder of results, begun so many days after the others."""
    made = session(measuring.RESULTS / name, **planted)
    return rewrite(made, lambda run: run.update(time=records.BEGUN + days * 86400))


def test_without_from_the_latest_run_that_is_fit_is_taken(cli, folder):
    in_results("b", 1)
    taken = in_results("a", 3)
    in_results("c", 2)
    in_results("d", 4, ended="a worker failed")
    damaged = rewrite(session(measuring.RESULTS / "e"), lambda run: run.pop("time"))
    result = cli("baseline", "save", "cnn", "--folder", folder).ended(0, stderr="")
    assert f"run       {taken}\n" in result.stdout
    assert damaged.is_dir()
    document = json.loads(cli("baseline", "save", "other", "--folder", folder, "--json").stdout)
    assert document["record"] == str(taken)


def test_without_from_and_without_a_run_that_is_fit(refused, folder):
    arguments = ("baseline", "save", "cnn", "--folder", folder)
    what_next = "name one with --from DIR, or measure: envkit bench PROFILE"
    assert refused(*arguments) == f"envkit: there is no run in {measuring.RESULTS}; {what_next}"
    in_results("a", 1, ended="a worker failed")
    in_results("b", 1, blocks=3)
    assert refused(*arguments) == (
        f"envkit: none of the 2 runs in {measuring.RESULTS} can become a baseline; {what_next}"
    )
    assert not folder.exists()


def test_an_interrupted_run_makes_a_baseline_of_its_complete_blocks(cli, folder, tmp_path):
    made = session(tmp_path / "run", blocks=9, ended=None)
    path = made / record.FILE_NAME
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))  # the last block lacks a sample
    document = json.loads(cli("baseline", "save", "old", "--from", made, "--folder", folder, "--json").stdout)
    assert document["blocks"] == 8


def test_a_run_that_was_resumed_with_another_python(save_refused, tmp_path):
    made = session(tmp_path / "run")
    path = made / record.FILE_NAME
    lines = path.read_text().splitlines()
    lines[-4] = lines[-4].replace("f" * 64, OTHER)
    path.write_text("\n".join(lines) + "\n")
    said = "was resumed with another reference kernel (Python or envkit changed); measure again"
    assert save_refused(made).endswith(said)
