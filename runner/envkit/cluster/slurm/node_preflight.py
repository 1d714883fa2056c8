"""The roll call of a job: what each node says of itself before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from envkit.cluster.slurm.settings import Settings

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

    def clock_problem(self, node: str) -> str | None:
        apart = self.clock(node)
        if abs(apart) <= TOLERANCE_S:
            return None
        side = "ahead of" if apart > 0 else "behind"
        return (
            f"its clock is {abs(apart):,.0f} s {side} that of {self.host}, so their records don't fit together; "
            "set the clocks (chronyc makestep, or the cluster's administrators), or measure all the same with --force"
        )

    def problem(self, node: str, settings: Settings, folder: Path) -> str | None:
        """What keeps the node from measuring, and how to fix it."""
        missing = self.missing.get(node)
        if missing == "folder":
            return not_shared(folder)
        problem = {
            "python": f"{settings.python}: is not there, or can't be run; put the project with its .venv",
            "project": f"{settings.project}: the project's code is not there; put it",
        }.get(missing or "")
        return f"{problem} on a file system that all nodes share, and submit from there" if problem else None


def not_shared(folder: Path) -> str:
    return (
        f"{folder}: the results folder is not the same one there; give one that all nodes share with --output, "
        "for example in your home"
    )


def read(folder: Path, job: str) -> RollCall | None:
    """None where the job's roll was not called, as far as can be seen in ``folder``."""
    try:
        lines = (folder / f"{NAME}-{job}").read_text(errors="replace").splitlines()
    except OSError:
        return None
    found = RollCall()
    for line in lines:
        match line.split():
            case ["before", host, time]:
                found.host, found.before = host, _seconds(time)
            case ["answer", node, time, missing] if (seconds := _seconds(time)) is not None:
                found.times[node], found.missing[node] = seconds, missing
            case ["after", _, time]:
                found.after = _seconds(time)
    return found


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
