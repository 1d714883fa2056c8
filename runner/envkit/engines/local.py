"""The local engine: an interpreter on this machine, the project's own or one that the user names."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envkit.common.errors import InputError
from envkit.engines.base import WORKER, EngineOptions, Launch, Outcome, ended
from envkit.engines.interpreter import interpreter_of
from envkit.engines.process import Process, Started
from envkit.engines.setup_messages import CantBeStarted, NoInterpreter
from envkit.worker.initial_environment import started_with
from envkit.worker.request import STDIN, Inspect, WorkerRequest

# Where workers start. An empty entry of PYTHONPATH means this folder, which must have no package that hides the user's.
FOLDER = Path("/")


class LocalEngine:
    """Start the worker by its path, so that the interpreter imports its own packages and none of the kit's.

    ``of_no_python`` is the first word of a user's command that does not tell which Python it starts, if there is one.
    """

    name = "local"
    options = frozenset({"python"})

    def __init__(self, options: EngineOptions) -> None:
        named = options.python
        self.given = EngineOptions(python=named)
        python = shutil.which(named) if named else sys.executable
        if python is None:
            raise InputError(NoInterpreter(f"--python {named}" if named else "--python"))
        self._python = python
        self._looked_into = python
        self.of_no_python: str | None = None

    def for_command(
        self, argv: Sequence[str], folder: Path | None = None, variables: Mapping[str, str] | None = None
    ) -> LocalEngine:
        """Return an engine that looks into the Python that a user's command starts in ``folder``, unless one is named.

        Workers that only watch the command stay with this engine's own Python: they need no torch. The other arguments
        are those of ``interpreter_of``.
        """
        if self.given.python is not None:
            return self
        engine = LocalEngine(self.given)
        interpreter = interpreter_of(argv, variables, folder)
        if interpreter is None:
            engine.of_no_python = argv[0]
        else:
            engine._looked_into = str(interpreter)
        return engine

    def for_process(self, pid: int) -> LocalEngine:
        """Return an engine that looks into the Python of a process that runs already, unless one is named.

        To look into a Python is to run it, so another user's Python is left alone.
        """
        process = Path("/proc", str(pid))
        try:
            if not _is_own(process):
                return self
            argv = process.joinpath("cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
            variables = started_with(process.joinpath("environ").read_bytes().decode(errors="surrogateescape"))
            return self.for_command(argv, process.joinpath("cwd").readlink(), variables)
        except OSError:  # it has ended, or is another user's: who watches it says so
            return self

    def describe(self) -> dict[str, str]:
        return {"name": self.name, "version": platform.release(), "image": self._looked_into}

    def _argv(self, launch: Launch) -> list[str]:
        python = self._looked_into if isinstance(launch.work, Inspect) else self._python
        return [*launch.prefix, python, str(WORKER), STDIN]

    def request(self, launch: Launch) -> WorkerRequest | None:
        return launch.request

    def start(self, launch: Launch) -> Started:
        argv, request = self._argv(launch), launch.request
        # a prefix may start the worker as a child of its own, which then has another parent
        if request is not None and not launch.prefix and not isinstance(launch.work, Inspect):
            request = replace(request, parent=os.getpid())
        try:
            process = Process(argv, {**launch.inherited, **launch.variables}, FOLDER, request, launch.ahead)
            return Started(process, launch.timeout_s)
        except (FileNotFoundError, PermissionError) as error:
            raise InputError(CantBeStarted(argv[0], str(error.strerror))) from None

    def run(self, launch: Launch) -> Outcome:
        if launch.nodes > 1:
            from envkit.engines import step

            return step.run(
                self._argv(launch),
                {**launch.inherited, **launch.variables},
                launch.nodes,
                launch.timeout_s,
                launch.request,
            )
        return ended(self.start(launch))

    def command(self, launch: Launch) -> list[str]:
        # of the inherited variables only PATH is needed to start, and only to find a prefix's or the user's command
        path = [f"PATH={launch.inherited.get('PATH', os.defpath)}"] if launch.prefix or launch.folder else []
        environment = {**launch.passed_on, **launch.variables}
        variables = [f"{name}={value}" for name, value in environment.items()]
        return ["env", "-i", "-C", str(FOLDER), *path, *variables, *self._argv(launch)]


def _is_own(process: Path) -> bool:
    """Return whether every user ID of a process is this process's effective one (proc_pid_status(5)).

    The owner of its folder in /proc does not tell: that is root for any process that turns core dumps off.
    """
    lines = process.joinpath("status").read_text(errors="replace").splitlines()
    ids = next(line.split()[1:] for line in lines if line.startswith("Uid:"))
    return {*ids} == {str(os.geteuid())}
