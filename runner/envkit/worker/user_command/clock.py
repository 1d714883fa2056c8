"""Compare step times that a command printed with the time that passed while it printed them.

A number in the wrong unit leaves a ratio of two arms as it is. A rate that is read as a time inverts it, and the time
since the start dilutes it. The arrival times of the lines show all three:

- A process cannot spend more time in steps than has passed since it started. ``n`` averages since the start, as some
  programs print them, sum to at most 1 + 1/2 + ... + 1/n times the elapsed time, because none of their totals exceeds
  it. Each process may print its own lines. More than that is refused. Where lines come one by one, the second half of
  them must not sum to more than twice the time between them either, as a start of any length is out of these.
- Less is usual: a line for every tenth step, a validation between them, a time without the loading of data. A rate may
  count images, so that its scale is unknown. These get a remark in the report at most.
- Where steps vary, times grow with the interval before their line, and rates fall with it. The rank correlation
  (Spearman) of the two tells which, without any scale. To refuse a unit by it, it must be 5 standard errors (one is
  ``1 / sqrt(n - 1)``) from 0, and a neighbouring interval must not explain the numbers as well.
- A clock's differences are the intervals themselves.

Lines that come in lumps, from several ranks or from a buffer, tell nothing by their intervals, but the sum still holds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from envkit.messages import Message
from envkit.worker.messages.readings import (
    ElapsedTime,
    FallsAsRates,
    FitsUnits,
    ImpossibleTimes,
    NamesARate,
    PerhapsRates,
    PerhapsSeveralRanks,
    PerhapsTimes,
    RatesReadAsTimes,
    RemainingTime,
    TimesReadAsRates,
)
from envkit.worker.user_command.metric import Metric, NotMeasured
from envkit.worker.user_command.readings import Reading, Readings
from envkit.worker.user_command.units import PER_MINUTE, PER_SECOND, RATES, SECONDS

# Intervals that are shorter than this share of their mean are those of lines that came together; so many tell nothing.
TOGETHER, MOST_TOGETHER = 0.1, 0.3
FEWEST = 12
# A correlation that names the unit of numbers that are known to be wrong, and one that proves them to be wrong.
LIKELY, SURE, STANDARD_ERRORS = 0.5, 0.6, 5.0
# A clock does not turn back in so many of the lines, and in each quarter it gains what passed, within this share.
ONE_WAY, GAIN = 0.9, 0.4
# A unit explains the intervals if the times in it are this share of them.
LEAST_EXPLAINED, MOST_EXPLAINED = 0.7, 1.1
# Of less than this share of the run a report says that it may be another unit.
LITTLE, FEWEST_FOR_LITTLE = 0.05, 5
# A report says so if the last digits stand for more than this share of the times.
COARSE = 0.1
# The second half of the readings is looked at by itself if it has so many, and may be so many times the time between.
FEWEST_LATE, MOST_LATE = 5, 2.0
# Ranks that print each step, and averages with a slow start in them, may be so many times too long. More is a unit.
MOST_BY_RANKS = 100.0
STEPS = frozenset({"it", "its", "iter", "iters", "iteration", "iterations", "step", "steps", "batch", "batches"})


def check(readings: Readings, begun_s: float, processes: int) -> dict[str, object]:
    """Return what a report should remark about the readings of a command that began at ``begun_s``.

    ``processes`` is how many of the command's processes may have printed lines. ``readings_cover`` has the sum of the
    readings and the time in which they came, in seconds; ``readings_rounding`` the share that their last digits stand
    for (``envkit.bench.events``). Raises NotMeasured for numbers that can't be step times in the metric's unit.
    """
    timed = [reading for reading in readings.steps if reading.raw > 0]
    if readings.metric.is_clock or not timed:
        return {}
    cover = _cover(readings, timed, begun_s, processes)
    rounding = sum(reading.digit * reading.seconds for reading in timed) / sum(reading.seconds for reading in timed)
    return {
        **({"readings_cover": cover} if cover is not None else {}),
        **({"readings_rounding": round(rounding, 4)} if rounding > COARSE else {}),
    }


def _cover(
    readings: Readings, timed: Sequence[Reading], begun_s: float, processes: int
) -> dict[str, float | str] | None:
    """Return the sums of readings and of time if they are far apart, and the unit that ``fits`` better."""
    metric = readings.metric
    count, total = len(timed), sum(reading.seconds for reading in timed)
    elapsed = timed[-1].at_s - begun_s
    at_most = elapsed * max(1, processes) * sum(1 / number for number in range(1, count + 1))
    is_declared = all(reading.unit is not None and reading.unit.item is not None for reading in timed)
    if not is_declared:
        if clock := _clock(timed):
            raise NotMeasured(clock(count, metric.text))
        if total > at_most:
            raise _impossible(metric, timed, count, total, elapsed)
        _require_room(metric, timed, readings.left_out, processes)
        _require_direction(metric, timed)
    sums_apart = {"sum_s": round(total, 6), "elapsed_s": round(elapsed, 6)}
    if total > at_most:
        return {**sums_apart, "fits": ""}
    counts_steps = is_declared and all(reading.unit is not None and reading.unit.item in STEPS for reading in timed)
    if count < FEWEST_FOR_LITTLE or (metric.unit in RATES and not counts_steps) or total >= LITTLE * elapsed:
        return None
    between = _span(timed)
    if sum(reading.seconds for reading in timed[1:]) >= LITTLE * between > 0:
        return None
    times = [] if is_declared else [unit for unit in _explaining(timed, metric.unit) if unit not in RATES]
    return {**sums_apart, "fits": times[0] if times else ""}


def _impossible(metric: Metric, readings: Sequence[Reading], count: int, total: float, elapsed: float) -> NotMeasured:
    """Return the error for ``count`` times that sum to a ``total`` far above the ``elapsed`` time (both in seconds)."""
    rounded = (float(f"{seconds:.3g}") for seconds in (total, elapsed))
    fix = _mend(metric, readings, total / max(elapsed, 1e-9))
    return NotMeasured(ImpossibleTimes(count, metric.text, next(rounded), metric.unit, next(rounded), fix))


def _intervals(readings: Sequence[Reading]) -> list[float]:
    return [after.at_s - before.at_s for before, after in zip(readings, readings[1:])]


def _span(readings: Sequence[Reading]) -> float:
    """Return the seconds between the first and the last line, or 0 if lines came together."""
    intervals = _intervals(readings)
    span = sum(intervals)
    if span <= 0 or len(intervals) < 2:
        return 0.0
    together = sum(interval < TOGETHER * span / len(intervals) for interval in intervals)
    return span if together <= MOST_TOGETHER * len(intervals) else 0.0


def _direction(readings: Sequence[Reading]) -> float:
    """Return the rank correlation of the numbers with the intervals before them, or 0 if nothing can be told."""
    if len(readings) <= FEWEST or not _span(readings):
        return 0.0
    raw, intervals = [reading.raw for reading in readings[1:]], _intervals(readings)
    here = _correlation(raw, intervals)
    beside = (_correlation(raw[1:], intervals[:-1]), _correlation(raw[:-1], intervals[1:]))
    # a number that is printed a line late looks reversed where slow and quick steps take turns
    return here if all(-other * math.copysign(1, here) < 0.8 * abs(here) for other in beside) else 0.0


def _correlation(first_values: Sequence[float], right: Sequence[float]) -> float:
    """Return Spearman's rank correlation; 0 where one side is constant."""
    first_ranks, other = _ranks(first_values), _ranks(right)
    mean = (len(first_ranks) - 1) / 2
    both = sum((a - mean) * (b - mean) for a, b in zip(first_ranks, other))
    spread = math.sqrt(sum((a - mean) ** 2 for a in first_ranks) * sum((b - mean) ** 2 for b in other))
    return both / spread if spread else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value from 0, and the mean rank of equal ones."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    return [statistics.fmean(places[value]) for value in values]


