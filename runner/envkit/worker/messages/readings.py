"""Messages on the step times that a metric reads from a command's lines. All are about the metric of step times."""

from __future__ import annotations

from envkit.messages import Message


class OneMatch(Message):
    """A metric without a number matches one line, and the time between lines is meant."""

    template = (
        "found no step: the metric '{metric}' matches only one of the {lines} lines that the command printed, "
        "the last being '{last}'; match the line that comes with each step"
    )

    metric: str
    lines: int
    last: str


class FewReadings(Message):
    """There are fewer readings than are needed, which includes those that are ``left_out``."""

    template = (
        "found {found:count reading} of the metric '{metric}'[, besides {alike}], and it takes {needed}"
        "[: {left_out} to leave out, and {counted} to count]; train for longer"
        "[, or lower --warmup-lines from {left_out}]"
    )

    found: int
    metric: str
    needed: int
    counted: int
    alike: Message | None = None
    left_out: int | None = None


class StepsUnmatched(Message):
    """Too many lines are like those that the metric matches."""

    template = (
        "read only a part of the steps: the metric '{metric}' has {found} readings, and there are {alike}; "
        "if these are steps, let the command print their times; if not, match more of the others"
    )

    metric: str
    found: int
    alike: Message


class OutputHeldBack(Message):
    """Most lines came at one moment, so the time between them tells nothing."""

    template = (
        "can't time the steps: most lines that the metric '{metric}' matches arrived at one moment, because the "
        "command holds its output back; let it flush each line (stdbuf -oL), or print a time and match that"
    )

    metric: str


class TeeHoldsBack(Message):
    """torchrun passes lines on a few times a second, with ``mark`` before each."""

    template = (
        "can't time the steps: most lines that the metric '{metric}' matches arrived at one moment; torchrun --tee, "
        "which writes '{mark}', passes lines on ten times a second; leave --tee out, or print a time and match that"
    )

    metric: str
    mark: str


class OtherLengths(Message):
    """Too many lines have another unit and quite another time: they are about something else than one step."""

    template = (
        "can't time the steps: {lines} of {of} lines have another unit ({units:and}) than the metric '{metric}', and "
        "quite another length; match more of the line that is meant, or let it print a time for each step and match "
        "that"
    )

    lines: int
    of: int
    units: tuple[str, ...]
    metric: str


class OtherUnits(Message):
    """Too many lines have a step's words and a unit that the metric does not read."""

    template = (
        "read only a part of the steps: {lines} of {of} lines have {units:and} where the metric '{metric}' reads "
        "another unit, the first being '{line}'; which lines these are depends on their speed; match both units and "
        "read each number's own: --metric '{fix}' --unit auto"
    )

    lines: int
    of: int
    units: tuple[str, ...]
    metric: str
    line: str
    fix: str


class WrongUnit(Message):
    """All numbers have another unit behind them than they are to be read in."""

    template = (
        "found {units:and} behind the numbers of the metric '{metric}', which were to be read as {unit}; "
        "give --unit {fix}"
    )

    units: tuple[str, ...]
    metric: str
    unit: str
    fix: str


class SeveralItems(Message):
    """Rates count different items."""

    template = "found numbers per {items:and} with the metric '{metric}'; match one of them"

    items: tuple[str, ...]
    metric: str


class ElapsedTime(Message):
    """The numbers are the time since the start."""

    template = (
        "read the time since the start as a step's time: the {readings} readings of the metric "
        "'{metric}' change as the clock does; match the time of a single step"
    )

    readings: int
    metric: str


class RemainingTime(Message):
    """The numbers are the time that is left."""

    template = (
        "read the time that is left as a step's time: the {readings} readings of the metric "
        "'{metric}' change as the clock does; match the time of a single step"
    )

    readings: int
    metric: str


class ImpossibleTimes(Message):
    """Readings sum to more than the time in which they came. Times are rounded to three digits."""

    template = (
        "read impossible step times: {readings:count reading} of the metric '{metric}' would take {total_s:,g} s "
        "(unit {unit}), but the command printed them within {elapsed_s:,g} s; {fix}"
    )

    readings: int
    metric: str
    total_s: float
    unit: str
    elapsed_s: float
    fix: Message


class RatesReadAsTimes(Message):
    """Numbers fall where the time between their lines grows, so they are rates."""

    template = (
        "read rates as step times: the {readings} readings of the metric '{metric}' fall where the time between the "
        "lines grows; give --unit per-second"
    )

    readings: int
    metric: str


class TimesReadAsRates(Message):
    """Numbers grow with the time between their lines, so they are times."""

    template = (
        "read step times as rates: the {readings} readings of the metric '{metric}' grow with the time between the "
        "lines; give --unit {unit}"
    )

    readings: int
    metric: str
    unit: str


class NamesARate(Message):
    """The metric itself has the words of a rate."""

    template = "the metric names a rate: give --unit per-second"


class FallsAsRates(Message):
    """Numbers behave as rates do."""

    template = "they fall where the time between the lines grows, as rates do: give --unit per-second"


class FitsUnits(Message):
    """Other units explain the time between the lines. ``unit`` is the first of them."""

    template = "read as {units:or} they fit the time between the lines: give --unit {unit}"

    units: tuple[str, ...]
    unit: str


class PerhapsRates(Message):
    """Numbers that were read as times may be rates, or times in smaller units."""

    template = (
        "give --unit per-second if they are rates, --unit ms or us if they are in these, or match the time of a "
        "single step"
    )


class PerhapsTimes(Message):
    """Numbers that were read as rates may be times."""

    template = "give --unit s, ms or us if they are times, or match the time of a single step"


class PerhapsSeveralRanks(Message):
    """Several ranks may print each step, or the numbers may be averages."""

    template = "{fix}; of several ranks match one's lines; raise --warmup-lines for averages with a slow start in them"

    fix: Message
