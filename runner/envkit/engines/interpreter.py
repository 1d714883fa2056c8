"""Tell which Python a command starts, without running the command.

Libraries to preload, and what PyTorch reads, follow from the Python that trains. The kit may be installed in another
one (pipx, uv tool), so this Python is taken from the command.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PYTHON = re.compile(r"python(\d+(\.\d+)*t?)?\Z")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# Commands that start the command among their own words, and find it by the same PATH.
WRAPPERS = frozenset({
    "catchsegv", "chrt", "env", "ionice", "mpiexec", "mpirun", "nice", "nohup", "numactl", "setsid", "srun",
    "stdbuf", "taskset", "time", "timeout",
})  # fmt: skip
# Commands that start another Python than their own.
CHOOSERS = frozenset({
    "conda", "dvc", "hatch", "mamba", "micromamba", "nox", "pdm", "pipenv", "pipx", "pixi", "poetry", "rye", "tox",
    "uv", "uvx",
})  # fmt: skip
_LONGEST_LINE = 4096
_PATIENCE_S = 10.0


def interpreter_of(
    argv: Sequence[str], variables: Mapping[str, str] | None = None, folder: Path | None = None
) -> Path | None:
    """Return the absolute path of the Python that ``argv`` starts, or None if the command does not tell.

    A Python is found by its name or path; a script, such as torchrun or accelerate, by its first line; both also
    behind ``env NAME=VALUE`` and the other ``WRAPPERS``. Commands that choose a Python by rules of their own give
    None: the ``CHOOSERS``, such as ``conda run``, shells and compiled programs. Paths stay as they are named: a
    virtual environment's Python is a link.
    ``variables`` and ``folder`` are those that the command starts with; by default the caller's.
    """
    variables = os.environ if variables is None else variables
    folder = Path.cwd() if folder is None else folder
    search = variables.get("PATH", os.defpath)
    wrapped = False
    for word in argv:
        if wrapped and word.startswith("PATH="):
            search = word.partition("=")[2]
        elif wrapped and word.startswith("--container"):
            return None  # srun with Pyxis: the command finds its Python inside of an image
        elif wrapped and (word.startswith("-") or _ASSIGNMENT.match(word)):
            continue
        elif (program := _program(word, search, folder)) is None:
            if not wrapped:
                return None  # of a wrapper it may be an option's value
        elif program.name in WRAPPERS:
            wrapped = True
        elif program.name in CHOOSERS:
            return None
        else:
            return _python(program, search, folder, variables)
    return None


def _program(word: str, search: str, folder: Path) -> Path | None:
    """Return the executable file that ``word`` names, as a shell in ``folder`` would find it."""
    if "/" in word:
        path = folder / word
        return path if path.is_file() and os.access(path, os.X_OK) else None
    executable = shutil.which(word, path=os.pathsep.join(str(folder / entry) for entry in search.split(os.pathsep)))
    return None if executable is None else Path(executable)


def _python(program: Path, search: str, folder: Path, variables: Mapping[str, str]) -> Path | None:
    """Return the Python that ``program`` is, or that its first line names."""
    first = _first_lines(program)
    if _PYTHON.match(program.name) and first is None:
        return program
    if _PYTHON.match(program.name):  # a script that chooses one, as those of pyenv do
        return _asked(program, folder, {**variables, "PATH": search})
    if first is None:
        return None
    line, second = first
    words = line.split()
    if words[:1] == ["/bin/sh"] and second.startswith("'''exec' "):  # how pip writes a path with blanks, or a long one
        words = [second.removeprefix("'''exec' ").partition(' "$0"')[0].strip('"')]
    elif words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and not _ASSIGNMENT.match(word)]
    interpreter = _program(words[0], search, folder) if words else None
    return (
        _python(interpreter, search, folder, variables)
        if interpreter is not None and _PYTHON.match(interpreter.name)
        else None
    )


def _first_lines(program: Path) -> tuple[str, str] | None:
    """Return what follows ``#!`` on the first line, and the second line; None if the file is no script."""
    try:
        with program.open("rb") as file:
            if file.read(2) != b"#!":
                return None
            lines = [file.readline(_LONGEST_LINE).decode(errors="replace").strip() for _ in range(2)]
    except OSError:
        return None
    return lines[0], lines[1]


def _asked(program: Path, folder: Path, variables: Mapping[str, str]) -> Path | None:
    """Return the Python that a script called ``python`` starts in ``folder``."""
    ask = [str(program), "-c", "import sys; print(sys.executable)"]
    try:
        done = subprocess.run(
            ask, cwd=folder, env=dict(variables), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_PATIENCE_S, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    answer = Path(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else program
    return answer if answer.is_absolute() and answer.is_file() else None
