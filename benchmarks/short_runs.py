"""Blocks of the baseline against itself, cut into short runs, each judged by the rules of a real run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from envkit.bench.arms import Arm
from envkit.bench.decide import precise_enough
from envkit.bench.events import Sample
from envkit.bench.run import Run
from envkit.bench.study import StoppingRule, Study, WorkloadSpec
from envkit.common import codec
from envkit.stats.interval import Speedup
from envkit.stats.sequential import at_end, design
from envkit.stats.verdict import Verdict


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


def judge(blocks: Sequence[Sequence[float]]) -> list[Speedup]:
    """Return the interval of each arm beside the first, after as many blocks as a real run would have measured.

    An arm without an interval is left out: the blocks are too few.
    """
    study = _study(len(blocks[0]))
    fixed = design(len(blocks), study.sharing)
    run, stopped = Run(study, ()), False
    for number, block in enumerate(blocks, start=1):
        run = Run(study, (*run.events, *_samples(number - 1, study.arms, block)))
        stopped = number in fixed.looks[:-1] and precise_enough(run, fixed)
        if stopped:
            break
    margin = study.stopping.margin
    speedups = (at_end(fixed, run.block_ratios(arm), margin, stopped) for arm in study.compared)
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


def _study(arms: int) -> Study:
    names = ("baseline", *(f"copy-{number}" for number in range(1, arms)))
    training = {"cnn": WorkloadSpec(0, 1)}
    study = Study("same", StoppingRule(budget_s=240.0), workloads=training, data="synthetic", seed=1)
    return study.with_arms(tuple(Arm(name, name, "local") for name in names))


def _samples(block: int, arms: Sequence[Arm], seconds: Sequence[float]) -> Iterator[Sample]:
    """The events of a block: each sample has one step, which takes the mean of the real ones."""
    nothing: dict[str, object] = {"warmup_step_s": [], "losses": [], "images_per_step": None, "peak_memory_bytes": 0}
    unchecked: dict[str, object] = {"evidence": {}, "digests": {}, "checks": []}
    usage = {"user_s": 0.0, "system_s": 0.0, "minor_faults": 0}
    for arm, time_s in zip(arms, seconds, strict=True):
        measured = {"block": block, "arm": arm.name, "seconds": time_s, "step_s": [time_s], "usage": usage}
        yield codec.parse({"event": "sample", **measured, **nothing, **unchecked}, Sample)
