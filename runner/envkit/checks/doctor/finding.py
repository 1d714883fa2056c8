"""The arguments and the results of the checks of a machine, a profile and a process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from envkit.advice.symptoms import Symptoms
from envkit.checks.evidence import Evidence, part
from envkit.checks.finding_messages import reason, remedy
from envkit.common import codec
from envkit.messages import Message, Severity, from_json
from envkit.profiles.environment import Environment
from envkit.profiles.expressions import MACHINE_NODES
from envkit.profiles.inspection import Facts, Fingerprint, LibraryFile
from envkit.worker.gpus import Gpus
from envkit.worker.measure.machine_load import Load

# stop makes a measurement worthless, warn costs speed or certainty, note is worth knowing
Level = Literal["stop", "warn", "note"]
LEVELS: Mapping[Severity, Level] = {Severity.ERROR: "stop", Severity.WARNING: "warn", Severity.NOTE: "note"}


class _Document(Struct):
    code: str
    severity: Level
    seen: dict[str, object]
    why: dict[str, object]
    fix: dict[str, object]


@dataclass(frozen=True)
class Finding:
    """Something that is wrong."""

    code: str
    severity: Level
    seen: Message
    why: Message
    fix: Message  # an instruction, a command or a line of a profile

    def to_json(self) -> dict[str, object]:
        """Return plain data, of which ``of_json`` makes the finding again."""
        messages = {"seen": self.seen.to_json(), "why": self.why.to_json(), "fix": self.fix.to_json()}
        return {"code": self.code, "severity": self.severity, **messages}

    @staticmethod
    def of_json(document: Mapping[str, object]) -> Finding:
        """Return the finding that ``to_json`` made ``document`` of.

        Raise KeyError, TypeError or ValueError for another document.
        """
        parsed = codec.parse(document, _Document)
        seen, why, fix = map(from_json, (parsed.seen, parsed.why, parsed.fix))
        return Finding(parsed.code, parsed.severity, seen, why, fix)


def found(code: str, seen: Message, fix: Message | None = None, severity: Level | None = None) -> Finding:
    """Return a finding, with the reason and the fix that ``code`` has, unless it has a ``fix`` of its own."""
    return Finding(code, severity or LEVELS[seen.severity], seen, reason(code), fix or remedy(code))


@dataclass(frozen=True)
class Situation:
    """Facts that are known; None where nothing looked."""

    facts: Facts  # of an inspection, as are fingerprint, libraries and accelerator
    fingerprint: Fingerprint
    environment: Environment | None = None
    evidence: Evidence | None = None  # a worker's, or a part of it that was seen from outside
    load: Load | None = None  # what the rest of the machine did meanwhile
    libraries: Mapping[str, LibraryFile] = field(default_factory=dict)
    accelerator: Gpus = field(default_factory=Gpus)  # of GPUs, where a probe looked for them
    symptoms: Symptoms | None = None  # of a training while it took its steps
    cores_measured: bool = False  # then ``facts`` count the measured cores, and not the kernel's
    kernel_cores: int | None = None  # the kernel's count, if cores were measured and it is another one

    @property
    def numa_nodes(self) -> int:
        """Return how many NUMA nodes the machine has; the facts of one of several ranks have a part of them."""
        return self.facts.get(MACHINE_NODES, self.facts["numa_nodes"])

    def seen(self, probe: str, key: str) -> object:
        """Return an item of the evidence, or None."""
        return part(self.evidence or {}, probe).get(key)

    def number(self, probe: str, key: str) -> int | None:
        """Return a whole number of the evidence, or None. Raise TypeError for another value."""
        number = self.seen(probe, key)
        if number is None or isinstance(number, int):
            return number
        raise TypeError(f"the evidence's {probe}.{key} must be a whole number: {number!r}")

    def variable(self, name: str) -> str | None:
        """Return what the profile sets a variable to, or None."""
        return self.environment.variables.get(name) if self.environment else None


Finder = Callable[[Situation], Finding | None]
