"""Set what is the same for all trainings of users, and find a user's command among the words of a command line."""

from __future__ import annotations

from collections.abc import Sequence

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
