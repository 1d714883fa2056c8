"""The roll call of a job: what each node says of itself before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from envkit.cluster.slurm.messages import ClockApart, NotShared, ProjectMissing, PythonMissing
from envkit.cluster.slurm.settings import Settings
from envkit.common import files
from envkit.messages import Message

NAME = "roll-call"
# Clocks that agree to so many seconds do no harm: records of two nodes can be laid side by side.
TOLERANCE_S = 2.0


@dataclass
class RollCall:
    """Times are in seconds since 1970, by the clock of whoever says them."""

    host: str = ""  # called the roll
    before: float | None = None  # the host's own clock before the roll, and after it
    after: float | None = None  # None while the roll is being called
    times: dict[str, float] = field(default_factory=dict)  # by node, the clock that its answer had
    missing: dict[str, str] = field(default_factory=dict)  # by node: "folder", "python", "project" or "nothing"

    def clock(self, node: str) -> float:
        """How many seconds the node's clock is ahead of the host's, at least; below 0 if it is behind.

        0 where the answer's time is between those of the host: the clocks may then be equal.
        """
        time = self.times.get(node)
        if time is None or self.before is None or self.after is None:
            return 0.0
        return time - self.after if time > self.after else min(0.0, time - self.before)

    def clock_problem(self, node: str) -> ClockApart | None:
        """Return how far the node's clock is off, if that is more than is tolerated."""
        apart = self.clock(node)
        return None if abs(apart) <= TOLERANCE_S else ClockApart(self.host, apart)

    def problem(self, node: str, settings: Settings, folder: Path) -> Message | None:
        """Return what keeps the node from measuring."""
        missing = self.missing.get(node)
        if missing == "folder":
            return not_shared(folder)
        if missing == "python":
            return PythonMissing(settings.python)
        return ProjectMissing(settings.project) if missing == "project" else None


def not_shared(folder: Path) -> NotShared:
    """Return that a node does not see the submission's ``folder``."""
    return NotShared(str(folder))


def read(folder: Path, job: str) -> RollCall | None:
    """Return the roll call of a job, or None if ``folder`` has no file of it."""
    try:
        lines = files.read(folder / f"{NAME}-{job}").decode(errors="replace").splitlines()
    except OSError:
        return None
    roll_call = RollCall()
    for line in lines:
        match line.split():
            case ["before", host, time]:
                roll_call.host, roll_call.before = host, _seconds(time)
            case ["answer", node, time, missing] if (seconds := _seconds(time)) is not None:
                roll_call.times[node], roll_call.missing[node] = seconds, missing
            case ["after", _, time]:
                roll_call.after = _seconds(time)
    return roll_call


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
