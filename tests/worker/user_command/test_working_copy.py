"""Each start of a user's command in a fresh copy of its folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from envkit.worker import scratch
from envkit.worker.errors import WorkerError
from envkit.worker.messages.user_command import NoRoom
from envkit.worker.user_command import working_copy

from tests import worker_runs
from tests.worker import stand_in_torch


@pytest.fixture
def folder(tmp_path):
    """A folder with code, a checkpoint, an environment, a record of the kit's, and links."""
    made = tmp_path / "project"
    for name, text in {
        "train.py": "code", "checkpoints/last.pt": "weights", "data/train.bin": "data", "venv/pyvenv.cfg": "",
        "venv/bin/python": "", ".cache/CACHEDIR.TAG": "",
        "results/run/record.jsonl": '{"event": "run"}\n', "results/run/page.html": "",
        f"envkit-ranks-{os.getuid()}-node-x/x": "",
    }.items():  # fmt: skip
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "elsewhere").mkdir()
    (made / "out").symlink_to("../elsewhere")
    (made / "latest.pt").symlink_to("checkpoints/last.pt")
    return made


def test_a_copy_has_real_files_and_links_to_what_is_only_read(folder):
    with working_copy.fresh(folder, ["data"]) as place:
        assert (place.path.name, place.path.parent.stat().st_mode & 0o077) == ("project", 0)
        assert (place.path / "train.py").read_text() == "code"
        assert (place.path / "train.py").stat().st_ino != (folder / "train.py").stat().st_ino
        assert (place.path / "train.py").stat().st_mtime_ns == (folder / "train.py").stat().st_mtime_ns
        for name in ("venv", ".cache", "data"):
            assert (place.path / name).readlink() == folder / name
        assert (place.path / "latest.pt").resolve() == (place.path / "checkpoints/last.pt").resolve()
        assert (place.path / "out").resolve() == folder.parent / "elsewhere"
        assert list((place.path / "results").iterdir()) == []
        assert [one.name for one in place.path.glob("envkit-*")] == []
        assert place.writes() == {}
    assert not place.path.exists()


def test_links_by_which_a_training_can_write_elsewhere_are_known(folder, tmp_path):
    """Not what is only read: environments, hidden caches and what the user names, files, and links into the folder."""
    cache = folder / "compiled"
    cache.mkdir()
    (cache / "CACHEDIR.TAG").touch()
    (folder / "inner").symlink_to("checkpoints")
    (folder / "full").symlink_to(folder / "checkpoints")
    (folder / "one.bin").symlink_to(tmp_path / "file")
    (tmp_path / "file").touch()
    assert working_copy.shared(folder, ["data"]) == ["compiled", "out"]
    with working_copy.fresh(folder, ["data"]) as place:
        (place.path / "compiled/kernel").touch()
        (place.path / "out/last.pt").touch()
    assert (cache / "kernel").exists()
    assert (tmp_path / "elsewhere/last.pt").exists()
    assert working_copy.shared(folder, ["out", "compiled/"]) == []


def test_a_fifo_that_is_called_like_a_record_does_not_hold_it_up(folder):
    (folder / "log").mkdir()
    os.mkfifo(folder / "log/record.jsonl")
    with working_copy.fresh(folder) as place:
        assert (place.path / "log").is_dir()


def test_a_training_can_not_destroy_what_is_in_the_folder(folder):
    with working_copy.fresh(folder) as place:
        (place.path / "checkpoints/last.pt").write_text("other weights")
        with (place.path / "train.py").open("a") as file:
            file.write("more")
        (place.path / "new.pt").write_text("1234")
        (place.path / "__pycache__").mkdir()
        (place.path / "__pycache__/train.pyc").touch()
        writes = place.writes()
    assert (folder / "checkpoints/last.pt").read_text() == "weights"
    assert (folder / "train.py").read_text() == "code"
    assert writes == {"inside": {"files": 3, "bytes": 25, "names": ["new.pt", "train.py", "checkpoints/last.pt"]}}


