"""Blocks of the baseline against itself, cut into short runs, each judged by the rules of a real run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from envkit.bench.study import MARGIN
from envkit.common import codec
from envkit.stats.interval import Speedup, log_ratios
from envkit.stats.sequential import at_end, design, may_stop
from envkit.stats.verdict import Verdict

# Of a rate that does not depend on where the first run begins.
STARTS = 5


@dataclass(frozen=True)
class Session:
    """One run: where and when it was measured, and the times of its blocks that are complete."""

    began: float  # seconds since 1970
    commit: str
    cpu: str
    usable_cpus: int
    kernel: str
    names: list[str]  # of the arms; the baseline is the first
    steps: int  # timed ones of a sample
    blocks: list[list[float]]  # seconds of a step, the mean of a sample, for each arm
    disturbed: list[list[int]]  # of each block, the numbers of the arms that were disturbed from outside

    @property
    def arms(self) -> int:
        return len(self.names)

    @property
    def host(self) -> str:
        return f"{self.cpu}, {self.usable_cpus} CPUs"

    def pairs(self) -> list[Session]:
        """Return its arms in pairs that share no sample, each as a session of two arms. A last arm may remain."""
        return [
            replace(
                self,
                names=self.names[arm : arm + 2],
                blocks=[block[arm : arm + 2] for block in self.blocks],
                disturbed=[[hit - arm for hit in block if arm <= hit < arm + 2] for block in self.disturbed],
            )
            for arm in range(0, self.arms - 1, 2)
        ]

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, object]) -> Session:
        """Parse a line. Raise KeyError or ValueError if it is invalid."""
        session = codec.parse(document, Session)
        if not session.blocks or len(session.disturbed) != len(session.blocks):
            raise ValueError("its blocks and their disturbances differ in number")
        if any(len(block) != session.arms or min(block, default=0) <= 0 for block in session.blocks):
            raise ValueError("a block lacks the time of an arm")
        return session


@dataclass(frozen=True)
class Counts:
    """How short runs of one length ended. ``half_widths`` are of all comparisons of runs that are decided."""

    runs: int
    undecided: int  # runs of so few blocks that a comparison has no interval at its share of the error rate
    claimed: int  # runs with a comparison of which a difference is claimed
    covered: int  # runs of which all intervals hold 1
    equivalent: int  # runs with a comparison of which a difference larger than the margin is excluded
    half_widths: tuple[float, ...]


def count(sessions: Sequence[Session], blocks: int) -> Counts:
    """Cut the blocks of each machine into consecutive runs of so many, and count how they end.

    A run that can't be decided counts as that alone. Remaining blocks wait for more.
    """
    runs = [run for joined in _joined(sessions) for run in cut(joined, blocks)]
    judged = [(run, judge(run)) for run in runs]
    ends = [speedups for run, speedups in judged if len(speedups) == len(run[0]) - 1]
    verdicts = [{speedup.verdict for speedup in speedups} for speedups in ends]
    return Counts(
        runs=len(runs),
        undecided=len(runs) - len(ends),
        claimed=sum(bool(found & {Verdict.FASTER, Verdict.SLOWER}) for found in verdicts),
        covered=sum(all(speedup.low <= 1 <= speedup.high for speedup in speedups) for speedups in ends),
        equivalent=sum(Verdict.EQUIVALENT in found for found in verdicts),
        half_widths=tuple(speedup.half_width for speedups in ends for speedup in speedups),
    )


def rate_of_any_start(sessions: Sequence[Session], blocks: int) -> float | None:
    """Return the rate of runs that claim a difference, over STARTS first blocks; None if no run is decided.

    Where the first run begins is arbitrary. These runs overlap, so the rate has no interval.
    """
    decided = claimed = 0
    for start in range(0, blocks, math.ceil(blocks / STARTS)):
        for run in (run for joined in _joined(sessions) for run in cut(joined[start:], blocks)):
            speedups = judge(run)
            if len(speedups) == len(run[0]) - 1:
                decided += 1
                claimed += any(speedup.verdict in (Verdict.FASTER, Verdict.SLOWER) for speedup in speedups)
    return claimed / decided if decided else None


def judge(blocks: Sequence[Sequence[float]]) -> list[Speedup]:
    """Return the interval of each arm beside the first, after as many blocks as a real run would have measured.

    A real run that keeps all arms (``envkit.bench.decide.precise_enough``) stops at a look where each comparison may.
    An arm without an interval is left out: the blocks are too few.
    """
    baseline, *copies = zip(*blocks, strict=True)
    fixed = design(len(blocks), len(copies))
    ratios = [log_ratios(baseline, copy) for copy in copies]
    early = (look for look in fixed.looks[:-1] if all(may_stop(fixed, of[:look], MARGIN, None) for of in ratios))
    stop = next(early, None)
    speedups = (at_end(fixed, of_copy[:stop], MARGIN, stop is not None) for of_copy in ratios)
    return [speedup for speedup in speedups if speedup is not None]


def _joined(sessions: Sequence[Session]) -> list[list[list[float]]]:
    """Return the blocks of each machine with one number of arms, in the order in which they were measured.

    A machine is a CPU model, a number of CPUs and a kernel. The arms of a block are equal whatever session it is of, so
    its ratios are symmetric about 1, and blocks are independent. The intervals ask for no more (Wilcoxon 1945): noise
    may differ between blocks, and so between sessions.
    """
    joined: dict[tuple[object, ...], list[list[float]]] = {}
    for session in sorted(sessions, key=lambda each: each.began):
        machine = (session.cpu, session.usable_cpus, session.kernel, session.arms)
        joined.setdefault(machine, []).extend(session.blocks)
    return list(joined.values())


def cut(blocks: Sequence[list[float]], length: int) -> Iterator[Sequence[list[float]]]:
    """Cut blocks into consecutive runs of ``length``. Remaining blocks are not used."""
    for begin in range(0, len(blocks) - length + 1, length):
        yield blocks[begin : begin + length]
