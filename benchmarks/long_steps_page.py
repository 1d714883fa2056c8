"""The page of long processes beside short samples: do both rank profiles alike?"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.common import codec
from envkit.stats.interval import ERROR_RATE

from benchmarks import growing, page
from benchmarks.recorded import DIGITS

# Of a long process so many equal parts are kept.
PARTS = 10


@dataclass(frozen=True)
class LongProcess:
    """One process. Times are the mean seconds of a step."""

    first_s: float  # of as many steps as a short sample times, at the same place
    parts_s: list[float]  # of PARTS equal parts of all timed steps

    @property
    def all_s(self) -> float:
        return statistics.fmean(self.parts_s)

    @property
    def second_half_s(self) -> float:
        return statistics.fmean(self.parts_s[PARTS // 2 :])


@dataclass(frozen=True)
class Block:
    """One block. Both lists have an entry for each arm."""

    short_s: list[list[float]]  # seconds of a step in each short sample; empty where there are only long ones
    long: list[LongProcess]


@dataclass(frozen=True)
class Session:
    """One call: where and when it measured, and its complete blocks."""

    began: float  # seconds since 1970
    commit: str
    cpu: str
    usable_cpus: int
    kernel: str
    training: str  # the workload, or the command
    names: list[str]  # of the arms; the baseline is the first
    warmup_steps: int
    short_steps: int
    long_steps: int
    blocks: list[Block]

    @property
    def host(self) -> str:
        return f"{self.cpu}, {self.usable_cpus} CPUs"

    @staticmethod
    def from_json(document: Mapping[str, object]) -> Session:
        """Parse a line. Raise KeyError or ValueError if it is invalid."""
        session = codec.parse(document, Session)
        if not session.blocks:
            raise ValueError("it has no blocks")
        for block in session.blocks:
            if len(block.long) != len(session.names) or len(block.short_s) not in (0, len(session.names)):
                raise ValueError("a block lacks an arm")
            times = [second for process in block.long for second in (process.first_s, *process.parts_s)]
            if min(times) <= 0 or any(len(process.parts_s) != PARTS for process in block.long):
                raise ValueError("a process lacks a time")
        return session


@dataclass(frozen=True)
class Ratio:
    """A ratio of geometric means, with its 95% interval by Student's t of the blocks' log ratios."""

    value: float
    low: float
    high: float

    @property
    def is_different(self) -> bool:
        """Return whether the interval leaves out 1."""
        return not self.low <= 1 <= self.high


# The mean seconds of a step in one arm of a block, by its number.
Window = Callable[[Block, int], float]


def process_of(seconds: Sequence[float], short_steps: int) -> LongProcess:
    """Return what is kept of a process with these step times. A remainder of fewer than PARTS steps is left out."""
    length = len(seconds) // PARTS
    parts_s = [rounded(seconds[part * length : (part + 1) * length]) for part in range(PARTS)]
    return LongProcess(rounded(seconds[:short_steps]), parts_s)


def rounded(seconds: Sequence[float]) -> float:
    """Return the mean with DIGITS significant digits."""
    return float(f"{statistics.fmean(seconds):.{DIGITS}g}")


def read(path: Path) -> list[Session]:
    """Return the sessions of a file, as ``growing.read`` does."""
    return growing.read(path, Session.from_json)


def ratio(logs: Sequence[float]) -> Ratio | None:
    """Return the ratio of which these are the logarithms by blocks; None for fewer than two."""
    from scipy.special import stdtrit

    if len(logs) < 2:
        return None
    middle = statistics.fmean(logs)
    reach = float(stdtrit(len(logs) - 1, 1 - ERROR_RATE / 2)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))


def short(block: Block, arm: int) -> float:
    """The short samples; where there are none, the first steps of the long process."""
    return statistics.geometric_mean(block.short_s[arm]) if block.short_s else block.long[arm].first_s


def first(block: Block, arm: int) -> float:
    """The first steps of the long process, as many as a short sample times."""
    return block.long[arm].first_s


def all_steps(block: Block, arm: int) -> float:
    """All timed steps of the long process."""
    return block.long[arm].all_s


def second_half(block: Block, arm: int) -> float:
    """The second half of the long process."""
    return block.long[arm].second_half_s


def log_ratios(blocks: Sequence[Block], window: Window, reference: int, arm: int) -> list[float]:
    """Return the logarithm of the reference's time over the arm's in a window, of each block."""
    return [math.log(window(block, reference) / window(block, arm)) for block in blocks]


@dataclass(frozen=True)
class Order:
    """How two windows rank the same arms. A window tells a pair apart if the interval leaves out 1."""

    tau: float  # Kendall's
    pairs: int
    told_by_short: int
    told_by_long: int
    agreeing: int  # of the pairs that both tell
    opposite: int  # of the pairs that both tell
    swapped: tuple[tuple[str, str], ...]  # of opposite order by the estimates, and told by one window or both


def order(names: Sequence[str], blocks: Sequence[Block]) -> Order | None:
    """Compare the order of arms by short samples with that by all steps of long processes. None for one block."""
    from scipy.stats import kendalltau

    if len(blocks) < 2:
        return None
    told_by_short = told_by_long = agreeing = opposite = 0
    swapped = []
    pairs = list(itertools.combinations(range(len(names)), 2))
    for one, other in pairs:
        by_short, by_long = (ratio(log_ratios(blocks, window, one, other)) for window in (short, all_steps))
        assert by_short is not None
        assert by_long is not None
        same = (by_short.value > 1) == (by_long.value > 1)
        told_by_short += by_short.is_different
        told_by_long += by_long.is_different
        if by_short.is_different and by_long.is_different:
            agreeing += same
            opposite += not same
        if not same and (by_short.is_different or by_long.is_different):
            swapped.append((names[one], names[other]))
    speeds = [
        [statistics.fmean(log_ratios(blocks, window, 0, arm)) for arm in range(len(names))]
        for window in (short, all_steps)
    ]
    tau = float(kendalltau(*speeds).statistic)
    return Order(tau, len(pairs), told_by_short, told_by_long, agreeing, opposite, tuple(swapped))


def parts(sessions: Sequence[Session]) -> list[str]:
    """Return the parts of the page, which says so if there are no sessions yet."""
    opening = growing.opening("Long trainings and short samples", QUESTION, sessions, "long-steps")
    if not sessions:
        return [opening]
    ordered = sorted(sessions, key=lambda session: session.began)
    alike: dict[tuple[str, int, tuple[str, ...]], list[Session]] = {}
    for session in ordered:
        alike.setdefault((session.training, session.long_steps, tuple(session.names)), []).append(session)
    return [
        opening,
        HOW,
        *itertools.chain(*(_group(group) for group in alike.values())),
        "## All that was measured",
        page.table(MEASURED, [_row(session) for session in ordered], 6),
    ]


def _group(sessions: Sequence[Session]) -> list[str]:
    """The parts about sessions of one training, of the same arms and lengths."""
    first_session = sessions[0]
    names, blocks = first_session.names, [block for session in sessions for block in session.blocks]
    ranks, plural = order(names, blocks), "s" if len(blocks) > 1 else ""
    header = (
        "profile", "short samples", f"first {first_session.short_steps} steps", f"all {first_session.long_steps:,}",
        "second half", "all over first",
    )  # fmt: skip
    rows = [_profile(names, blocks, arm) for arm in range(1, len(names))]
    return [
        f"## {first_session.training}: {first_session.long_steps:,} steps, {len(blocks)} block{plural}",
        page.table(header, rows, 1),
        _order_in_words(ranks) if ranks else "An interval takes two blocks.",
    ]


def _profile(names: Sequence[str], blocks: Sequence[Block], arm: int) -> list[str]:
    windows = [log_ratios(blocks, window, 0, arm) for window in (short, first, all_steps, second_half)]
    change = [late - early for late, early in zip(windows[2], windows[1], strict=True)]
    cells = [_cell(logs) for logs in (*windows, change)]
    if not all(block.short_s for block in blocks):
        cells[0] = "-"
    return [names[arm], *cells]


def _cell(logs: Sequence[float]) -> str:
    interval = ratio(logs)
    if interval is None:
        return f"{math.exp(logs[0]):.3f}"
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def _order_in_words(ranks: Order) -> str:
    swapped = "; ".join(f"{one} and {other}" for one, other in ranks.swapped)
    return ORDER.format(
        tau=ranks.tau, pairs=ranks.pairs, short=ranks.told_by_short, long=ranks.told_by_long,
        both=ranks.agreeing + ranks.opposite, agreeing=ranks.agreeing, opposite=ranks.opposite,
        swapped=len(ranks.swapped), names=f": {swapped}" if swapped else "",
    )  # fmt: skip


def _row(session: Session) -> list[str]:
    begun = time.strftime("%Y-%m-%d %H:%M", time.gmtime(session.began))
    samples = len(session.blocks[0].short_s[0]) if session.blocks[0].short_s else 0
    return [
        begun, session.commit, session.host, session.kernel, session.training, ", ".join(session.names[1:]),
        str(session.warmup_steps), str(session.short_steps), str(session.long_steps), str(samples),
        str(len(session.blocks)),
    ]  # fmt: skip


QUESTION = """A sample of `envkit bench` times a dozen steps of a fresh process. Does that rank profiles as a long
training does?"""
HOW = """## How

`make long-steps` measures for ten minutes. It adds a line to [long-steps.jsonl](long-steps.jsonl), which only grows.
This page is made from that file alone. A block has, for each profile and the baseline, one long process and some short
samples, all fresh processes, in random order. Short samples are those of `envkit bench`. A ratio is the baseline's time
over the profile's, the geometric mean of the blocks. Intervals have a confidence of 95% each (Student's t of the
blocks' log ratios), as there are too few blocks for ranks. "All over first" divides two ratios of the same processes:
by all steps, and by the first of them. So it shows whether a speedup changes while a training goes on. A training that
was measured with `envkit bench` alone has no short samples. The first steps of its processes stand for them."""
ORDER = """Short samples tell {short} of {pairs} pairs of arms apart, and long processes {long}. Both tell {both}:
{agreeing} in the same order and {opposite} in opposite orders. In {swapped} pairs that either tells, the estimates have
opposite orders{names}. Kendall's tau between the two orders is {tau:.2f}."""
MEASURED = (
    "begun (UTC)", "commit", "host", "kernel", "training", "profiles", "warm-up steps", "short steps", "long steps",
    "short samples", "blocks",
)  # fmt: skip
