"""``runner tune`` for a command of the user's own, with real workers."""

from __future__ import annotations

import json
import sys

import pytest

from runner import profile
from runner.cli import main
from runner.commands import tune

# Prints what its steps took, so that no test waits for them: half as long with one setting.
SCRIPT = """\
import os, random
for step in range(8):
    seconds = 0.010 if os.environ.get("PYTHONMALLOC") is None else 0.005
    print(f"step {step} took {seconds * random.uniform(0.99, 1.01):.6f} s", flush=True)
"""
SPACE = """\
name: python
title: What Python reads
knobs:
  objects: {variable: PYTHONMALLOC, values: [unset, malloc]}
  arenas: {variable: MALLOC_ARENA_MAX, values: [unset, 1]}
"""


@pytest.fixture
def nothing_shipped(tmp_path, monkeypatch, write_profile):
    folder = tmp_path / "shipped"
    folder.mkdir()
    write_profile("baseline", folder=folder)
    monkeypatch.setattr(tune, "SHIPPED_FOLDER", folder)


@pytest.mark.usefixtures("nothing_shipped")
def test_a_script_of_the_user_s_own_is_tuned_for(capsys, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    space, written = tmp_path / "python.yaml", tmp_path / "mine.yaml"
    space.write_text(SPACE)
    command = f"{sys.executable} {tmp_path / 'train.py'}"
    options = ("--space", space, "--budget", "40s", "--profile", written, "--output", tmp_path / "tuning", "--json")
    own = ("--command", command, "--metric", r"took ([\d.]+) s", "--warmup-lines", 2)
    status = main(["tune", *map(str, (*own, *options))])  # in this process, which has the profiles of this test only
    printed = capsys.readouterr()
    assert status == 0, printed.err
    document = json.loads(printed.out)
    found = profile.load(str(written))
    assert found.env["PYTHONMALLOC"] == "malloc"
    assert document["failed"] == []
    (comparison,) = document["confirmation"]["comparisons"]
    assert 1.9 < comparison["speedup"]["ratio"] < 2.1
