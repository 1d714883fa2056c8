"""What the record of a submission, and the files beside it, may decide when it goes on."""

from __future__ import annotations

import json
import os
import stat

import pytest
from envkit.bench import record
from envkit.cluster.slurm.settings import FILE_NAME, Settings
from envkit.common import user_key
from envkit.engines.slurm import client

from tests.sessions import rewrite

EVIL = "/tmp/evil"


@pytest.fixture
def command(tmp_path, write_profile):
    return ["submit", write_profile("mine", "env: {A: '1'}\n"), "--allow-unknown", "--data", "synthetic",
            "--blocks", 6, "--output", tmp_path / "run"]  # fmt: skip


@pytest.fixture
def submitted(cli, slurm, command, monkeypatch, tmp_path):
    """A submission whose job is gone before it measured anything; its folder, and what sbatch is asked from now on."""
    cli(*command, "--detach").ended(0)
    jobs, _ = slurm
    jobs.clear()
    asked = []
    monkeypatch.setattr(client, "find", asked.append)
    return tmp_path / "run", jobs, asked


def change(key, value):
    def edit(event):
        place = event["settings"]
        *path, last = key.split(".")
        for name in path:
            place = place[name]
        place[last] = value

    return edit


EDITS = [
    change("python", EVIL),
    change("project", EVIL),
    change("study.engine_options", {"python": EVIL}),
    change("options", [f"bb={EVIL}"]),
    change("id", "c0ffee00"),
]


def test_its_users_own_goes_on_by_itself(cli, submitted):
    folder, jobs, asked = submitted
    assert cli("submit", "--resume", folder, "--detach").returncode == 0
    first = record.first(folder, "submit")
    assert (len(jobs), asked) == (1, [f"envkit-{first['settings']['id']}-1"])


@pytest.mark.parametrize("edit", EDITS)
def test_nothing_that_an_edited_one_names_is_submitted(refused, submitted, edit):
    folder, jobs, asked = submitted
    rewrite(folder, edit)
    assert refused("submit", "--resume", folder, "--detach") == (
        f"envkit: --resume {folder}: the record lacks your seal (another user or machine made it, or it was "
        f"edited), so it can't say what to run; give the whole command again: envkit submit PROFILE OPTIONS --resume "
        f"{folder}"
    )
    assert (jobs, asked) == ([], [])


@pytest.mark.parametrize("edit", EDITS[:3])
def test_nor_by_the_command_given_again(refused, submitted, command, edit):
    folder, jobs, asked = submitted
    rewrite(folder, edit)
    assert f" was {EVIL} and is now " in refused(*command, "--resume", folder, "--detach")
    assert (jobs, asked) == ([], [])


def test_an_id_that_is_no_number_is_refused(refused, submitted, command):
    folder, jobs, _ = submitted
    rewrite(folder, change("id", "x; touch y"))
    assert "(id='x; touch y')" in refused(*command, "--resume", folder)
    assert jobs == []


def test_the_same_command_given_again_goes_on(cli, submitted, command):
    folder, jobs, _ = submitted
    user_key.path().unlink()
    result = cli(*command, "--resume", folder, "--detach")
    assert (result.returncode, len(jobs)) == (0, 1), result


def test_what_differs_is_named(refused, submitted, command):
    folder, jobs, _ = submitted
    line = refused(*command, "--blocks", 7, "--nodes", 2, "--resume", folder, "--detach")
    assert "study.stopping.blocks was 6 and is now 7; nodes was 1 and is now 2; give the" in line
    assert jobs == []


def test_the_jobs_name_is_the_submissions_and_not_a_lines(cli, submitted):
    """Whoever edits a line could have another job of this user's followed, and cancelled."""
    folder, _, asked = submitted
    path = folder / record.FILE_NAME
    identity = record.first(folder, "submit")["settings"]["id"]
    path.write_text(path.read_text().replace(f'"name": "envkit-{identity}-1"', '"name": "other"'))
    assert cli("submit", "--resume", folder, "--detach").returncode == 0
    assert asked == [f"envkit-{identity}-1"]


def test_the_file_for_nodes_is_written_again(cli, submitted):
    folder, _, _ = submitted
    path = folder / FILE_NAME
    before = path.read_bytes()
    document = json.loads(before)
    document["python"] = EVIL
    path.write_text(json.dumps(document))
    assert cli("submit", "--resume", folder, "--detach").returncode == 0
    assert path.read_bytes() == before
    assert f"\nsha256={Settings.read(folder).sha256}\n" in (folder / "batch.sh").read_text()


def test_how_it_queues_is_no_part_of_what_it_is(cli, submitted):
    folder, _, _ = submitted
    before = Settings.read(folder).sha256
    assert cli("submit", "--resume", folder, "--time-limit", "2h", "--sbatch", "account=x", "--detach").returncode == 0
    assert Settings.read(folder).sha256 == before


def test_what_it_leaves_is_for_its_user_alone(cli, slurm, command, tmp_path):
    before = os.umask(0)
    try:
        assert cli(*command, "--detach").returncode == 0
    finally:
        os.umask(before)
    folder = tmp_path / "run"
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert found == dict.fromkeys(("record.jsonl", "submit.json", "batch.sh"), 0o600)
