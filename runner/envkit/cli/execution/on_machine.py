"""How a command is started under a profile on this machine, and the evidence hook that goes with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from envkit.cli.execution.executables import find, load_messages
from envkit.common.errors import InputError
from envkit.profiles.environment import Environment
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
    environment: Environment, command: Sequence[str], inherited: Mapping[str, str], evidence: str | None
) -> Start:
    """Start ``command`` on this machine, with the evidence hook if ``evidence`` names a folder.

    Raise Unusable if the command, or the profile's prefix, can't be executed.
    """
    variables = {**inherited, **environment.variables}
    search = variables.get("PATH")
    executable = find(command[0], search)
    argv = [*environment.prefix, *command]
    if environment.prefix:
        executable = find(argv[0], search)
    observing = with_hook(variables, str(HOOK), evidence, environment.variables)
    return Start(executable, argv, {**variables, **observing}, watched=True)


def with_hook(variables: Mapping[str, str], hook: str, evidence: str | None, names: Iterable[str]) -> dict[str, str]:
    """Return the variables that put the evidence hook into every Python process; it writes to the folder ``evidence``.

    ``names`` are the profile's variables, whose values it reports. It reports those of sensitive variables anyway, and
    PYTHONPATH is its own.
    """
    if evidence is None:
        return {}
    earlier = variables.get("PYTHONPATH")
    # an empty entry stands for the current folder
    others = [entry for entry in earlier.split(os.pathsep) if entry != hook] if earlier else []
    path = os.pathsep.join([hook, *others])
    return {"PYTHONPATH": path, "ENVKIT_EVIDENCE": evidence, **asked_for(names), **noted(variables)}


def _free_bytes(folder: str) -> int:
    file_system = os.statvfs(folder)
    return file_system.f_bavail * file_system.f_frsize


@contextlib.contextmanager
def evidence_folder(shared: bool) -> Iterator[Path]:
    """Yield a new folder, which no other user of this machine can enter, and remove it at the end.

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
