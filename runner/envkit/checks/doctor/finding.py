"""What checks are given, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from envkit.advice.symptoms import Symptoms
from envkit.profiles.environment import Environment
from envkit.profiles.expressions import MACHINE_NODES
from envkit.worker.measure.machine_load import Load


@dataclass(frozen=True)
class Finding:
    """Something that is wrong."""

    code: str
    # stop makes a measurement worthless, warn costs speed or certainty, note is worth knowing
    severity: Literal["stop", "warn", "note"]
    seen: str
    why: str
    fix: str  # a command or a line of a profile


@dataclass(frozen=True)
class Situation:
    """What is known; None where it was not looked at."""

    facts: Mapping[str, Any]  # of an inspection, as are fingerprint, libraries and accelerator
    fingerprint: Mapping[str, Any]
    environment: Environment | None = None
    evidence: Mapping[str, Any] | None = None  # a worker's, or a part of it that was seen from outside
    load: Load | None = None  # what the rest of the machine did meanwhile
    libraries: Mapping[str, Any] = field(default_factory=dict)
    accelerator: Mapping[str, Any] = field(default_factory=dict)  # what was seen of GPUs, where they were looked for
    symptoms: Symptoms | None = None  # of a training while it took its steps

    @property
    def numa_nodes(self) -> int:
        """Those of the machine, of which the facts of one of several ranks have a part."""
        return int(self.facts.get(MACHINE_NODES, self.facts["numa_nodes"]))

    def seen(self, probe: str, key: str) -> Any:
        """One item of the evidence, or None."""
        return ((self.evidence or {}).get(probe) or {}).get(key)

    def variable(self, name: str) -> str | None:
        """What the profile sets a variable to."""
        return self.environment.variables.get(name) if self.environment else None


Finder = Callable[[Situation], Finding | None]
