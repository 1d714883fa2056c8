"""``python benchmarks/conditions.py CONDITION COMMAND …``: run a command under a CPU quota, or beside busy processes.

``quota`` gives the command a control group that may use one CPU's time; this takes root. ``neighbour`` runs one busy
process for each CPU until the command ends. The exit status is the command's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

PERIOD_US = 100_000
QUOTA_CPUS = 1
CGROUP = Path("/sys/fs/cgroup")
LONGEST_S = 600
LONGEST_END_S, TRIES = 2.0, 20


@contextlib.contextmanager
def quota(root: Path = CGROUP) -> Iterator[None]:
    """Hold this process, and those that it starts, to the time of QUOTA_CPUS CPUs. Raise OSError if that is refused."""
    version_2 = (root / "cgroup.controllers").is_file()
    parent = root if version_2 else root / "cpu"
    group = parent / f"envkit-claims-{os.getpid()}"
    limit_us = QUOTA_CPUS * PERIOD_US
    limits = (
        {"cpu.max": f"{limit_us} {PERIOD_US}"}
        if version_2
        else {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(limit_us)}
    )
    group.mkdir()
    try:
        for name, text in limits.items():
            (group / name).write_text(text)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (parent / "cgroup.procs").write_text(str(os.getpid()))
        _remove(group)


def _remove(group: Path) -> None:
    """Remove a control group, which a process that is still ending keeps for a moment."""
    for _ in range(TRIES):
        try:
            group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                return
            time.sleep(LONGEST_END_S / TRIES)
        else:
            return


@contextlib.contextmanager
def neighbour() -> Iterator[None]:
    """Run a busy process for each CPU meanwhile. It ends with this one, whatever ends it."""
    script = Path(__file__).with_name("neighbour.py")
    options = ["--never-rests", "--seconds", str(LONGEST_S), "--parent", str(os.getpid())]
    process = subprocess.Popen([sys.executable, "-I", "-S", str(script), *options])
    try:
        yield
    finally:
        process.kill()
        process.wait()


CONDITIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {"quota": quota, "neighbour": neighbour}


def main() -> int:
    condition, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that nothing is left behind
    with CONDITIONS[condition]():
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
