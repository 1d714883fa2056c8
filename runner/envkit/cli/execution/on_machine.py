"""How a command is started under a profile on this machine, and the evidence hook that goes with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from envkit.cli.execution.executables import find, load_messages
from envkit.common.errors import InputError
from envkit.worker import scratch
from envkit.worker.performance_variables import asked_for, noted

MEMORY = "/dev/shm"  # on a disk, it can take milliseconds to remove a folder
EVIDENCE_BYTES = 2**20  # more than all processes of a command leave
HOOK = Path(__file__).resolve().parents[2] / "worker" / "evidence_hook"


class Start:
    """The file to execute, its command line and all its variables; ``watched``: its processes are in this /proc."""

    def __init__(self, executable: str, argv: Sequence[str], variables: Mapping[str, str], watched: bool) -> None:
        self.executable = executable
        self.argv = list(argv)
        self.variables = dict(variables)
        self.watched = watched


def local(
    environment: Mapping[str, Any], command: Sequence[str], inherited: Mapping[str, str], evidence: str | None
) -> Start:
    """Start ``command`` on this machine, with the evidence hook if ``evidence`` names a folder.

    Raises Unusable where the command, or that of the profile's prefix, is none.
    """
    variables = {**inherited, **environment["variables"]}
    search = variables.get("PATH")
    executable = find(command[0], search)
    argv = [*environment["prefix"], *command]
    if environment["prefix"]:
        executable = find(argv[0], search)
    told = with_hook(variables, str(HOOK), evidence, environment["variables"])
    return Start(executable, argv, {**variables, **told}, watched=True)


def with_hook(variables: Mapping[str, str], hook: str, evidence: str | None, names: Iterable[str]) -> dict[str, str]:
    """The variables that put the evidence hook into every Python process; it leaves what it saw in ``evidence``.

    ``names`` are the profile's variables, of which it is to tell the values: those of sensitive ones it tells anyway,
    and PYTHONPATH is its own.
    """
    if evidence is None:
        return {}
    earlier = variables.get("PYTHONPATH")
    # an empty entry stands for the current folder
    others = [entry for entry in earlier.split(os.pathsep) if entry != hook] if earlier else []
    path = os.pathsep.join([hook, *others])
    return {"PYTHONPATH": path, "ENVKIT_EVIDENCE": evidence, **asked_for(names), **noted(variables)}


def _free_bytes(folder: str) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


@contextlib.contextmanager
def evidence_folder(shared: bool) -> Iterator[Path]:
    """A new folder, gone at the end, which no other user of this machine can enter.

    A ``shared`` one is for a container, whose processes may be another user's outside. Whoever is inside of the
    container can write there, as the folder itself is mounted; the one around it stays closed.
    """
    in_memory = not shared and os.access(MEMORY, os.W_OK) and _free_bytes(MEMORY) >= EVIDENCE_BYTES
    place = Path(os.environ.get("TMPDIR") or (MEMORY if in_memory else "/tmp")).absolute()
    with contextlib.ExitStack() as held:
        try:
            folder = held.enter_context(scratch.folder("envkit-exec", place))
            if shared:
                folder /= "shared"
                folder.mkdir()
                folder.chmod(0o777)
        except OSError as error:
            raise InputError(load_messages().NoEvidenceFolder(str(place), str(error.strerror))) from None
        yield folder
