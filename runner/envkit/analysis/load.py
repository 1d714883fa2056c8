"""The load beside which a result holds: most blocks were disturbed, and the others alone don't say the same.

A result under load says more about the load than about a profile, so nothing is recommended from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

from envkit.analysis.messages import CPUS_HOT, MACHINE_SWAPPED, BesideOtherPrograms, While, WhileStolen
from envkit.analysis.noise import commonest, disturbed_blocks
from envkit.bench.events import OtherPrograms, Sample
from envkit.checks.interference import HOT, OTHERS, STOLEN, disturbances
from envkit.messages import Message
from envkit.stats.interval import speedup

# With more than this share of blocks disturbed from outside, a result holds beside the disturbance alone, unless the
# other blocks say the same.
MOST = 0.5
# How seldom chance alone calls the speedup of disturbed blocks another one, in all comparisons of a run together.
CHANCE = 0.01
# A verdict beside other programs that take as much says so in its first line.
LEAST_CPUS = 1.0


@dataclass(frozen=True)
class Load:
    """What disturbed most ``of`` so many blocks."""

    blocks: int  # disturbed ones
    of: int
    kind: str  # what disturbed most of them: one of ``interference.KINDS``
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


def load(samples: Sequence[Sample], blocks: int, others: OtherPrograms | None) -> Load | None:
    """Return what disturbed the ``samples`` of some arms, of a run of so many ``blocks``.

    None if these were undisturbed in half of the blocks or more. ``others`` ran beside the first blocks.
    """
    disturbed = disturbed_blocks(samples)
    if not disturbed or len(disturbed) <= MOST * blocks:
        return None
    hit = [sample for sample in samples if disturbances(sample.usage, sample.seconds)]
    kind = commonest(disturbed.values())
    used = [cpus for sample in hit if (cpus := _cpus(sample, kind)) is not None]
    usable = [float(sample.usage.worker_cpus) for sample in hit if sample.usage.worker_cpus]
    return Load(
        blocks=len(disturbed),
        of=blocks,
        kind=kind,
        cpus=round(median(used), 3) if used else None,
        usable_cpus=median(usable) if usable else None,
        programs=_programs(others) if kind == OTHERS else (),
    )


@dataclass(frozen=True)
class InDisturbed:
    """The speedup in so many disturbed ``blocks``, where it is another than in the others."""

    ratio: float
    blocks: int


def in_disturbed(quiet: Sequence[float], disturbed: Sequence[float], comparisons: int) -> InDisturbed | None:
    """Return the speedup in disturbed blocks, if it differs from that in the others; log ratios of blocks.

    Interference can change an effect: a profile that is slower alone may be faster beside a busy program. The speedups
    differ if their signed-rank intervals don't overlap. By chance that happens in at most CHANCE of runs, over all
    ``comparisons``, however much noisier disturbed blocks are. One comparison takes 9 blocks of each kind. A test of
    two samples (Mann and Whitney's) takes both for equally noisy.
    """
    rate = CHANCE / comparisons / 2
    alone, beside = (speedup(ratios, rate, margin=0.0) if ratios else None for ratios in (quiet, disturbed))
    if alone is None or beside is None or (alone.low <= beside.high and beside.low <= alone.high):
        return None
    return InDisturbed(beside.ratio, beside.blocks)


def neighbours(samples: Sequence[Sample], others: OtherPrograms | None) -> Load | None:
    """Return the other programs that disturbed the median sample and took LEAST_CPUS or more; else None."""
    used = [(disturbances(sample.usage, sample.seconds).get(OTHERS, 0.0), sample) for sample in samples]
    cpus = median(cpus for cpus, _ in used) if used else 0.0
    if cpus < LEAST_CPUS:
        return None
    hit = {sample.block for cpus, sample in used if cpus >= LEAST_CPUS}
    usable = [float(sample.usage.worker_cpus) for sample in samples if sample.usage.worker_cpus]
    blocks = len({sample.block for sample in samples})
    return Load(len(hit), blocks, OTHERS, round(cpus, 3), median(usable) if usable else None, _programs(others))


def _cpus(sample: Sample, kind: str) -> float | None:
    return disturbances(sample.usage, sample.seconds).get(kind) if kind in (OTHERS, STOLEN) else None


def _programs(others: OtherPrograms | None) -> tuple[str, ...]:
    return tuple(f"{one.name} ({one.pid})" for one in others.programs) if others else ()
