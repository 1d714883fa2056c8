"""The environment of ``envkit exec`` is kept from one time to the next, and never a wrong one."""

from __future__ import annotations

import os


def test_the_interpreter_is_looked_into_once(execute, simulation):
    for _ in range(2):
        result = execute("mine", "sh", "-c", "echo $GREETING", options=("--python", simulation.python))
        assert (result.returncode, result.stdout) == (0, "hello\n")
    assert len(simulation.starts(all=True)) == 1


def test_a_profile_that_was_changed_is_read_again(execute, write_profile):
    for value in ("one", "two"):
        path = write_profile("edited", f"env:\n  GREETING: {value}\n")
        os.utime(path, (1, 1))  # neither its time nor its size tell
        assert execute(path, "sh", "-c", "echo $GREETING").stdout == f"{value}\n"


def test_a_cache_that_cannot_be_written_is_no_trouble(execute, tmp_path):
    (tmp_path / "file").write_text("")
    assert execute("mine", "sh", "-c", "echo $GREETING", XDG_CACHE_HOME=str(tmp_path / "file")).stdout == "hello\n"
