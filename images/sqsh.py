#!/usr/bin/env python3
"""Make of a container's files those of an image for Enroot: a tar on the standard input, and another on the output.

usage: docker export CONTAINER | images/sqsh.py INSPECTED | mksquashfs - FILE -tar

INSPECTED has what `docker image inspect` or `podman image inspect` says of the image. Enroot reads that from files in
the image: its variables from /etc/environment, its volumes from /etc/fstab, and how it is started from /etc/rc
(https://github.com/NVIDIA/enroot/blob/master/doc/image-format.md). They take the place of those that are there.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

# What the engines themselves put into a container, and what Enroot mounts over.
LEFT_OUT = re.compile(r"\.dockerenv|dev/.*")
# What can't stand for itself in /etc/environment: Enroot fills in the second from the host's variables.
NOT_IN_VALUES = ("\n", "${")


class Unfit(Exception):
    """The image has something that Enroot's files can't say; the message is one line."""


def environment(config: Mapping[str, Any]) -> str:
    """/etc/environment: quotes around a value are taken away, so that one that has some gets others. Raises Unfit."""
    lines = []
    for entry in config.get("Env") or ():
        name, _, value = entry.partition("=")
        for text in NOT_IN_VALUES:
            if text in value:
                raise Unfit(f"the image sets {name} to a value with {text!r}, which Enroot can't take as it is")
        quoted = re.fullmatch(r"""["'].*["']\s*""", value) is not None
        lines.append(f'{name}="{value}"\n' if quoted else f"{name}={value}\n")
    return "".join(lines)


def fstab(config: Mapping[str, Any]) -> str:
    """/etc/fstab: each volume is mounted over itself, so that it can be written to where the rest can't be."""
    options = "x-create=dir,bind,rw,nosuid,nodev"
    return "".join(f"${{ENROOT_ROOTFS}}{path} {path} none {options}\n" for path in config.get("Volumes") or ())


def rc(config: Mapping[str, Any], image: str) -> str:
    """/etc/rc, which a shell runs with the command that was given, in the place of the image's own CMD."""
    command = shlex.join(config.get("Cmd") or (() if config.get("Entrypoint") else ("/bin/sh",)))
    start = " ".join(filter(None, (shlex.join(config.get("Entrypoint") or ()), '"$@"')))
    return (
        f"# Made of {image}.\n"
        f"cd {shlex.quote(config.get('WorkingDir') or '/')} || exit\n"
        "# Where Pyxis writes what it starts, where that is not to be the entry point.\n"
        "[ ! -s /etc/rc.local ] || . /etc/rc.local\n"
        f'[ "$#" -gt 0 ] || set -- {command}\n'
        f"exec {start}\n"
    )


def files(inspected: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """By name the texts and permissions of what Enroot wants of an image. Raises Unfit."""
    config = inspected["Config"]
    return {
        "etc/environment": (environment(config), 0o644),
        "etc/fstab": (fstab(config), 0o644),
        "etc/rc": (rc(config, str(inspected["Id"])), 0o755),
    }


def convert(source: BinaryIO, target: BinaryIO, own: Mapping[str, tuple[str, int]]) -> None:
    """Copy the tar from ``source`` to ``target``, with the files ``own``; an owner of the image can read all of it.

    Else Enroot could not, as it works without root's rights.
    """
    with (
        tarfile.open(fileobj=source, mode="r|") as given,
        tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as made,
    ):
        for member in given:
            name = member.name.removeprefix("./")
            if name in own or LEFT_OUT.fullmatch(name):
                continue
            member.mode |= 0o700 if member.isdir() else 0o400
            made.addfile(member, given.extractfile(member) if member.isreg() else None)
        for name, (text, mode) in own.items():
            member = tarfile.TarInfo(name)
            content = text.encode()
            member.size, member.mode = len(content), mode
            made.addfile(member, io.BytesIO(content))


def main() -> int:
    (inspected,) = json.loads(Path(sys.argv[1]).read_text())
    try:
        own = files(inspected)
        convert(sys.stdin.buffer, sys.stdout.buffer, own)
    except BrokenPipeError:  # what reads it says why it has ended
        return 1
    except (Unfit, tarfile.TarError, OSError) as error:
        print(f"sqsh.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
