"""The load beside which a result holds: nearly all blocks were disturbed, and too few others are left.

A result under load says more about the load than about a profile, so nothing is recommended from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from envkit.analysis.messages import CPUS_HOT, MACHINE_SWAPPED, BesideOtherPrograms, While, WhileStolen
from envkit.analysis.noise import commonest
from envkit.bench.arms import Arm
from envkit.bench.record import Event
from envkit.checks.interference import HOT, KINDS, OTHERS, STOLEN, disturbances, interference_in, others_cpus
from envkit.messages import Message

# With as large a share of blocks disturbed from outside, a result says more about the disturbance than about a profile.
NEARLY_ALL = 0.8
# A verdict beside other programs that take as much says so in its first line.
LEAST_CPUS = 1.0
# How the kinds of interference are called here.
CODES = KINDS


@dataclass(frozen=True)
class Load:
    """What disturbed nearly all ``of`` so many blocks."""

    blocks: int  # disturbed ones
    of: int
    kind: str  # what disturbed most of them: one of CODES
    cpus: float | None  # the CPUs that others used, or that were stolen: the median of the disturbed samples
    usable_cpus: float | None  # that the workers had
    programs: tuple[str, ...] = ()  # those that used most, as ``python3 (1234)``, where that is known

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def message(self) -> Message:
        """Return the clause on what a result was measured beside."""
        if self.kind in (OTHERS, STOLEN):
            used = BesideOtherPrograms if self.kind == OTHERS else WhileStolen
            return used(self.cpus or 0.0, self.usable_cpus or 0.0)
        return While(CPUS_HOT if self.kind == HOT else MACHINE_SWAPPED)


def load(events: Sequence[Event], arms: Sequence[Arm], hit: Mapping[int, Iterable[str]]) -> Load | None:
    """Return what disturbed the samples of ``arms`` in the blocks in ``hit``; None where these are not nearly all."""
    blocks = {event["block"] for event in events if event["event"] == "sample"}
    if not hit or len(hit) < NEARLY_ALL * len(blocks):
        return None
    names = {arm.name for arm in arms}
    disturbed = [
        event for event in events
        if event["event"] == "sample" and event["arm"] in names and event["block"] in hit and interference_in(event)
    ]  # fmt: skip
    kind = commonest(hit)
    used = [one for event in disturbed if (one := _cpus(event, kind)) is not None]
    usable = [float(event["usage"]["worker_cpus"]) for event in disturbed if event["usage"].get("worker_cpus")]
    return Load(
        blocks=len(hit),
        of=len(blocks),
        kind=kind,
        cpus=round(median(used), 3) if used else None,
        usable_cpus=median(usable) if usable else None,
        programs=_programs(events) if kind == OTHERS else (),
    )


def neighbours(events: Sequence[Event], arms: Sequence[Arm]) -> Load | None:
    """Return the other programs that disturbed the median sample of ``arms`` and took LEAST_CPUS or more; else None."""
    names = {arm.name for arm in arms}
    own = [event for event in events if event["event"] == "sample" and event["arm"] in names]
    used = [(disturbances(event).get(OTHERS, 0.0), event) for event in own]
    cpus = median(cpus for cpus, _ in used) if used else 0.0
    if cpus < LEAST_CPUS:
        return None
    hit = {event["block"] for taken, event in used if taken >= LEAST_CPUS}
    usable = [float(event["usage"]["worker_cpus"]) for event in own if event["usage"].get("worker_cpus")]
    blocks = len({event["block"] for event in own})
    return Load(len(hit), blocks, OTHERS, round(cpus, 3), median(usable) if usable else None, _programs(events))


def _cpus(event: Event, kind: str) -> float | None:
    usage, seconds = event["usage"], event["seconds"]
    if kind == OTHERS:
        return others_cpus(usage, seconds)
    stolen = usage.get("worker_cpus_steal_s")
    return stolen / seconds if kind == STOLEN and stolen is not None else None


def _programs(events: Collection[Event]) -> tuple[str, ...]:
    """Return the programs that the runner saw at work beside its first blocks."""
    seen = next((event for event in events if event["event"] == "load"), None)
    return tuple(f"{one['name']} ({one['pid']})" for one in (seen or {}).get("programs", ()))
