"""What tests of formats give them."""

from __future__ import annotations

import subprocess

from envkit.profiles.environment import Environment
from envkit.profiles.formats.resolved import Resolved
from hypothesis import strategies

# Any text that a variable can have; what formats take for themselves comes up more often.
TEXTS = strategies.text(strategies.characters(exclude_characters="\0", exclude_categories=["Cs"]))
SPECIAL = strategies.sampled_from(["'", '"', "$HOME", "$(id)", "${", "\\", "%x", "{{", "}}", " #", "\n", "`"])
HOSTILE = strategies.lists(strategies.one_of(TEXTS, SPECIAL), max_size=8).map("".join)
VALUES = strategies.lists(HOSTILE, max_size=12).map(lambda values: {f"V{nth}": one for nth, one in enumerate(values)})


def resolved(variables=None, prefix=(), numerics="same", profile="mine", gpus=0, ranks=1, **fields):
    environment = Environment(profile, "A test", variables or {}, {}, tuple(prefix), {}, numerics, ranks, gpus)
    defaults = {
        "host": "here (a CPU)", "place": "local python", "image": None, "usable_cpus": 4, "physical_cores": 2,
        "smt": True,
    }  # fmt: skip
    return Resolved(environment, **{**defaults, **fields})


def environment_of(*command: object) -> dict[str, str]:
    """The variables that ``env -0``, which ``command`` ends with or runs, has printed."""
    result = subprocess.run([*map(str, command)], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result
    entries = result.stdout.decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)
