"""Two Pythons of this machine under one profile, as two images are compared."""

from __future__ import annotations

import pytest
from envkit.bench import record

from tests.cli.commands.conftest import words

# What an inspection has of packages where there are none.
NOTHING = {"torch": {}, "python": {}, "conda": {}, "system": {}}


@pytest.fixture
def pythons(tmp_path, images_of):
    """``.venv-old`` and ``.venv-new``, of which the latter has a PyTorch that is built with CUDA."""
    made = images_of("local", "python")
    files = [tmp_path / f".venv-{name}/bin/python" for name in ("old", "new")]
    for file, cuda in zip(files, ({}, {"cuda": "13.0"}), strict=True):
        file.parent.mkdir(parents=True)
        file.write_text("")
        file.chmod(0o755)
        python = {"version": "3.11.2", "executable": str(file), "prefix": str(file.parent.parent)}
        made.add(str(file)).inspection(python=python, contents={**NOTHING, "torch": cuda})
    return files


def test_pythons_are_compared_too(cli, tmp_path, pythons, run_folder):
    options = ("--data", "synthetic", "--steps", 3, "--blocks", 1, "--output", run_folder)
    # as they are named from there: a run may be resumed from elsewhere
    named = ("--python", ".venv-new/bin/python", "--against-python", ".venv-old/bin/python")
    result = cli("bench", "baseline", *named, *options, cwd=tmp_path).ended(0)
    arms = record.first(run_folder)["study"]["arms"]
    assert [(arm["name"], arm["image"]) for arm in arms] == [
        (f"venv-{name}", str(file)) for name, file in zip(("old", "new"), pythons, strict=True)
    ]
    said = words(result.stdout)
    assert "venv-new has PyTorch built with CUDA 13.0, and venv-old for CPUs alone" in said


def test_one_python_under_two_names_is_refused(refused, images_of):
    made = images_of("local", "python")
    for name in ("/bin/sh", "/bin/bash"):
        made.add(name)  # which both say that they are the same Python
    said = refused("bench", "baseline", "--python", "/bin/sh", "--against-python", "/bin/bash")
    assert said.startswith(
        "envkit: /bin/sh and /bin/bash are the same image (Python 3.11.7 in /sim); name two different "
    )
