"""The times of steps that a metric (``metric``) reads from the lines of one run."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from sys import intern

from envkit.worker.messages.captions import STEP_TIME
from envkit.worker.messages.metrics import NoMatch, NothingPrinted, NoUnit
from envkit.worker.messages.readings import (
    FewReadings,
    OneMatch,
    OtherLengths,
    OtherUnits,
    OutputHeldBack,
    SeveralItems,
    StepsUnmatched,
    WrongUnit,
)
from envkit.worker.user_command import units
from envkit.worker.user_command.metric import (
    NO_TIME,
    Found,
    Metric,
    NotMeasured,
    cleaned,
    number,
    pattern,
    shown,
    unmatched,
    unreadable,
)
from envkit.worker.user_command.units import AUTO, RATES, SECONDS, Unit

# Lines with another unit and another text may be an outer bar's if they are few. More than this share are not, and if
# more have no number, as nan, the others don't speak for all steps.
MOST_OF_OTHERS = 0.2
# They are of the same bar if their median is within this factor of the others'.
SAME_BAR = 1.5
# A line is about several steps if its time is so many times the usual one, and so many readings came within it.
OUTER_TIMES, OUTER_READINGS = 3.0, 2
# A total in a step's words may be in another unit. More of the lines than this are steps that the metric does not read.
MOST_UNREAD = 0.05
# Of those that are timed as they arrive: with more of them at one moment the command's output was held back.
MOST_AT_ONCE = 0.5
# What is left of a line's text without numbers: its words, and what follows a slash, as the length of a bar does.
_WORDS = re.compile(r"\0|/\s*\d+|[^\W\d_]{2,}")
# All numbers but those behind a slash. So many texts of unmatched lines are kept: looking at each takes longer.
_NUMBER = re.compile(r"(?<![/\d])\d+")
MOST_TEXTS = 1000
# A line up to its first number says which step it is of. So many steps are counted, and this share of them must agree.
_STEP = re.compile(r"\D*\d+")
MOST_STEPS, SAME_COUNT = 10_000, 0.9
_NO_WORDS = frozenset((*units.TIMES, "nan", "inf", "infinity", "none", "null"))


@dataclass(frozen=True)
class Reading:
    """One line with a time. ``raw`` is the number as it was printed, and ``digit`` its last digit's share of it."""

    seconds: float
    raw: float
    digit: float
    at_s: float
    shape: str
    unit: Unit | None
    is_variant: bool


