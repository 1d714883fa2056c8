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
# By which ranks learn where nodes meet, and which of them this is (``envkit.worker.ranks``).
RENDEZVOUS, NODE_RANK = "ENVKIT_RENDEZVOUS", "ENVKIT_NODE_RANK"
# What each node adds to the worker's environment.
OF_EACH_NODE = (INTERFACE, RENDEZVOUS, NODE_RANK)
F_SETPIPE_SZ = 1031  # fcntl(2); Python 3.10 brought the name


def main() -> NoReturn:
    if GIVEN not in os.environ:
        _end(2, "engines.not-passed-on", variable=GIVEN)
    step = json.loads(os.environ[GIVEN])
    environment: dict[str, str] = step["environment"]
    # in a container these are the image's, but for what is of no use in there
    around = {name: value for name, value in os.environ.items() if name not in (GIVEN, *OF_THE_NODE)}
    of_this_node = {name: os.environ[name] for name in OF_THE_NODE if name in environment and name in os.environ}
    number = step["nodes"].index(os.environ["SLURMD_NODENAME"])
    prefix = step["inside"]
    of_this_node |= {f"{prefix}{RENDEZVOUS}": f"{step['host']}:{step['port']}", f"{prefix}{NODE_RANK}": str(number)}
    if f"{prefix}{INTERFACE}" not in environment and (device := interface(step["host"])):  # a user's own choice stays
        of_this_node[f"{prefix}{INTERFACE}"] = device
    argv: list[str] = step["argv"]
    try:
        _from_pipe(step["request"].encode())
        if not step["within"]:  # an empty entry of PYTHONPATH means this folder: it must have no package of the kit
            os.chdir("/")
        os.execvpe(argv[0], argv, {**(around if step["within"] else {}), **environment, **of_this_node})
    except OSError as error:
        _end(127, "engines.not-started-on", program=argv[0], node=platform.node(), reason=str(error.strerror))


def _from_pipe(text: bytes) -> None:
    """Have standard input hold ``text``, for the program that this process becomes."""
    ours, theirs = os.pipe()
    with contextlib.suppress(OSError):  # not so many are allowed: a request takes a part of the usual 64 KiB
        fcntl.fcntl(theirs, F_SETPIPE_SZ, len(text))
    os.write(theirs, text)
    os.close(theirs)
    os.dup2(ours, 0)
    os.close(ours)


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
