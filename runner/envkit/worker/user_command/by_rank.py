"""Tell the lines of ranks apart by the mark that a launcher writes before each line.

Rank 0 has ``[default0]:`` under ``torchrun --tee`` and ``accelerate launch --tee``, and ``0: `` under ``srun --label``.
It has ``[1,0]<stdout>:`` under Open MPI's ``--tag-output``, and ``[0] `` under MPICH and Intel MPI. Ray writes
``(RayTrainWorker pid=12) ``. A metric reads the lines of one rank, without the mark, unless it names the mark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from envkit.worker.messages.readings import OutputHeldBack, TeeHoldsBack
from envkit.worker.user_command import clock
from envkit.worker.user_command.losses import Losses, parse_losses
from envkit.worker.user_command.metric import Metric, NotMeasured, cleaned, parse
from envkit.worker.user_command.readings import Readings

# Marks with a word that only launchers write, and others, which a program may write before each batch or epoch.
CERTAIN = (
    re.compile(r"(?P<kind>\[default)(?P<rank>\d+)\]:"),
    re.compile(r"(?P<kind>\[rank)(?P<rank>\d+)\]: ?"),
    re.compile(r"(?P<kind>\[(?:[^\[\]\s]*@)?\d+,)(?P<rank>\d+)\]<std(?:out|err|diag)>: ?"),
    re.compile(r"(?P<kind>\([\w.]+ pid=)(?P<rank>\d+)(?:, ip=[\w.:]+)?\) "),
)
POSSIBLE = (
    re.compile(r"(?P<kind>\[[A-Za-z_][\w.-]*?)(?P<rank>\d+)\]:"),  # torchrun --role
    re.compile(r"(?P<kind>\[)(?P<rank>\d+)\] "),
    re.compile(r"(?P<kind> *)(?P<rank>\d+): "),
)
TEE = "[default"
# With more of its lines at one moment, steps are too short for a launcher that looks for lines every 0.1 s.
MOST_BY_TEE = 0.1
# A program with so many marks numbers something else.
MOST_RANKS = 1024


@dataclass
class Source:
    """The lines of one rank, or all lines. The ``problem`` is that of a line that could not be read."""

    readings: Readings | None
    losses: Losses | None
    problem: NotMeasured | None = None
    mark: str = ""
    first: int = 0
    last: int = 0
    lines: int = 0

    def take(self, line: str, at_s: float, number: int) -> None:
        self.first, self.last = self.first or number, number
        self.lines += 1
        if self.problem is not None:
            return
        try:
            if self.readings is not None:
                self.readings.take(line, at_s)
            if self.losses is not None:
                self.losses.take(line)
        except NotMeasured as problem:
            self.problem = problem

    @property
    def matches(self) -> int:
        """How many lines hold what is looked for."""
        if self.readings is not None and self.readings.matches:
            return self.readings.matches
        return (len(self.losses.values) if self.losses is not None else 0) + (self.problem is not None)

    def split(self, warmup: int) -> tuple[list[float], list[float]]:
        """Return what ``Readings.split`` does. Raise NotMeasured, which names the launcher if it held lines back."""
        assert self.readings is not None, "a metric was given"
        try:
            before, counted = self.readings.split(warmup)
        except NotMeasured as problem:
            if not isinstance(problem.message, OutputHeldBack) or not self.mark.startswith(TEE):
                raise
            before, counted = [], [0.0]
        at_once = sum(second <= 0 for second in counted)
        if self.readings.metric.is_clock and self.mark.startswith(TEE) and at_once > MOST_BY_TEE * len(counted):
            raise NotMeasured(TeeHoldsBack(self.readings.metric.text, self.mark))
        return before, counted


class Sources:
    """Read all lines of a command together, and the lines of each rank separately."""

    def __init__(self, metric: Metric | None, left_out: int = 0, losses: Metric | None = None) -> None:
        self._given = metric, left_out, losses
        self.is_read = metric is not None or losses is not None
        self._all = self._source()
        self._ranks: dict[tuple[str, int], Source] = {}
        self._lines = 0

    @classmethod
    def of_metrics(cls, metric: str | None, unit: str, left_out: int, losses: str | None) -> Sources:
        """Return what reads lines by a metric of step times in ``unit`` and one of ``losses``, or by neither."""
        times = parse(metric, unit) if metric is not None else None
        return cls(times, left_out, parse_losses(losses) if losses is not None else None)

    def _source(self, mark: str = "") -> Source:
        metric, left_out, losses = self._given
        return Source(
            Readings(metric, left_out) if metric is not None else None,
            Losses(losses) if losses is not None else None,
            mark=mark,
        )

    def take(self, line: str, at_s: float) -> None:
        """Look at one line. Raises NotMeasured for what is no number in a line without a mark."""
        if not self.is_read:
            return
        line = cleaned(line)
        self._lines += 1
        self._all.take(line, at_s, self._lines)
        mark = next((match for expression in (*CERTAIN, *POSSIBLE) if (match := expression.match(line))), None)
        if mark is None and self._all.problem is not None and not self._ranks:
            raise self._all.problem
        if mark is None:
            return
        key = mark["kind"].strip(), int(mark["rank"])
        if key not in self._ranks and len(self._ranks) < MOST_RANKS:
            self._ranks[key] = self._source(mark[0].strip())
        if (rank := self._ranks.get(key)) is not None:
            rank.take(line[mark.end() :], at_s, self._lines)

    def chosen(self, processes: int) -> tuple[Source, int]:
        """Return the source to read, and of how many ranks it is one; 0 ranks if it is all lines.

        The command has left evidence of so many ``processes``. Raises NotMeasured for what is no number.
        """
        ranks = self._of_launcher(processes)
        source = ranks[0] if ranks else self._all
        if source.problem is not None:
            raise source.problem
        return source, len(ranks)

    def _of_launcher(self, processes: int) -> Sequence[Source]:
        """Return the ranks that print steps, the lowest first; none if no launcher wrote the marks."""
        kinds: dict[str, dict[int, Source]] = {}
        for (kind, number), source in self._ranks.items():
            if source.matches:
                kinds.setdefault(kind, {})[number] = source
        for by_number in kinds.values():
            ranks = [source for _, source in sorted(by_number.items())]
            is_certain = any(expression.match(ranks[0].mark + " ") for expression in CERTAIN)
            if not is_certain and not (len(ranks) > 1 and max(by_number) < processes):
                continue
            if all(_side_by_side(ranks[0], other) for other in ranks[1:]):
                return ranks
        return ()


def _side_by_side(first_rank: Source, other: Source) -> bool:
    """Return whether two printed during the same time, as ranks do, and not one after the other, as epochs do."""
    return first_rank.first < other.last and other.first < first_rank.last


def remarks(source: Source, ranks: int, begun_s: float, processes: int) -> dict[str, object]:
    """Return what a sample says of the readings (``envkit.bench.events``) of a command that began at ``begun_s``.

    ``source`` is one of so many ``ranks``, and the command has left evidence of so many ``processes``. Raises
    NotMeasured for numbers that can't be step times.
    """
    readings = source.readings
    if readings is None:
        return {}
    lines = readings.lines_per_step(processes)
    return {
        **({"unmatched_lines": readings.unmatched_lines} if readings.unmatched_lines else {}),
        **clock.check(readings, begun_s, 1 if ranks else processes),
        **({"rank_lines": [source.mark, max(ranks, lines)]} if ranks or lines > 1 else {}),
    }
