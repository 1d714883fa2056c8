"""The load beside which a result holds: nearly all blocks were disturbed, and too few others are left.

A result under load says more about the load than about a profile, so nothing is recommended from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from envkit.analysis.messages import CPUS_HOT, MACHINE_SWAPPED, BesideOtherPrograms, While, WhileStolen
from envkit.analysis.noise import commonest
from envkit.bench.arms import Arm
from envkit.bench.events import OtherPrograms, Sample
from envkit.bench.run import Run
from envkit.checks.interference import HOT, KINDS, OTHERS, STOLEN, disturbances, others_cpus
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

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @property
    def message(self) -> Message:
        """Return the clause on what a result was measured beside."""
        if self.kind in (OTHERS, STOLEN):
            used = BesideOtherPrograms if self.kind == OTHERS else WhileStolen
            return used(self.cpus or 0.0, self.usable_cpus or 0.0)
        return While(CPUS_HOT if self.kind == HOT else MACHINE_SWAPPED)


def load(run: Run, arms: Sequence[Arm], hit: Mapping[int, Iterable[str]]) -> Load | None:
    """Return what disturbed the samples of ``arms`` in the blocks in ``hit``; None where these are not nearly all."""
    blocks = {sample.block for sample in run.samples()}
    if not hit or len(hit) < NEARLY_ALL * len(blocks):
        return None
    disturbed = [one for one in run.samples(*arms) if one.block in hit and disturbances(one.usage, one.seconds)]
    kind = commonest(hit.values())
    used = [cpus for one in disturbed if (cpus := _cpus(one, kind)) is not None]
    usable = [float(one.usage.worker_cpus) for one in disturbed if one.usage.worker_cpus]
    return Load(
        blocks=len(hit),
        of=len(blocks),
        kind=kind,
        cpus=round(median(used), 3) if used else None,
        usable_cpus=median(usable) if usable else None,
        programs=_programs(run) if kind == OTHERS else (),
    )


def neighbours(run: Run, arms: Sequence[Arm]) -> Load | None:
    """Return the other programs that disturbed the median sample of ``arms`` and took LEAST_CPUS or more; else None."""
    own = run.samples(*arms)
    used = [(disturbances(one.usage, one.seconds).get(OTHERS, 0.0), one) for one in own]
    cpus = median(cpus for cpus, _ in used) if used else 0.0
    if cpus < LEAST_CPUS:
        return None
    hit = {one.block for taken, one in used if taken >= LEAST_CPUS}
    usable = [float(one.usage.worker_cpus) for one in own if one.usage.worker_cpus]
    blocks = len({one.block for one in own})
    return Load(len(hit), blocks, OTHERS, round(cpus, 3), median(usable) if usable else None, _programs(run))


def _cpus(sample: Sample, kind: str) -> float | None:
    usage, seconds = sample.usage, sample.seconds
    if kind == OTHERS:
        return others_cpus(usage, seconds)
    stolen = usage.worker_cpus_steal_s
    return stolen / seconds if kind == STOLEN and stolen is not None else None


def _programs(run: Run) -> tuple[str, ...]:
    """Return the programs that the runner saw at work beside its first blocks."""
    seen = run.first(OtherPrograms)
    return tuple(f"{one.name} ({one.pid})" for one in seen.programs) if seen else ()
