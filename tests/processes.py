"""Waiting for things to happen, and for processes to be gone."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from envkit.engines import owner

PATIENCE_S = 240
LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp
Answer = TypeVar("Answer")
# The program ``envkit`` for tests in which no time counts: without the reference kernel, which keeps all CPUs busy for
# a second in each block, and with shorter looks at a machine or a training.
BRIEF_ENVKIT = """
import sys
from envkit.cli import main
if "bench" in sys.argv[1:2]:
    from envkit.bench import measure
    measure.wants_reading = lambda run, block: False
elif "doctor" in sys.argv[1:2]:
    from envkit.cli.commands import doctor
    doctor.LOAD_S = 0.5
elif "advise" in sys.argv[1:2]:
    from envkit.cli.commands import advise
    advise.WATCH_S, advise.WATCH_LIMIT_S = 1.0, 240.0
sys.exit(main())
"""


class Ended(subprocess.CompletedProcess[str]):
    """A command line that has ended."""

    def ended(self, status: int, stdout: str | None = None, stderr: str | None = None) -> Ended:
        """Return it, which must have ended with this status, and printed just that where it is given."""
        assert self.returncode == status, self
        assert stdout in (None, self.stdout), self
        assert stderr in (None, self.stderr), self
        return self


def until(found: Callable[[], Answer]) -> Answer:
    """Ask until the answer counts as true, and return it; fail when it takes far too long."""
    end = time.monotonic() + PATIENCE_S
    while not (answer := found()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return answer


def gone(pid: int) -> bool:
    """Whether no such process runs; one that ended and that nobody has waited for yet is gone."""
    fields = owner.stat_fields(pid)
    return fields is None or fields[0] == "Z"


def running(word: str) -> dict[int, str]:
    """The processes that have this word in their commands, by their ids."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = path.read_text(errors="replace")
    return {pid: command for pid, command in found.items() if word in command}


def listening(pid: int) -> set[str]:
    """The addresses on which a process takes TCP connections."""
    links = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            links.add(str(link.readlink()))
    found = set()
    for version, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTENS and f"socket:[{inode}]" in links:
                words = struct.iter_unpack("=I", bytes.fromhex(local.partition(":")[0]))
                found.add(socket.inet_ntop(version, b"".join(struct.pack("!I", word) for (word,) in words)))
    return found
