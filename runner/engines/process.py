"""Run one command as a process group of its own, with a time limit, and end all of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.engines.base import STDERR_TAIL_CHARACTERS, Outcome

GRACE_S = 5.0


def run_process(
    command: Sequence[str], environment: Mapping[str, str] | None, folder: Path, timeout_s: float
) -> Outcome:
    """Run ``command`` in ``folder``; after ``timeout_s`` seconds or an interrupt its whole group is ended.

    Raises FileNotFoundError or PermissionError if the command can't be started.
    """
    begin = time.monotonic()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    failure = None
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
        stdout, stderr = process.communicate()
        failure = f"did not end within {timeout_s:g} s (--timeout) and was stopped"
    except BaseException:
        _end(process)
        raise
    if failure is None and process.returncode < 0:
        failure = f"was killed by signal {signal.Signals(-process.returncode).name}"
    elif failure is None and process.returncode > 0:
        failure = f"ended with exit status {process.returncode}"
    return Outcome(stdout, stderr[-STDERR_TAIL_CHARACTERS:], time.monotonic() - begin, failure)


def _end(process: subprocess.Popen[str]) -> None:
    """SIGTERM to the group, and SIGKILL to what is left of it after a grace period."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
