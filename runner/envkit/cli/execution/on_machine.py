"""How a command is started under a profile on this machine, and the evidence hook that goes with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from envkit.cli.execution.executables import find, load_messages
from envkit.common.errors import InputError
from envkit.worker.performance_variables import asked_for

MEMORY = "/dev/shm"  # on a disk, it can take milliseconds to remove a folder
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
    return {"PYTHONPATH": os.pathsep.join([hook, *others]), "ENVKIT_EVIDENCE": evidence, **asked_for(names)}


@contextlib.contextmanager
def evidence_folder(shared: bool) -> Iterator[Path]:
    """A new folder, gone at the end (``tempfile`` takes long to import).

    Only this user can open it, unless it is ``shared``: in a container the user may be another one outside. Then it is
    in a folder that others can't list, and so can't be found by them.
    """
    in_memory = not shared and os.access(MEMORY, os.W_OK)
    place = os.environ.get("TMPDIR") or (MEMORY if in_memory else "/tmp")
    outer = Path(place).absolute() / f"envkit-exec-{os.getpid()}-{os.urandom(6).hex()}"
    folder = outer / os.urandom(6).hex() if shared else outer
    try:
        outer.mkdir(mode=0o700)
        if shared:
            outer.chmod(0o711)
            folder.mkdir()
            folder.chmod(0o777)
    except OSError as error:
        problem = load_messages().NoEvidenceFolder(str(outer.parent), str(error.strerror))
        raise InputError(problem) from None
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            for file in folder.iterdir():
                file.unlink()
            for made in dict.fromkeys((folder, outer)):
                made.rmdir()
