"""A user's training command, which is measured instead of a workload: plain data, and its worker's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The first worker of a user's command times so many steps of its optimizer at least, and goes on for so many seconds.
PACE_STEPS, PACE_S = 12, 5.0
# The first step must come within so many seconds, or the command is taken for one whose steps can't be timed.
FIRST_STEP_S = 60.0
# Trackers of experiments are off in workers, which would start a run of theirs for each sample: as their manuals say.
# No mode of Neptune's is off in both of its clients, and offline writes to the working copy alone.
TRACKERS_OFF = {
    "WANDB_MODE": "disabled", "NEPTUNE_MODE": "offline", "SWANLAB_MODE": "disabled", "CLEARML_OFFLINE_MODE": "1",
}  # fmt: skip


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of a command line that are the kit's, and ``--`` with the user's command, if it has one."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at]], [*words[at:]]


@dataclass(frozen=True)
class UserCommand:
    """A user's training command, which is measured instead of a workload.

    ``metric`` says which lines of its output end a step, or hold a step's time or rate in ``unit`` (see
    ``envkit.worker.user_command.metric``). Without one the steps of its optimizer are timed: ``optimizer_steps`` of
    them, or for 0 as many as the machine's pace allows. With neither the whole command is one step. ``loss_metric``
    says which lines hold a loss; without one losses are not compared.
    """

    argv: tuple[str, ...]
    folder: str  # where it runs
    metric: str | None = None
    unit: str = "s"
    warmup_lines: int = 0  # the first readings or steps, which don't count; by pace 0 is found out
    loss_metric: str | None = None
    optimizer_steps: int | None = None
    in_place: bool = False  # start it in its folder; otherwise each start gets a fresh copy of the folder
    links: tuple[str, ...] = ()  # what copies of the folder link to: the command only reads it

    @property
    def is_one_step(self) -> bool:
        """Whether the whole command is one."""
        return self.metric is None and self.optimizer_steps is None

    @property
    def is_paced(self) -> bool:
        """Tell whether steps of its optimizer are timed, as many as the machine's pace allows."""
        return self.optimizer_steps == 0

    def worker_arguments(self, warmup: int, steps: int, least_s: float = 0.0) -> tuple[str, ...]:
        """Return the worker's arguments.

        For a paced command, the worker times ``steps`` steps after ``warmup``, and more until ``least_s`` (seconds)
        have passed.
        """
        # one that begins with a dash would be taken for another option
        metric = (f"--metric={self.metric}", "--unit", self.unit) if self.metric is not None else ()
        losses = (f"--loss-metric={self.loss_metric}",) if self.loss_metric is not None else ()
        optimizer: tuple[str, ...] = ()
        if self.optimizer_steps is not None:
            optimizer = ("--optimizer-steps", str(steps if self.is_paced else self.optimizer_steps))
        if self.is_paced:
            optimizer = (*optimizer, *(("--least-seconds", f"{least_s:g}") if least_s else ()))
            optimizer = (*optimizer, "--first-step-within", f"{FIRST_STEP_S:g}")
        left_out = ("--warmup-lines", str(warmup if self.is_paced else self.warmup_lines))
        how = (*metric, *left_out, *losses, *optimizer, *self.place_arguments)
        return ("command", "--folder", self.folder, *how, "--", *self.argv)

    @property
    def place_arguments(self) -> tuple[str, ...]:
        """The worker's arguments that say where to start it."""
        return ("--in-place",) if self.in_place else tuple(f"--link={one}" for one in self.links)

    @staticmethod
    def from_json(document: Mapping[str, Any] | None) -> UserCommand | None:
        """None for none."""
        if not document:
            return None
        lists = {name: tuple(document.get(name, ())) for name in ("argv", "links")}
        return UserCommand(**{**document, **lists})