def _require_direction(metric: Metric, readings: Sequence[Reading]) -> None:
    """Raise NotMeasured if numbers that are read as times behave as rates, or the reverse."""
    intervals = _intervals(readings)
    direction = _direction(readings)
    if abs(direction) < max(SURE, STANDARD_ERRORS / math.sqrt(max(len(intervals) - 1, 1))) or min(intervals) <= 0:
        return
    if (direction > 0) != (metric.unit in RATES):
        return
    logs = [(math.log(reading.raw), math.log(gap)) for reading, gap in zip(readings[1:], intervals)]
    as_rate, as_time = _spread([x + gap for x, gap in logs]), _spread([x - gap for x, gap in logs])
    if direction < 0 and 2 * as_rate < as_time:
        raise NotMeasured(RatesReadAsTimes(len(readings), metric.text))
    fits = next((unit for unit in _explaining(readings, metric.unit) if unit not in RATES), None)
    # the rate of larger batches grows with their time too
    if direction > 0 and 2 * as_time < as_rate and metric.looks_like != PER_SECOND and fits is not None:
        raise NotMeasured(TimesReadAsRates(len(readings), metric.text, fits))


def _require_room(metric: Metric, readings: Sequence[Reading], warmup: int, processes: int) -> None:
    """Raise NotMeasured if the second half of the readings, after ``warmup``, has no room between its lines."""
    late = readings[max(warmup, len(readings) // 2) :]
    total, between = sum(reading.seconds for reading in late[1:]), _span(late)
    if len(late) < FEWEST_LATE or not between or total <= MOST_LATE * max(1, processes) * between or _average(readings):
        return
    raise _impossible(metric, readings, len(late) - 1, total, between)


def _average(readings: Sequence[Reading]) -> bool:
    """Tell whether the numbers are averages since the start: the total behind them grows as the clock does."""
    totals = [number * reading.seconds for number, reading in enumerate(readings, 1)]
    gains, intervals = [after - before for before, after in zip(totals, totals[1:])], _intervals(readings)
    quarter = max(1, len(gains) // 4)
    shares = [
        sum(gains[at : at + quarter]) / passed
        for at in range(0, len(gains) - quarter + 1, quarter)
        if (passed := sum(intervals[at : at + quarter])) > 0
    ]
    return (
        bool(shares)
        and all(abs(share - statistics.fmean(shares)) <= GAIN for share in shares)
        and (statistics.fmean(shares) <= 1 + GAIN)
    )


def _spread(values: Sequence[float]) -> float:
    """Return the median distance from the median."""
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values)


def _clock(readings: Sequence[Reading]) -> type[ElapsedTime] | type[RemainingTime] | None:
    """Return the message class of the clock that the numbers show, or None."""
    intervals = _intervals(readings)
    gains = [after.raw - before.raw for before, after in zip(readings, readings[1:])]
    quarter = len(gains) // 4
    if len(gains) < FEWEST or not _span(readings):
        return None
    clocks: tuple[tuple[int, type[ElapsedTime] | type[RemainingTime]], ...] = ((1, ElapsedTime), (-1, RemainingTime))
    for sign, clock in clocks:
        if sum(sign * gain >= 0 for gain in gains) < ONE_WAY * len(gains):
            continue
        for unit in SECONDS:
            quarters = [
                sign * SECONDS[unit] * sum(gains[at : at + quarter]) / passed
                for at in range(0, 4 * quarter, quarter)
                if (passed := sum(intervals[at : at + quarter])) > 0
            ]
            if unit not in RATES and all(1 - GAIN <= share <= 1 + GAIN for share in quarters):
                return clock
    return None


def _explaining(readings: Sequence[Reading], but: str) -> list[str]:
    """Return the units, ``but`` one, in which the numbers are as long as the intervals before them.

    The scale of a rate does not matter, so that one unit stands for all rates.
    """
    span = _span(readings)
    if not span:
        return []
    raw = [reading.raw for reading in readings[1:]]
    sums = {
        unit: sum(SECONDS[unit] / value if unit in RATES else value * SECONDS[unit] for value in raw)
        for unit in SECONDS
        if unit not in (but, PER_MINUTE)
    }
    return [unit for unit, total in sums.items() if LEAST_EXPLAINED * span <= total <= MOST_EXPLAINED * span]


def _mend(metric: Metric, readings: Sequence[Reading], times_too_long: float) -> Message:
    """Return what the numbers may be, and what to give for it.

    The readings are ``times_too_long`` times as long as the elapsed time.
    """
    direction = _direction(readings)
    if metric.unit not in RATES and metric.looks_like == PER_SECOND:
        return NamesARate()
    if metric.unit not in RATES and direction <= -LIKELY:
        return FallsAsRates()
    fitting = _explaining(readings, metric.unit)
    if direction >= LIKELY:
        fitting = [unit for unit in fitting if unit not in RATES]
    if fitting:
        return FitsUnits(tuple(fitting), fitting[0])
    others = PerhapsTimes() if metric.unit in RATES else PerhapsRates()
    return others if times_too_long > MOST_BY_RANKS else PerhapsSeveralRanks(others)