def test_what_is_written_past_the_copy_is_seen(folder):
    with working_copy.fresh(folder) as place:
        (folder / "checkpoints/last.pt").write_text("other weights")
        assert place.writes() == {"outside": {"files": 1, "bytes": 13, "names": ["checkpoints/last.pt"]}}


def test_in_place_writes_are_seen_too(folder):
    with working_copy.in_place(folder) as place:
        assert place.path == folder
        (folder / "log").write_text("1")
        assert place.writes()["inside"]["names"] == ["log"]


def test_a_users_own_files_that_are_called_like_the_kits_are_copied(folder):
    (folder / "envkit-config.yaml").write_text("x")
    (folder / "log").mkdir()
    (folder / "log/record.jsonl").write_text('{"step": 1}\n')
    with working_copy.fresh(folder) as place:
        assert (place.path / "envkit-config.yaml").read_text() == "x"
        assert (place.path / "log/record.jsonl").exists()


@pytest.mark.parametrize("target", ["{folder}/checkpoints", "checkpoints", "../project/checkpoints", "..data"])
def test_a_link_into_the_folder_leads_into_the_copy(folder, target):
    (folder / "..data").mkdir()
    (folder / "inner").mkdir()
    (folder / "link").symlink_to(target.format(folder=folder))
    (folder / "inner/link").symlink_to(folder / "checkpoints")
    with working_copy.fresh(folder) as place:
        for name in ("link", "inner/link"):
            assert place.path in (place.path / name).resolve().parents
            (place.path / name / "new.pt").write_text("1")
    assert not list(folder.rglob("new.pt"))


def test_a_commit_stays_in_the_copy(folder):
    def git(*words, cwd):
        name = ("-c", "user.name=me", "-c", "user.email=me@here")
        return subprocess.run(["git", *name, *words], cwd=cwd, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet", cwd=folder)
    git("add", "train.py", cwd=folder)
    git("commit", "--quiet", "-m", "first", cwd=folder)
    before = git("log", "--format=%H", cwd=folder), git("status", "--short", cwd=folder)
    with working_copy.fresh(folder) as place:
        assert git("rev-parse", "HEAD", cwd=place.path) == git("rev-parse", "HEAD", cwd=folder)
        (place.path / "train.py").write_text("other code")
        git("add", "-A", cwd=place.path)
        git("commit", "--quiet", "-m", "second", cwd=place.path)
        assert len(git("log", "--format=%H", cwd=place.path).split()) == 2
    assert (git("log", "--format=%H", cwd=folder), git("status", "--short", cwd=folder)) == before


def test_what_the_training_can_not_read_is_left_out(folder, monkeypatch):
    """As another user would meet it: root can read all."""

    def closed(real, name):
        def call(path, *rest, **options):
            if str(path).endswith(name):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *rest, **options)

        return call

    monkeypatch.setattr(os, "scandir", closed(os.scandir, "/data"))
    monkeypatch.setattr(shutil, "copy2", closed(shutil.copy2, "/last.pt"))
    with working_copy.fresh(folder) as place:
        assert not (place.path / "data").exists()
        assert not (place.path / "checkpoints/last.pt").exists()
        assert (place.path / "train.py").exists()


def test_a_file_that_is_gone_is_reported(folder):
    with working_copy.fresh(folder) as place:
        (folder / "checkpoints/last.pt").unlink()
        (folder / "notebook.ipynb").write_text("saved by another program")
        assert place.writes() == {"outside": {"files": 1, "bytes": 0, "names": ["checkpoints/last.pt"]}}


def test_removing_a_copy_touches_nothing_outside_of_it(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o400)
    with scratch.folder("envkit-copy", tmp_path) as made:
        (made / "closed").mkdir()
        (made / "closed/link").symlink_to(secret)
        (made / "closed/folder").symlink_to(tmp_path)
        (made / "closed").chmod(0o500)
    assert not made.exists()
    assert secret.stat().st_mode & 0o777 == 0o400


