"""A command that spoils its evidence: its own status stays, and one line says that evidence can't be used."""

from __future__ import annotations

import json
import os

import pytest

GOOD = {"pid": 9, "argv": ["x"], "evidence": {"variables": {"sensitive": {"GREETING": "hello"}}, "seconds": 0}}
LEAVE = {
    "junk": "echo junk > $ENVKIT_EVIDENCE/7.json",
    "deep": "printf '[%.0s' $(seq 5000) > $ENVKIT_EVIDENCE/7.json",
    "deep objects": """printf '{"a":%.0s' $(seq 400) > $ENVKIT_EVIDENCE/7.json""",
    "large": "truncate -s 1T $ENVKIT_EVIDENCE/7.json",
    "empty": ": > $ENVKIT_EVIDENCE/7.json",
    "list": "echo [] > $ENVKIT_EVIDENCE/7.json",
    "another form": """echo '{"pid": "x", "evidence": 7}' > $ENVKIT_EVIDENCE/7.json""",
    "long number": "printf '9%.0s' $(seq 5000) > $ENVKIT_EVIDENCE/7.json",
    "UTF-16": "printf '\\377\\376{\\0}\\0' > $ENVKIT_EVIDENCE/7.json",
    "FIFO": "mkfifo $ENVKIT_EVIDENCE/7.json",
    "folder": "mkdir $ENVKIT_EVIDENCE/7.json",
    "link": "ln -s /etc/passwd $ENVKIT_EVIDENCE/7.json",
    "zeros": "ln -s /dev/zero $ENVKIT_EVIDENCE/7.json",
}


@pytest.mark.parametrize("leave", LEAVE.values(), ids=LEAVE)
@pytest.mark.parametrize("status", [0, 3])
def test_the_commands_own_status_stays(execute, leave, status):
    result = execute("mine", "sh", "-c", f"{leave}; exit {status}")
    assert result.returncode == status
    (line,) = [line for line in result.stderr.splitlines() if "can't be used" in line]
    assert line.startswith("envkit: evidence of 1 process can't be used: 7.json ")
    assert "root:" not in result.stderr


def test_what_other_processes_left_is_judged(execute, tmp_path):
    script = f"echo junk > $ENVKIT_EVIDENCE/7.json; echo '{json.dumps(GOOD)}' > $ENVKIT_EVIDENCE/9.json; exit 3"
    result = execute("mine", "sh", "-c", script, options=("--evidence", "seen.json")).ended(3)
    assert "evidence of 1 process can't be used: 7.json is not valid JSON" in result.stderr
    assert [one["pid"] for one in json.loads((tmp_path / "seen.json").read_text())["processes"]] == [9]


@pytest.mark.parametrize("name", ["envkit", "envkit/valid", "envkit/preload"])
def test_a_fifo_in_the_place_of_the_cache(execute, tmp_path, name):
    """What is kept there can be found again: a command goes on without it."""
    (tmp_path / "cache" / name).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / "cache" / name)
    execute("mine", "sh", "-c", "exit 3", XDG_CACHE_HOME=str(tmp_path / "cache")).ended(3)
