"""The files that a command line names."""

from __future__ import annotations

import hashlib

import pytest
from envkit.worker.user_command import files

from tests.worker.made_up import write


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["python", "train.py", "--epochs", "3"], ["train.py"]),
        (["python", "-m", "package.train"], ["package/train.py"]),
        (["./train.py", "--config=conf/a.yaml"], ["./train.py", "conf/a.yaml"]),
        (["python", "-c", "print(1)", "", "missing.py", "conf", "x" * 5000, "a\0b"], []),
    ],
)
def test_files_by_their_name(tmp_path, argv, found):
    write(tmp_path, dict.fromkeys(("train.py", "package/train.py", "conf/a.yaml"), "content"))
    named = files.named(argv, tmp_path)
    assert {name: content.digest for name, content in named.items()} == dict.fromkeys(found, sha("content"))


def test_what_a_command_writes_is_not_what_it_is_made_of(tmp_path):
    argv = ["python", "train.py", "--log", "out.log", "--save", "model.pt", "--once-more", "same.pt"]
    write(tmp_path, {"train.py": "code", "out.log": "first run\n", "same.pt": "weights"})
    before = files.named(argv, tmp_path)
    assert before.keys() == {"train.py", "out.log", "same.pt"}
    write(tmp_path, {"out.log": "first run\nsecond run\n", "model.pt": "weights", "same.pt": "weights"})
    assert files.unchanged(before, argv, tmp_path) == {"train.py": sha("code")}


def test_a_large_file_is_known_by_its_size_and_time(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "READ_BYTES", 3)
    (tmp_path / "data").write_text("large")
    (first,) = files.named(["data"], tmp_path).values()
    assert first.digest != sha("large")
    (tmp_path / "data").write_text("larger")
    assert files.named(["data"], tmp_path) != {"data": first}
