"""How the process of a command is waited for; what users see of it is in tests/cli/commands/exec/test_exec.py."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import PROJECT

# What sudo makes of a command: its process is another user's.
ANOTHER_USERS = """
import os
from envkit.cli.execution.launch import launch

def refuse(pid, number):
    raise PermissionError(1, "Operation not permitted")

os.kill = refuse
print(launch("/bin/sh", ["sh", "-c", "kill -USR1 $PPID; sleep 0.1; exit 3"], os.environ, print, iter(())))
"""


def test_a_command_that_has_become_another_users_is_waited_for():
    result = subprocess.run(
        [sys.executable, "-c", ANOTHER_USERS], cwd=PROJECT, capture_output=True, text=True, timeout=240, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "3\n", "")
