"""The steps of a torch optimizer in somebody's own training, which ``evidence_hook`` times in its processes.

Either the program ends itself after so many steps, or it is watched for some seconds and ended from here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envkit.messages import Message, from_json
from envkit.worker import left
from envkit.worker.messages.user_command import (
    FewerStepsThanAsked,
    FewStepsBeforeEnd,
    FewStepsWatched,
    NoSteps,
    NoStepsBeforeEnd,
    NoTorch,
    NoTorchYet,
    OtherMeans,
    SlowStart,
    StepsHidden,
    TooShort,
)
from envkit.worker.request import RunCommand
from envkit.worker.user_command import process_tree
from envkit.worker.user_command.metric import NotMeasured

# How often it is looked whether a program that is watched has left its steps. The first rank's are waited for, for
# GRACE_S when another's are there.
POLL_S, GRACE_S = 0.25, 1.0
# How many must count where a program is watched.
LEAST = 4
# How many must count where the machine's pace is to be seen.
LEAST_BY_PACE = 5


@dataclass(frozen=True)
class StepRequest:
    """After ``warmup`` steps so many ``steps`` count; 0 of them watches the command for ``seconds``.

    Times are in seconds. With ``least_s`` steps count until so much time has passed, or until the command ends. No step
    within ``first_s`` ends the command. One that is watched is ended after ``limit_s``, whatever it has done.
    """

    warmup: int
    steps: int = 0
    seconds: float = 0.0
    limit_s: float = 0.0
    least_s: float = 0.0
    first_s: float = 0.0

    @staticmethod
    def of(work: RunCommand) -> StepRequest | None:
        """Return the part of a request that concerns an optimizer, or None."""
        if work.steps:
            return StepRequest(work.warmup, steps=work.steps, least_s=work.least_s, first_s=work.first_step_s)
        if work.watch_s:
            return StepRequest(work.warmup, seconds=work.watch_s, limit_s=work.watch_limit_s)
        return None

    @property
    def variable(self) -> str:
        """ENVKIT_STEPS, as ``evidence_hook`` reads it."""
        if not self.steps:
            return f"seconds:{self.warmup}:{self.seconds}"
        return f"steps:{self.warmup}:{self.steps}" + (f":{self.least_s:g}" if self.least_s else "")


def require_first_step(step_request: StepRequest, folder: Path, seconds: float) -> None:
    """Raise NotMeasured if a command that has run for ``seconds`` without a step has had its time, or can't be timed.

    A command that is watched goes on.
    """
    if not step_request.steps:
        return
    problem = next((document["problem"] for document in documents(folder) if "problem" in document), None)
    if problem is not None:
        raise NotMeasured(OtherMeans(from_json(problem)))
    if step_request.first_s and seconds >= step_request.first_s:
        reason = NoSteps() if any(folder.glob("*.torch")) else NoTorchYet()
        raise NotMeasured(SlowStart(reason, step_request.first_s))


class Watch:
    """Says when a command that this process has started has been watched for long enough."""

    def __init__(self, step_request: StepRequest, folder: Path) -> None:
        self._limit_s, self._folder = step_request.limit_s, folder
        self._begun_s = self._next_s = time.perf_counter()
        self._complete_s: float | None = None
        self._before: process_tree.Look | None = None
        self._after: process_tree.Look | None = None
        self.is_over = False

    def look(self) -> bool:
        """Return whether the command is to be ended now."""
        now = time.perf_counter()
        if now < self._next_s:  # the program may print many lines in between
            return False
        self._next_s = now + POLL_S
        # two looks at all processes, and else only at names of files
        if self._before is None and any(self._folder.glob("*.begin")):
            self._before = process_tree.look(os.getpid())
        if self._after is None and any(self._folder.glob("*.end")):
            self._after = process_tree.look(os.getpid())
        complete = [document for document in documents(self._folder) if document["complete"]]
        if complete and self._complete_s is None:
            self._complete_s = now
        has_waited = self._complete_s is not None and now - self._complete_s >= GRACE_S
        has_first = any(document["rank"] == 0 for document in complete)
        self.is_over = has_first or has_waited or now - self._begun_s >= self._limit_s
        return self.is_over

    def helpers(self, pid: int) -> dict[str, object] | None:
        """Return what the command's processes but ``pid`` used over about the watched time; None if unknown."""
        if self._before is None or self._after is None:
            return None
        used = process_tree.increase(self._before, self._after, without=(pid, os.getpid()))
        return {"seconds": used.seconds, "processes": used.processes, **used.usage._asdict()}


def documents(folder: Path) -> list[left.StepsDocument]:
    """Return what the hook left: those that are complete first, and the lowest rank's."""
    unsorted = left.read(folder, "*.steps", left.is_steps).documents
    return sorted(unsorted, key=lambda document: (not document["complete"], document["rank"], document["pid"]))


def chosen(
    step_request: StepRequest,
    folder: Path,
    main: Mapping[str, object],
    watch: Watch | None,
    seconds: float,
    lost: Message | None = None,
) -> left.StepsDocument:
    """Return the document of the process whose evidence is the ``main`` one, or else the first of the others.

    The command took ``seconds``, and ``lost`` says why a process of it has no hook, if one has none. Raises NotMeasured
    where no process took as many steps as it takes.
    """
    all_steps = documents(folder)
    if not all_steps:
        nothing = _nothing(folder, watch, seconds, lost)
        raise NotMeasured(OtherMeans(nothing) if step_request.steps else nothing)
    of_main = (steps for steps in all_steps if steps["pid"] == main.get("pid") and steps["complete"])
    steps = next(of_main, all_steps[0])
    if "problem" in steps:
        problem = from_json(steps["problem"])
        raise NotMeasured(OtherMeans(problem) if step_request.steps else problem)
    count = len(steps["step_s"])
    if step_request.least_s:
        if count < LEAST_BY_PACE:
            raise NotMeasured(FewStepsBeforeEnd(step_request.warmup + count, step_request.warmup + LEAST_BY_PACE))
        return steps
    if step_request.steps and count < step_request.steps:
        raise NotMeasured(FewerStepsThanAsked(step_request.warmup + step_request.steps, step_request.warmup))
    if not step_request.steps and count < LEAST:
        raise NotMeasured(TooShort(seconds, count))
    return steps


def observed(steps: left.StepsDocument, watch: Watch) -> dict[str, object]:
    """Return a document without the steps, and what the command's other processes used meanwhile (``helpers``)."""
    others = {name: value for name, value in steps.items() if name not in ("warmup_step_s", "step_s")}
    return {**others, "helpers": watch.helpers(steps["pid"])}


def _nothing(folder: Path, watch: Watch | None, seconds: float, lost: Message | None) -> Message:
    """Return why no process has left steps."""
    if lost is not None and not any(folder.glob("*.stepped")):
        return StepsHidden(lost)
    if not any(any(folder.glob(name)) for name in ("*.torch", "*.json")):
        return NoTorch()
    if watch is None or not watch.is_over:
        return NoStepsBeforeEnd()
    return FewStepsWatched(seconds, LEAST) if any(folder.glob("*.stepped")) else NoSteps(seconds)
