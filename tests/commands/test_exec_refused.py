"""What ``runner exec`` refuses, in one line and before anything runs."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["baseline"], "exec: the command comes after --, for example: runner exec baseline -- python train.py"),
        (["baseline", "python", "x.py"], "for example: runner exec baseline -- python x.py"),
        (["baseline", "--"], "exec: there is no command after --"),
        (["basline", "--", "true"], "no profile 'basline'"),
        (["baseline", "--keep-env", "NOT_SET", "--", "true"], "--keep-env NOT_SET: it is not set in your environment"),
        (["baseline", "--evidence", "no/x.json", "--", "true"], "--evidence no/x.json: there is no such folder"),
        (["baseline", "--evidence", "x.json", "--no-check", "--", "true"], "--evidence: with --no-check there is none"),
        (["baseline", "--engine", "lxc", "--", "true"], "no engine 'lxc'"),
        (["baseline", "--memory", "4g", "--", "true"], "--memory means nothing to the engine local"),
        (["baseline", "--python", "/no/python", "--", "true"], "--python /no/python: no such executable"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(refused, arguments, said):
    assert said in refused("exec", *arguments)


def test_a_library_that_is_missing(refused, simulation, write_profile):
    profile = write_profile("mine", "preload: [mimalloc]\n")
    assert "preloads mimalloc, which is not installed" in refused(
        "exec", "--python", simulation.python, profile, "--", "true"
    )


def test_a_temporary_folder_that_is_not_there(refused, tmp_path):
    assert f"{tmp_path}/none: No such file or directory; set TMPDIR" in refused(
        "exec", "baseline", "--", "true", TMPDIR=str(tmp_path / "none")
    )
