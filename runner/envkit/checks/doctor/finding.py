"""Declare what checks are given, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from envkit.advice.symptoms import Symptoms
from envkit.checks.finding_messages import reason, remedy
from envkit.messages import Message, Severity, from_json
from envkit.profiles.environment import Environment
from envkit.profiles.expressions import MACHINE_NODES
from envkit.worker.measure.machine_load import Load

# stop makes a measurement worthless, warn costs speed or certainty, note is worth knowing
Level = Literal["stop", "warn", "note"]
LEVELS: Mapping[Severity, Level] = {Severity.ERROR: "stop", Severity.WARNING: "warn", Severity.NOTE: "note"}


@dataclass(frozen=True)
class Finding:
    """Something that is wrong."""

    code: str
    severity: Level
    seen: Message
    why: Message
    fix: Message  # an instruction, a command or a line of a profile

    def to_json(self) -> dict[str, Any]:
        """Return plain data, of which ``of_json`` makes the finding again."""
        texts = {name: one.to_json() for name, one in vars(self).items() if isinstance(one, Message)}
        return {"code": self.code, "severity": self.severity, **texts}

    @staticmethod
    def of_json(document: Mapping[str, Any]) -> Finding:
        """Return the finding that ``to_json`` made ``document`` of. KeyError or TypeError for another document."""
        fields: dict[str, Any] = {
            name: from_json(one) if isinstance(one, dict) else one for name, one in document.items()
        }
        return Finding(**fields)


def found(code: str, seen: Message, fix: Message | None = None, severity: Level | None = None) -> Finding:
    """Return a finding, with the reason and the fix that ``code`` has, unless it has a ``fix`` of its own."""
    return Finding(code, severity or LEVELS[seen.severity], seen, reason(code), fix or remedy(code))


@dataclass(frozen=True)
class Situation:
    """Facts that are known; None where nothing looked."""

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
        """Return how many NUMA nodes the machine has; the facts of one of several ranks have a part of them."""
        return int(self.facts.get(MACHINE_NODES, self.facts["numa_nodes"]))

    def seen(self, probe: str, key: str) -> Any:
        """Return one item of the evidence, or None."""
        return ((self.evidence or {}).get(probe) or {}).get(key)

    def variable(self, name: str) -> str | None:
        """Return what the profile sets a variable to, or None."""
        return self.environment.variables.get(name) if self.environment else None


Finder = Callable[[Situation], Finding | None]
