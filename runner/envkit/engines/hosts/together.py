"""``python -m envkit.engines.hosts.together JOB HOST,HOST... COMMAND...``: what srun is to a worker of several nodes.

Starts the command on each host, of which the first is this machine, with the variable GIVEN as it is here. When one
ends badly, or the link to it breaks, the others are ended; all are when this program's standard input ends, or this
program is gone. What they print is as ``links`` says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from envkit.common.errors import INTERRUPTED
from envkit.engines.hosts.links import Links
from envkit.engines.hosts.ssh import Patience
from envkit.engines.start import GIVEN

# Where nothing closes a link, it counts as broken on both of its sides within 25 s, and nothing runs any more then.
TOGETHER = Patience(alive_s=5, beat_s=5.0, silence_s=20, kill_wait_s=3.0)


def run(
    hosts: Sequence[str], job: str, command: Sequence[str], given: str, lifeline: int, patience: Patience = TOGETHER
) -> int:
    """The exit status of the first that ended badly; INTERRUPTED where ``lifeline`` came to its end."""
    links = Links(job, lifeline, patience, given, together=True)
    links.start(hosts, command, here=hosts[0])
    links.wait()
    return INTERRUPTED if links.let_down else next(filter(None, links.statuses), 0)


def main() -> int:
    job, hosts, *command = sys.argv[1:]
    given = os.environ.pop(GIVEN)  # which ssh is not to have
    return run(hosts.split(","), job, command, given, sys.stdin.fileno())


if __name__ == "__main__":
    sys.exit(main())
