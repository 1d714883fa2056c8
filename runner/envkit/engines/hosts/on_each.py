"""``python -m envkit.engines.hosts.on_each WITHIN_S JOB HOST,HOST... COMMAND...``: what srun is to a Slurm job.

Starts the command on each host, and ends when all have, whatever becomes of one. They end at once when this program's
standard input does, or when this program is gone. What they print is as ``links`` says.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from envkit.common.errors import FAILED, INTERRUPTED
from envkit.engines.hosts.links import Links
from envkit.engines.hosts.ssh import Patience


def run(hosts: Sequence[str], job: str, command: Sequence[str], lifeline: int, patience: Patience) -> int:
    """The worst exit status; INTERRUPTED where the descriptor ``lifeline`` came to its end."""
    links = Links(job, lifeline, patience)
    links.start(hosts, command)
    links.wait()
    return INTERRUPTED if links.let_down else max(links.statuses, default=FAILED)


def main() -> int:
    within_s, job, hosts, *command = sys.argv[1:]
    patience = Patience(within_s=float(within_s))
    return run([host for host in hosts.split(",") if host], job, command, sys.stdin.fileno(), patience)


if __name__ == "__main__":
    sys.exit(main())
