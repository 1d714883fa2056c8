"""The program started on each node: it takes the worker's environment, and becomes the worker.

srun itself, and what Slurm runs around a task, have the runner's own environment: a library that a profile preloads
does nothing to them. Nor is a variable's value on any command line, where others could read it.
Only the standard library is imported: this runs before every worker, and by its path where Slurm starts it in a
container.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import socket
import struct
import sys
from typing import NoReturn

# The variable that says, as JSON, what to become.
GIVEN = "ENVKIT_STEP"
# What every node has its own of, whatever the runner's has.
OF_THE_NODE = ("TMPDIR",)
SIOCGIFADDR = 0x8915  # linux/sockios.h
INTERFACE = "GLOO_SOCKET_IFNAME"
# The worker's word for starting ranks, which must be told where to meet.
RANKS = "ranks"


def main() -> NoReturn:
    if GIVEN not in os.environ:
        _end(2, "engines.not-passed-on", variable=GIVEN)
    given = json.loads(os.environ[GIVEN])
    environment: dict[str, str] = given["environment"]
    # in a container these are the image's, but for what is of no use in there
    around = {name: value for name, value in os.environ.items() if name not in (GIVEN, *OF_THE_NODE)}
    own = {name: os.environ[name] for name in OF_THE_NODE if name in environment and name in os.environ}
    inside = f"{given['inside']}{INTERFACE}"
    if inside not in environment and (found := interface(given["host"])):  # a user's own choice stays
        own[inside] = found
    argv: list[str] = given["argv"]
    number = given["nodes"].index(os.environ["SLURMD_NODENAME"])
    if RANKS in argv:
        at = argv.index(RANKS) + 1
        argv[at:at] = ["--rendezvous", f"{given['host']}:{given['port']}", "--node-rank", str(number)]
    try:
        if not given["within"]:  # an empty entry of PYTHONPATH means this folder: it must have no package of the kit
            os.chdir("/")
        os.execvpe(argv[0], argv, {**(around if given["within"] else {}), **environment, **own})
    except OSError as error:
        _end(127, "engines.not-started-on", program=argv[0], node=platform.node(), reason=str(error.strerror))


def _end(status: int, code: str, **fields: str) -> NoReturn:
    """Print why there is no worker, as a worker prints its problem: the message of ``code``, as JSON."""
    print(json.dumps({"problem": {"code": code, "severity": "error", **fields}}))
    sys.exit(status)


def interface(host: str) -> str | None:
    """The network interface by which this node reaches ``host``, for gloo.

    It would take the one that the node's own name stands for, and on many systems that leads back to the node itself.
    """
    try:
        address = towards(host)
    except OSError:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without an address
                answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()))
                if socket.inet_ntoa(answer[20:24]) == address:  # struct ifreq, netdevice(7)
                    return name
    return None


def towards(host: str) -> str:
    """The address that this node has for ``host``. Nothing is sent. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))
        return str(probe.getsockname()[0])


if __name__ == "__main__":
    main()
