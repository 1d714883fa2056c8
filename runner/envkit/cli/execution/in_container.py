"""How a command is started under a profile in a container: by the engine's own command, in the current folder."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envkit.cli import engine_options
from envkit.cli.execution import resolving
from envkit.cli.execution.executables import load_messages
from envkit.cli.execution.on_machine import Start, with_hook
from envkit.cli.execution.resolving import ResolvedProfile
from envkit.common.errors import InputError
from envkit.engines import CONTAINERS, container
from envkit.engines.base import Launch
from envkit.worker.gpus import CHOOSING
from envkit.worker.performance_variables import preloading

HOOK = f"{container.CODE}/worker/evidence_hook"
EVIDENCE = "/evidence"


def prepare(
    arguments: argparse.Namespace, command: Sequence[str], passed_on: Mapping[str, str], evidence: str | None
) -> tuple[ResolvedProfile, Start, dict[str, str]]:
    """Return the profile resolved inside, how ``command`` is started there, and the caller's variables passed to it.

    These are ``passed_on``; and with GPUs (--gpus, or a profile for some), which a container is given all of, those
    that say which are meant. The current folder is mounted under its own name and can be written to, as the calling
    user. Raise InputError if the engine is missing or can't run it.
    """
    engine, inherited = engine_options.engine(arguments)
    if engine.name not in CONTAINERS:  # the local engine, with options of others, which has been reported
        raise InputError(load_messages().NoContainers(engine.name))
    if shutil.which(engine.name) is None:
        raise InputError(load_messages().EngineMissing(engine.name))
    resolved = resolving.resolve_inside(engine, inherited, arguments.profile, arguments.allow_unknown)
    variables = preloading(resolved.environment.variables, passed_on)
    environment = replace(resolved.environment, variables=variables)
    gpus = arguments.gpus or bool(environment.gpus)
    chosen = {name: os.environ[name] for name in CHOOSING if name in os.environ} if gpus else {}
    callers = {**chosen, **passed_on}
    path = resolved.inspection.get("python_path")
    images = {"PYTHONPATH": path} if path else {}  # which is to stay
    observing = with_hook({**images, **callers, **variables}, HOOK, EVIDENCE if evidence else None, variables)
    launch = Launch(
        program=tuple(command),
        variables={**variables, **observing},
        prefix=environment.prefix,
        program_folder=str(Path.cwd()),
        passed_on=callers,
        gpus=gpus,
    )
    argv = engine.command(launch)
    kind = CONTAINERS[engine.name]
    at = argv.index(kind.start) + 1
    mount = [kind.mount, kind.mounted(f"{evidence}:{EVIDENCE}:rw")] if evidence else []
    argv[at:at] = [*_attached(engine.name), *mount]
    executable = shutil.which(argv[0]) or argv[0]  # the engine's own, or one that starts it
    start = Start(executable, argv, kind.callers(launch, os.environ), watched=False)
    return replace(resolved, environment=environment), start, callers


def _attached(engine: str) -> list[str]:
    """Return the options that join the command to this terminal, and have a first process that signals can end.

    A terminal has one stream for output and errors, so both must go there. In the background nothing may be read.
    """
    if not CONTAINERS[engine].attaches:
        return []
    typed, *shown = (stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    reads = not typed or _in_the_foreground()
    return ["--init", *(["--interactive"] if reads else []), *(["--tty"] if typed and reads and all(shown) else [])]


def _in_the_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # not the terminal of this session, which nobody controls jobs in
        return True