class Readings:
    """Collect what a metric finds in the lines of one run. ``seconds`` has the steps' times so far.

    Each of the first ``left_out`` readings may be 0, as bars print it before they know a rate.
    """

    def __init__(self, metric: Metric, left_out: int = 0) -> None:
        self.metric = metric
        self.left_out = left_out
        self.seconds: list[float] = []
        self.steps: list[Reading] = []  # after ``split``: those that are steps
        self.every: list[Reading] = []
        self.lines = 0
        self.last_line = ""
        self._arrived: float | None = None
        self._steps: Counter[str] = Counter()  # of a clock's lines: how often each step was matched
        self.unmatched_lines: tuple[int, str] | None = None  # lines with no time where others have one, and the first
        self._others: dict[str, tuple[int, str]] = {}  # unmatched lines without their numbers: how many, and the first

    @property
    def matches(self) -> int:
        """Return how many lines the metric matched."""
        return len(self.seconds) + (self._arrived is not None) if self.metric.is_clock else len(self.every)

    def take(self, line: str, at_s: float) -> None:
        """Look at one line, which came ``at_s`` (seconds, of any clock). Raises NotMeasured for what is no number."""
        line = cleaned(line)
        if not line:
            return
        self.lines += 1
        self.last_line = line.lstrip()
        if self.metric.is_clock:
            if isinstance(match := self.metric.find(line), str):
                self._count_step(line[line.index(match) :])
                if self._arrived is not None:
                    self.seconds.append(at_s - self._arrived)
                self._arrived = at_s
            return
        reading = self.metric.look(line)
        if reading is None:
            self._keep_unmatched(line)
            return
        raw = number(reading.value)
        may_be_0 = len(self.every) < self.left_out
        if reading.is_variant and raw == 0 and not may_be_0:
            self._add_unmatched(1, self.last_line)
            return
        second = self._converted(reading, raw, may_be_0)
        shape = _shape(line, reading.begin, _end_of(line, reading)) if self.metric.expression is not None else ""
        self.every.append(
            Reading(
                second, raw or 0.0, _digit(reading.value, raw or 0.0), at_s, shape, reading.unit, reading.is_variant
            )
        )
        if not reading.is_variant:
            self.seconds.append(second)

    def _count_step(self, text: str) -> None:
        if (step := _STEP.match(text)) and (step[0] in self._steps or len(self._steps) < MOST_STEPS):
            self._steps[step[0]] += 1

    def lines_per_step(self, most: int) -> int:
        """Return how many lines nearly every step has, from 2 to ``most``, where each of several ranks prints it; or 1.

        It concerns metrics that time lines as they arrive.
        """
        if not self._steps:
            return 1
        usual, steps = Counter(self._steps.values()).most_common(1)[0]
        return usual if 2 <= usual <= most and len(self._steps) > 1 and steps >= SAME_COUNT * len(self._steps) else 1

    def _converted(self, reading: Found, raw: float | None, may_be_0: bool) -> float:
        """The seconds of a step. Raises NotMeasured."""
        if raw == 0 and may_be_0:
            return 0.0
        if raw is None or not math.isfinite(raw) or raw <= 0:
            raise unreadable(STEP_TIME, reading.value, self.last_line, 0)
        if reading.unit is not None:
            return reading.unit.convert(raw)
        unit = "s" if reading.is_variant else self.metric.unit  # of 1:05
        if unit == AUTO:
            raise NotMeasured(NoUnit(str(reading.value), shown(self.last_line)))
        return SECONDS[unit] / raw if unit in RATES else raw * SECONDS[unit]

    def _add_unmatched(self, lines: int, first: str) -> None:
        count, line = self.unmatched_lines or (0, first)
        self.unmatched_lines = count + lines, line

    def _keep_unmatched(self, line: str) -> None:
        """Keep an unmatched line in mind if it may be a step's: one without a time, or with one in another unit."""
        if self.metric.expression is None:
            return
        with_time = NO_TIME.sub(lambda match: "" if match[0] == "-" else "1", line)
        if with_time != line and self.metric.expression.search(with_time) is not None:
            self._add_unmatched(1, self.last_line)
            return
        text = _NUMBER.sub("0", line)
        if (entry := self._others.get(text)) is not None or len(self._others) < MOST_TEXTS:
            count, first = entry or (0, line)
            self._others[text] = count + 1, first

    def _times_elsewhere(self) -> dict[tuple[str, str], tuple[int, str]]:
        """Return how many unmatched lines have a time, and the first, by the line's shape and the time's unit."""
        elsewhere: dict[tuple[str, str], tuple[int, str]] = {}
        for count, line in self._others.values():
            for match in units.TIMED.finditer(line):
                key = _shape(line, *match.span()), match["unit"] or "1:05"
                before, first = elsewhere.get(key, (0, line.lstrip()))
                elsewhere[key] = before + count, first
        return elsewhere

    def _require_all_units(self) -> None:
        """Raise NotMeasured if a line has a step's text and its time in a unit that the metric does not read."""
        read = Counter(reading.shape for reading in self.every)
        units_read = {reading.unit.text if reading.unit is not None else "" for reading in self.every}
        missed = {
            key: count for key, count in self._times_elsewhere().items() if key[0] in read and key[1] not in units_read
        }
        if not missed:
            return
        lines = sum(count for count, _ in missed.values())
        _, line = next(iter(missed.values()))
        if lines <= MOST_UNREAD * (lines + len(self.every)):
            self._add_unmatched(lines, line)
            return
        others = tuple(sorted({unit for _, unit in missed}))
        counts = (lines, lines + len(self.every))
        raise NotMeasured(OtherUnits(*counts, others, self.metric.text, shown(line), self._mend(units_read, missed)))

    def _mend(self, units_read: set[str], missed: Collection[tuple[str, str]]) -> str:
        """Return a metric that reads lines with all of the units."""
        span = units.group(self.metric.text)
        before = self.metric.text[: span[0]] if span is not None else ""
        behind = "|".join(sorted(map(re.escape, {*units_read, *(unit for _, unit in missed if unit != "1:05")} - {""})))
        has_minutes = any(unit == "1:05" for _, unit in missed)
        digits, optional = ("[0-9.:]+", "?") if has_minutes else ("[0-9.]+", "")
        return rf"{before}({digits}) ?(?:{behind}){optional}"

    def _require_its_unit(self) -> None:
        """Raise NotMeasured if all lines name another unit than was given, or if they count different items."""
        printed = [reading.unit for reading in self.every if reading.unit is not None and not reading.is_variant]
        if self.metric.unit != AUTO:
            if printed and not any(unit.means(self.metric.unit) for unit in printed):
                texts = tuple(sorted({unit.text for unit in printed}))
                choices = {unit.choice for unit in printed}
                fix = choices.pop() if len(choices) == 1 else AUTO
                raise NotMeasured(WrongUnit(texts, self.metric.text, self.metric.unit, fix))
            return
        items = {reading.unit.item for reading in self.every if reading.unit is not None and reading.unit.item}
        if len({re.sub("s$", "", item.lower()) for item in items}) > 1:
            raise NotMeasured(SeveralItems(tuple(sorted(items)), self.metric.text))

    def _chosen(self) -> list[Reading]:
        """Return the readings that are steps. Raises NotMeasured if that can't be told."""
        others = [reading for reading in self.every if reading.is_variant]
        same_unit = [reading for reading in self.every if not reading.is_variant]
        shapes = Counter(reading.shape for reading in same_unit)
        if not others:
            return same_unit
        is_bare = self.metric.written is not None and self.metric.written.item is None
        if not same_unit:
            is_clear = not is_bare or (self.metric.has_words and len({reading.shape for reading in others}) == 1)
            return others if is_clear else []
        outer = self._about_several(same_unit, [reading for reading in others if reading.shape in shapes])
        for reading in outer:
            self._add_unmatched(1, f"{reading.raw:g}{reading.unit.text if reading.unit else ''}")
        elsewhere = [reading for reading in others if reading.shape not in shapes]
        if elsewhere and not self._of_one_bar(
            same_unit, elsewhere, is_bare and len(shapes) <= 1 + MOST_OF_OTHERS * len(same_unit)
        ):
            outer = [*outer, *elsewhere]
        dropped = set(map(id, outer))
        return [reading for reading in self.every if id(reading) not in dropped]

    def _about_several(self, same_unit: Sequence[Reading], alike: Sequence[Reading]) -> list[Reading]:
        """Return those of a few long times that contain several other readings, as the total at a training's end.

        Raises NotMeasured if they are many. Lines that came at one moment don't tell.
        """
        usual = statistics.median(reading.seconds for reading in same_unit)
        outer = []
        for reading in alike:
            since, until = (reading.at_s - share * reading.seconds for share in (0.9, 0.1))
            within = sum(since < other.at_s < until for other in self.every)
            if reading.seconds > OUTER_TIMES * usual and within >= OUTER_READINGS:
                outer.append(reading)
        if len(outer) > MOST_OF_OTHERS * len(self.every):
            raise self._quite_another(outer)
        return outer

    def _of_one_bar(self, same_unit: Sequence[Reading], elsewhere: Sequence[Reading], is_told_by_text: bool) -> bool:
        """Tell whether lines with another unit and another text are steps. Raises NotMeasured if that is not known."""
        if is_told_by_text:
            return False
        apart = statistics.median(reading.seconds for reading in elsewhere) / statistics.median(
            reading.seconds for reading in same_unit
        )
        if 1 / SAME_BAR <= apart <= SAME_BAR:
            return True
        if len(elsewhere) <= MOST_OF_OTHERS * len(self.every):
            return False
        raise self._quite_another(elsewhere)

    def _quite_another(self, lines: Sequence[Reading]) -> NotMeasured:
        texts = tuple(sorted({reading.unit.text for reading in lines if reading.unit is not None}))
        return NotMeasured(OtherLengths(len(lines), len(self.every), texts, self.metric.text))

    def split(self, warmup: int) -> tuple[list[float], list[float]]:
        """Return the first ``warmup`` readings, and those that count.

        Raise NotMeasured if there are too few, or if the lines came at one moment.
        """
        metric = self.metric.text
        if not self.lines:
            raise NotMeasured(NothingPrinted("step", pattern(STEP_TIME), metric))
        seconds = self.seconds
        if not self.metric.is_clock:
            self._require_its_unit()
            self._require_all_units()
            self.steps = self._chosen()
            seconds = [reading.seconds for reading in self.steps]
        self._require_enough(len(seconds), warmup)
        counted = seconds[warmup:]
        if sum(second <= 0 for second in counted) > MOST_AT_ONCE * len(counted):
            raise NotMeasured(OutputHeldBack(metric))
        return seconds[:warmup], counted

    def _require_enough(self, count: int, warmup: int) -> None:
        """Raise NotMeasured if ``count`` readings are too few, or too few of the lines that may be steps'."""
        metric, alike = self.metric.text, unmatched(self.unmatched_lines)
        if not count:
            last = shown(self.last_line)
            if self._arrived is not None:
                raise NotMeasured(OneMatch(metric, self.lines, last))
            raise NotMeasured(NoMatch("step", pattern(STEP_TIME), metric, self.lines, last, alike))
        least = 2 if self.metric.is_clock else 1  # a number may be that of the whole training
        if count < warmup + least:
            raise NotMeasured(FewReadings(count, metric, warmup + least, least, alike, warmup or None))
        if alike is not None and alike.lines > MOST_OF_OTHERS * (alike.lines + count):
            raise NotMeasured(StepsUnmatched(metric, count, alike))


def _digit(text: object, raw: float) -> float:
    """Return the share of a number that its last digit stands for; 0 if that is unknown, as of a JSON number."""
    if not isinstance(text, str) or not raw or "e" in text.lower():
        return 0.0
    return float(10.0 ** -len(text.strip().partition(".")[2]) / raw)


def _end_of(line: str, reading: Found) -> int:
    """Return where a number's unit ends in a line."""
    if reading.is_variant or reading.unit is None or not line[reading.end :].lstrip().startswith(reading.unit.text):
        return reading.end
    return line.index(reading.unit.text, reading.end) + len(reading.unit.text)


def _shape(line: str, begin: int, end: int) -> str:
    """Return the words of a line, with a mark instead of the time from ``begin`` to ``end``."""
    words = _WORDS.findall(f"{line[:begin]}\0{line[end:]}")
    return intern(" ".join(word for word in words if word not in _NO_WORDS))
