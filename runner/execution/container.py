"""How a command is started under a profile in a container: by the engine's own command, in the current folder."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.engines import container
from runner.engines.apptainer import REACH_INSIDE
from runner.engines.base import Task
from runner.errors import InputError
from runner.execution import kept, resolving
from runner.execution.start import Start, witnessed

WITNESS = f"{container.CODE}/worker/witness"
EVIDENCE = "/evidence"
# Where the engine's own options begin, and how it mounts a folder.
WORDS = {"docker": ("run", "--volume"), "podman": ("run", "--volume"), "apptainer": ("exec", "--bind")}


def prepare(
    arguments: argparse.Namespace, command: Sequence[str], passed_on: Mapping[str, str], evidence: str | None
) -> tuple[dict[str, Any], Start]:
    """The environment inside, and how ``command`` is started there with the variables ``passed_on``.

    The current folder is mounted under its own name and can be written to, as the calling user. Raises InputError.
    """
    engine = resolving.engine(arguments)
    if engine.name not in WORDS:  # the local engine, with options of others: said by now
        raise InputError(f"--engine {engine.name}: runs nothing in a container")
    executable = shutil.which(engine.name)
    if executable is None:
        raise InputError(f"the command '{engine.name}' is not on the PATH; install it, or choose another --engine")
    limits = {name: getattr(arguments, name) for name in ("cpus", "cpuset_cpus", "memory")}
    asked = kept.question(arguments.profile, {**engine.describe(), **limits}, arguments.allow_unknown)
    environment = kept.answer(asked) or resolving.make(arguments, engine, asked)
    variables = {**passed_on, **environment["variables"]}
    task = Task(
        arguments=(),
        program=tuple(command),
        variables={**variables, **witnessed(variables, WITNESS, EVIDENCE if evidence else None)},
        prefix=tuple(environment["prefix"]),
        folder=str(Path.cwd()),
    )
    argv = engine.command(task)
    word, mount = WORDS[engine.name]
    at = argv.index(word) + 1
    argv[at:at] = [*_attached(engine.name), *([mount, f"{evidence}:{EVIDENCE}:rw"] if evidence else [])]
    caller = {name: value for name, value in os.environ.items() if not name.startswith(REACH_INSIDE)}
    return environment, Start(executable, argv, caller, watched=False)


def _attached(engine: str) -> list[str]:
    """The options that join the command to this terminal, and have a first process that signals can end."""
    if engine == "apptainer":
        return []
    terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
    return ["--init", "--interactive", *(["--tty"] if terminal else [])]
