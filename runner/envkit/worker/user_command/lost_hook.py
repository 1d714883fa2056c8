"""Find Python processes that use torch and run without the evidence hook, and say why the hook is missing.

``evidence_hook`` leaves ``PID.started`` in the folder of evidence as soon as a Python process, or one that it forks,
has it. A process without that file that has mapped torch's Python bindings can't testify. Python offers no other way
in that a replaced PYTHONPATH leaves open: a user's site folder is off in virtual environments.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.messages import Message
from envkit.worker.messages.hook import (
    BundledPython,
    CauseUnknown,
    EnvironmentEmptied,
    HookNotMounted,
    OtherSitecustomize,
    PathReplaced,
    PythonOption,
    PythonTwo,
    VariableRemoved,
    WithoutHook,
)

BINDINGS = "libtorch_python."  # which the programs of C++ that use torch do not map
HOOK_FOLDER = "/worker/evidence_hook"  # the end of the hook's folder, in a container as outside
KEEPS_HOOK_OUT = "IES"  # Python's options that ignore PYTHONPATH, or load no sitecustomize
WITH_VALUE = ("-W", "-X")
LONGEST_SHOWN = 100


def is_lost(pid: int, mapped: Sequence[str] | frozenset[str], folder: Path) -> bool:
    """Return whether the process uses torch from Python and has left no sign of the hook in ``folder``."""
    uses_torch = any(path.rpartition("/")[2].startswith(BINDINGS) for path in mapped)
    return uses_torch and not any(Path(folder, f"{number}.started").exists() for number in _numbers(pid))


def why(pid: int, argv: Sequence[str], variables: Mapping[str, str], starter: str) -> WithoutHook:
    """Return why the process has no hook, and what mends that. It may just have ended.

    ``variables`` are those that it was started with, and ``starter`` is the command line of what started it.
    """
    return WithoutHook(pid, _shown(" ".join(argv)), _reason(pid, argv, variables, _shown(starter)))


def _reason(pid: int, argv: Sequence[str], variables: Mapping[str, str], starter: str) -> Message:
    """Return the reason: the interpreter, its variables or, if these are right, the files."""
    path = variables.get("PYTHONPATH")
    entries = path.split(os.pathsep) if path else []
    hook = next((entry for entry in entries if entry.rstrip("/").endswith(HOOK_FOLDER)), None)
    reason = _interpreter(_program(pid, argv), argv)
    if reason is None and (hook is None or "ENVKIT_EVIDENCE" not in variables):
        reason = _variables(path, hook, "ENVKIT_EVIDENCE" in variables, starter)
    if reason is None and hook is not None:
        reason = _files(pid, hook, entries[: entries.index(hook)], starter)
    return reason or CauseUnknown(starter)


def _interpreter(program: str, argv: Sequence[str]) -> Message | None:
    if not program.startswith(("python", "pypy")):
        return BundledPython(program)
    if program.startswith("python2"):
        return PythonTwo()
    letters = _letters(argv)
    return next((PythonOption(letter) for letter in KEEPS_HOOK_OUT if letter in letters), None)


def _variables(path: str | None, hook: str | None, has_evidence: bool, starter: str) -> Message:
    if hook is not None:
        return VariableRemoved("ENVKIT_EVIDENCE", starter)
    if not has_evidence:
        return EnvironmentEmptied(starter)
    return PathReplaced(path, starter) if path else VariableRemoved("PYTHONPATH", starter)


def _files(pid: int, hook: str, before: Sequence[str], starter: str) -> Message | None:
    if _is_running(pid) and not Path(f"/proc/{pid}/root{hook}/sitecustomize.py").exists():
        return HookNotMounted(hook, starter)
    other = _other_sitecustomize(pid, before)
    return None if other is None else OtherSitecustomize(other, str(Path(other).parent), starter)


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
        return os.readlink(f"/proc/{pid}/exe").rpartition("/")[2]
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
    """Return the file of another ``sitecustomize`` in one of these entries of PYTHONPATH; None if absent."""
    for entry in before:
        inside = entry if entry.startswith("/") else f"/proc/{pid}/cwd/{entry}"
        for name in ("sitecustomize.py", "sitecustomize/__init__.py"):
            if Path(inside, name).exists():
                return str(Path(entry, name))
    return None


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
