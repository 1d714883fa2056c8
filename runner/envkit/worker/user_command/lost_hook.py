"""Find Python processes that use torch and run without the evidence hook, and say why the hook is missing.

``evidence_hook`` leaves ``PID.started`` in the folder of evidence as soon as a Python process, or one that it forks,
has it. A process without that file that has mapped torch's Python bindings can't testify. Python offers no other way
in that a replaced PYTHONPATH leaves open: a user's site folder is off in virtual environments.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

BINDINGS = "libtorch_python."  # which the programs of C++ that use torch do not map
HOOK_FOLDER = "/worker/evidence_hook"  # the end of the hook's folder, in a container as outside
OF_ITS_OWN = "(env -i, sudo or a container of its own)"
WITH_VALUE = ("-W", "-X")
LONGEST_SHOWN = 100


def is_lost(pid: int, mapped: Sequence[str] | frozenset[str], folder: Path) -> bool:
    """Return whether the process uses torch from Python and has left no sign of the hook in ``folder``."""
    uses_torch = any(path.rpartition("/")[2].startswith(BINDINGS) for path in mapped)
    return uses_torch and not any(Path(folder, f"{number}.started").exists() for number in _numbers(pid))


def why(pid: int, argv: Sequence[str], given: Mapping[str, str], starter: str) -> str:
    """Return a sentence: why the process has no hook, and what mends that. It may just have ended.

    ``given`` are the variables that it was started with, and ``starter`` is the command line of what started it.
    """
    reason, mend = _reason(pid, argv, given, _shown(starter))
    return f"process {pid} ('{_shown(' '.join(argv))}') runs without envkit's hook: {reason}; {mend}"


def _reason(pid: int, argv: Sequence[str], given: Mapping[str, str], starter: str) -> tuple[str, str]:
    """Return the reason and its mend: the interpreter, its variables or, where these are right, the files."""
    path = given.get("PYTHONPATH")
    entries = path.split(os.pathsep) if path else []
    hook = next((entry for entry in entries if entry.rstrip("/").endswith(HOOK_FOLDER)), None)
    found = _interpreter(_program(pid, argv), argv)
    if found is None and (hook is None or "ENVKIT_EVIDENCE" not in given):
        found = _variables(path, hook, "ENVKIT_EVIDENCE" in given, starter)
    if found is None and hook is not None:
        found = _files(pid, hook, entries[: entries.index(hook)], starter)
    unknown = "the reason is not known", f"see whether '{starter}' starts it with another sitecustomize"
    return found or unknown


def _interpreter(program: str, argv: Sequence[str]) -> tuple[str, str] | None:
    if not program.startswith(("python", "pypy")):
        return f"'{program}' brings a Python of its own, as PyInstaller makes it", "run the script with python itself"
    if program.startswith("python2"):
        return "it is Python 2", "run it with Python 3"
    for letter, effect in (("I", "ignores PYTHONPATH"), ("E", "ignores PYTHONPATH"), ("S", "loads no sitecustomize")):
        if letter in _letters(argv):
            return f"with -{letter} Python {effect}", f"start it without -{letter}"
    return None


def _variables(path: str | None, hook: str | None, has_evidence: bool, starter: str) -> tuple[str, str]:
    if hook is not None:
        return "ENVKIT_EVIDENCE was removed from its environment", f"let '{starter}' pass on ENVKIT_*"
    if not has_evidence:
        return f"its environment was emptied {OF_ITS_OWN}", f"let '{starter}' pass on PYTHONPATH and ENVKIT_*"
    if not path:
        return "PYTHONPATH was removed from its environment", f"let '{starter}' leave PYTHONPATH as it is"
    return (
        f"PYTHONPATH={path} replaces the hook's folder",
        f"write PYTHONPATH={path}:$PYTHONPATH where '{starter}' sets it",
    )


def _files(pid: int, hook: str, before: Sequence[str], starter: str) -> tuple[str, str] | None:
    if _is_running(pid) and not Path(f"/proc/{pid}/root{hook}/sitecustomize.py").exists():
        return f"it can't see {hook}, as in a container of its own", f"let '{starter}' mount that folder"
    other = _other_sitecustomize(pid, before)
    if other is not None:
        added = f"PYTHONPATH=$PYTHONPATH:{Path(other).parent}"
        return (
            f"{other} comes before the hook",
            f"write {added} where '{starter}' sets it; the hook then runs that file",
        )
    return None


def _numbers(pid: int) -> list[str]:
    """Return the process's numbers here and in the PID namespaces that it is in (proc(5), NSpid)."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return [str(pid)]
    return next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [str(pid)])


def _is_running(pid: int) -> bool:
    return os.access(f"/proc/{pid}/root/.", os.F_OK)


def _program(pid: int, argv: Sequence[str]) -> str:
    """Return the name of the file that the process executes; by its command line where that can't be read."""
    try:
        return os.readlink(f"/proc/{pid}/exe").rpartition("/")[2]  # noqa: PTH115 - a name and no path
    except OSError:
        return argv[0].rpartition("/")[2]


def _letters(argv: Sequence[str]) -> str:
    """Return all one-letter options that Python itself was given, without those of the script."""
    letters = ""
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("-") or word in ("-", "--") or word[1] in "cm":
            break
        if word in WITH_VALUE or word.startswith("--"):
            next(words, None)
        elif word[:2] not in WITH_VALUE:
            letters += word[1:]
            if word[-1] in "cm":
                break
    return letters


def _other_sitecustomize(pid: int, before: Sequence[str]) -> str | None:
    """Return the file of another ``sitecustomize`` in one of these entries of PYTHONPATH; None if there is none."""
    for entry in before:
        inside = entry if entry.startswith("/") else f"/proc/{pid}/cwd/{entry}"
        for name in ("sitecustomize.py", "sitecustomize/__init__.py"):
            if Path(inside, name).exists():
                return str(Path(entry, name))
    return None


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
