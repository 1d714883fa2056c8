"""The local engine: an interpreter on this machine, the project's own or one that the user names."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from typing import Any

from envkit.common.errors import InputError
from envkit.engines.base import SOURCES, WORKER, EngineOptions, Outcome, Task, ended
from envkit.engines.process import Process, Started
from envkit.engines.setup_messages import CantBeStarted, NoInterpreter


class LocalEngine:
    """Start the worker by its path, so that the interpreter imports its own packages and none of the kit's."""

    name = "local"
    options = frozenset({"python"})

    def __init__(self, options: EngineOptions) -> None:
        named = options.python
        self.given = EngineOptions(python=named)
        found = shutil.which(named) if named else sys.executable
        if found is None:
            raise InputError(NoInterpreter(named))
        self._python = found

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "version": platform.release(), "image": self._python}

    def _argv(self, task: Task) -> list[str]:
        return [*task.prefix, self._python, str(WORKER), *task.arguments]

    def start(self, task: Task) -> Started:
        argv = self._argv(task)
        # a prefix may start the worker as a child of its own, which then has another parent
        if not task.prefix:
            die = f"--die-with-parent={os.getpid()}"
            if task.arguments[0] in ("train", "operators", "phases", "reference-kernel"):
                argv.append(die)
            elif task.arguments[0] in ("command", "instances", "ranks"):  # what these start comes last
                argv.insert(argv.index(task.arguments[0]) + 1, die)
        try:
            return Started(Process(argv, {**task.inherited, **task.variables}, SOURCES), task.timeout_s)
        except (FileNotFoundError, PermissionError) as error:
            raise InputError(CantBeStarted(argv[0], str(error.strerror))) from None

    def run(self, task: Task) -> Outcome:
        if task.nodes > 1:
            from envkit.engines import step

            return step.run(self._argv(task), {**task.inherited, **task.variables}, task.nodes, task.timeout_s)
        return ended(self.start(task))

    def command(self, task: Task) -> list[str]:
        # of the inherited variables only PATH is needed to start, and only to find a prefix's or the user's command
        path = [f"PATH={task.inherited.get('PATH', os.defpath)}"] if task.prefix or task.folder else []
        given = {**task.passed_on, **task.variables}
        variables = [f"{name}={value}" for name, value in given.items()]
        return ["env", "-i", "-C", str(SOURCES), *path, *variables, *self._argv(task)]
