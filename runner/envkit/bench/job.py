"""The job of a run: all that is needed to start its workers."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.bench import private_values, requests
from envkit.bench.arms import Arm
from envkit.bench.context import ExecutionContext
from envkit.bench.messages import PassedOn, WorkerReported
from envkit.bench.problem_messages import WithoutVariables
from envkit.bench.record import RecordFull
from envkit.bench.study import Study
from envkit.common import atomic
from envkit.engines.base import Launch
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.worker.messages.user_command import CommandEnded
from envkit.worker.performance_variables import LISTS, asked_for, is_needed, joined, settings, shared
from envkit.worker.request import Instances, Ranks

if TYPE_CHECKING:
    from envkit.worker.request import Work

PADDING = "ENVKIT_PADDING"
# Trackers of experiments are off in workers, which would start a run of theirs for each sample: as their manuals say.
# No mode of Neptune's is off in both of its clients, and offline writes to the working copy alone.
TRACKERS_OFF = {
    "WANDB_MODE": "disabled", "NEPTUNE_MODE": "offline", "SWANLAB_MODE": "disabled", "CLEARML_OFFLINE_MODE": "1",
}  # fmt: skip
# In the folder of a record: what workers read.
REQUESTS = "requests"
# Two of these enclose the name of a caller's variable whose value belongs there.
MARK = "@envkit@"


@dataclass(frozen=True)
class Job:
    """Everything it takes to start workers: what to measure, as whom, and with what."""

    study: Study
    environments: dict[str, Environment]  # by the arm's name
    context: ExecutionContext

    @property
    def given(self) -> dict[str, str]:
        """The variables that are kept, as each arm has them; lists lack the settings that an arm makes."""
        return shared(self.context.kept, [environment.variables for environment in self.environments.values()])

    def launch(self, arm: Arm, work: Work, padding: int = 0) -> Launch:
        """The start of one worker of ``arm``, its environment made larger by ``padding`` bytes."""
        environment = self.environments[arm.name]
        announced = asked_for(environment.variables) if self.study.user_command else {}  # the command may replace them
        caller_settings = self.given
        variables = joined({**self._trackers_off, **environment.variables}, caller_settings)
        return Launch(
            work=self._placed(arm, work),
            variables={**variables, **announced, **({PADDING: "x" * padding} if padding else {})},
            inherited={
                name: caller_settings.get(name, value)
                for name, value in self.context.inherited.items()
                if name in caller_settings or name not in self.context.kept
            },
            prefix=environment.prefix,
            timeout_s=self.study.stopping.timeout_s,
            passed_on={name: value for name, value in caller_settings.items() if name not in variables},
            nodes=1 if arm.ranks is not None else self.study.nodes,
            gpus=self.study.options.on_gpus,
        )

    def _placed(self, arm: Arm, work: Work) -> Work:
        """Return the work with the measured cores of this machine, if it starts several processes."""
        cores = self.context.seen[arm.target]["inspection"].get("measured_cores")
        if not cores or self.study.nodes > 1 or not isinstance(work, Ranks | Instances):
            return work
        return replace(work, cores=tuple(cores))

    @property
    def passed_on(self) -> PassedOn | None:
        """Which of the caller's variables all arms have because a user's command may need them; None if none."""
        caller_settings = self.given
        names = tuple(sorted(filter(is_needed, caller_settings)))
        replaced = [
            key
            for name in sorted(LISTS.keys() & self.context.kept.keys())
            for key in settings(name, self.context.kept[name]).keys()
            - settings(name, caller_settings.get(name, "")).keys()
        ]
        return PassedOn(names, tuple(sorted(replaced))) if names or replaced else None

    def explained(self, problem: Message) -> Message:
        """Return why the first start of a user's command failed, with the variables that it may have lacked."""
        of_command = problem.problem if isinstance(problem, WorkerReported) else None
        if not isinstance(of_command, CommandEnded) or not self.context.removed:
            return problem
        option = self.context.removed[0] if len(self.context.removed) == 1 else "NAME"
        return WithoutVariables(problem, self.context.removed, option)

    @property
    def _trackers_off(self) -> dict[str, str]:
        if self.study.user_command is None:
            return {}
        return {name: value for name, value in TRACKERS_OFF.items() if name not in self.context.kept}

    def typed(self, arm: Arm, folder: Path) -> str:
        """Return the shell command that starts a worker of ``arm``. The shell fills in the caller's variables.

        The request that the worker reads is written to the record's ``folder``, without values of these variables.
        Raise RecordFull if it can't be written.
        """
        marked = {name: f"{MARK}{name}{MARK}" for name in {*self.context.kept, "PATH"}}
        environment = self.environments[arm.name]
        lists = LISTS.keys() & self.context.kept.keys() & environment.variables.keys()  # which no mark is a setting of
        kept = {name: marked[name] for name in self.context.kept if name not in lists}
        others = {name: f"{marked[name]}{LISTS[name][0]}{environment.variables[name]}" for name in lists}
        environment = replace(environment, variables={**environment.variables, **others})
        inherited = {**self.context.inherited, **marked}
        context = replace(self.context, kept=kept, inherited=inherited)
        job = replace(self, context=context, environments={arm.name: environment})
        engine, launch = self.context.engines[arm.target], job.launch(arm, requests.of_sample(self.study, arm))
        request = engine.request(launch)
        assert request is not None, "it is a worker"
        document = private_values.hidden(request.to_json(), self.context.kept, self.context.inherited)
        file = _written(f"{json.dumps(document)}\n".encode(), folder)
        return f"{' '.join(map(_typed, engine.command(launch)))} < {shlex.quote(str(file))}"


def _written(content: bytes, folder: Path) -> Path:
    """Write a request to the record's folder, under a name that says what it holds. Raise RecordFull."""
    file = folder.resolve() / REQUESTS / f"{hashlib.sha256(content).hexdigest()[:16]}.json"
    try:
        atomic.make_private(file.parent)
        if not file.exists():
            atomic.put(file, content, atomic.PRIVATE)
    except OSError as error:
        raise RecordFull(folder, error.strerror) from None
    return file


def _typed(word: str) -> str:
    """Quote a word for a shell; write marked names as ``"$NAME"``."""
    pieces = word.split(MARK)
    return "".join(f'"${part}"' if at % 2 else part and shlex.quote(part) for at, part in enumerate(pieces)) or "''"
