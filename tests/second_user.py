"""Another user of the machine, for real: a process that root starts and that becomes an ordinary user."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

USER = 65534  # nobody
BECOME = """\
import errno, fcntl, os, signal, stat, sys, time
from pathlib import Path
os.setgroups([]); os.setresgid({user}, {user}, {user}); os.setresuid({user}, {user}, {user}); os.umask(0o022)
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start ``code`` as the other user, with these ``arguments`` in ``sys.argv``. It has its first words to say."""
    command = [sys.executable, "-c", BECOME.format(user=USER) + code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")


def said(code: str, *arguments: object) -> str:
    """Return what ``code`` prints as the other user. It must end well."""
    process = start(code, *arguments)
    printed, _ = process.communicate("")
    assert process.returncode == 0, printed
    return printed


@contextlib.contextmanager
def beside(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Have the other user run ``code`` meanwhile: it is there once it has printed a line, and is killed at the end."""
    process = start(code, *arguments)
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), "it has ended"
        yield process
    finally:
        process.kill()
        process.communicate()
