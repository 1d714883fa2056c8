"""What checks are given, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from runner.profiles.environment import Environment
from runner.profiles.expressions import MACHINE_NODES
from runner.worker.measure.machine_load import Load


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    ``severity``: ``stop`` makes a measurement worthless, ``warn`` costs speed or certainty, ``note`` is worth knowing.
    ``fix`` is a command or a line of a profile.
    """

    code: str
    severity: Literal["stop", "warn", "note"]
    seen: str
    why: str
    fix: str


@dataclass(frozen=True)
class Situation:
    """What is known; None where it was not looked at.

    ``facts``, ``fingerprint`` and ``libraries`` are those of an inspection; ``evidence`` is a worker's, or a part of
    it that was seen from outside; ``load`` is what the rest of the machine did meanwhile; ``accelerator`` what was seen
    of GPUs, where they were looked for.
    """

    facts: Mapping[str, Any]
    fingerprint: Mapping[str, Any]
    environment: Environment | None = None
    evidence: Mapping[str, Any] | None = None
    load: Load | None = None
    libraries: Mapping[str, Any] = field(default_factory=dict)
    accelerator: Mapping[str, Any] = field(default_factory=dict)

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