MOUNTED = """
import subprocess, sys
from pathlib import Path
from envkit.worker import scratch
bucket, place = Path(sys.argv[1]), Path(sys.argv[2])
with scratch.folder("envkit-copy", place) as made:
    (made / "a mount").mkdir()
    subprocess.run(["mount", "--bind", bucket, made / "a mount"], check=True)
print(sorted(bucket.iterdir()), made.exists())
"""


def test_what_is_mounted_below_a_copy_is_left_alone(tmp_path):
    for name in ("bucket", "place"):
        (tmp_path / name).mkdir()
    (tmp_path / "bucket/model.pt").touch()
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system allows no user namespaces")
    done = subprocess.run(
        [*alone, sys.executable, "-c", MOUNTED, tmp_path / "bucket", tmp_path / "place"], capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.stdout == f"{[tmp_path / 'bucket/model.pt']} True\n", done.stderr


@pytest.mark.parametrize(("limit", "value"), [("MOST_BYTES", 20), ("MOST_FILES", 2)])
def test_a_folder_that_is_too_large_is_not_copied(folder, monkeypatch, limit, value):
    (folder / "data/more.bin").write_text("more data than the rest")
    monkeypatch.setattr(working_copy, limit, value)
    with pytest.raises(working_copy.TooLarge) as caught:
        working_copy.survey(folder)
    assert (caught.value.names[0], caught.value.files) == ("data", 4)
    with working_copy.in_place(folder) as place:
        assert place.writes() == {}
    if limit == "MOST_BYTES":
        assert working_copy.survey(folder, ["data"]).size == 11


def test_where_the_temporary_folder_has_no_room_the_copy_is_in_the_folder(folder, monkeypatch):
    monkeypatch.setattr(working_copy, "ROOM_BYTES", 2**62)
    with pytest.raises(WorkerError) as caught, working_copy.fresh(folder):
        pass
    assert caught.value.message == NoRoom(str(folder), scratch.temporary())
    asked = []
    monkeypatch.setattr(working_copy, "ROOM_BYTES", 0)
    monkeypatch.setattr(scratch, "temporary", lambda: asked.append(1) or "/proc")
    with working_copy.fresh(folder) as place:
        assert place.path.parent.parent == folder
        assert place.writes() == {}
    assert asked
    assert list(folder.glob(f"envkit-copy-{os.getuid()}-*")) == []


RESUMING = """
import os, time, torch
sgd = torch.optim.SGD()
begun = int(open("last.pt").read()) if os.path.exists("last.pt") else 0
print("begins at", begun)
for step in range(begun, 100):
    sgd.step()
    time.sleep(0.001)
    open({path!r}, "w").write(str(step))
"""


@pytest.fixture
def start(tmp_path):
    """Start a training that goes on from its checkpoint: what it printed, and its document."""

    def run(path="last.pt", **how):
        (stand_in_torch.write(tmp_path) / "train.py").write_text(RESUMING.format(path=path))
        work = worker_runs.command(
            tmp_path, [sys.executable, "train.py"], **{"in_place": False, **how}, steps=3, warmup=1
        )
        process = worker_runs.of(work, (sys.executable, "-m", "envkit.worker"))
        return process.stderr, json.loads(process.stdout)

    return run


def test_no_start_goes_on_from_the_one_before(start, tmp_path):
    for _ in range(2):
        printed, document = start()
        assert "begins at 0" in printed
        assert document["writes"]["inside"]["names"] == ["last.pt"]
    assert not (tmp_path / "last.pt").exists()
    for begun in (0, 3):  # as the user agreed
        assert f"begins at {begun}" in start(in_place=True)[0]


def test_a_path_in_full_is_seen(start, tmp_path):
    _, document = start(path=str(tmp_path / "last.pt"))
    assert document["writes"]["outside"]["names"] == ["last.pt"]
