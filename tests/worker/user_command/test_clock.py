"""Step times held against the time in which they were printed."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from envkit.rendering import text as rendered
from envkit.worker.messages.readings import (
    ElapsedTime,
    FallsAsRates,
    FitsUnits,
    ImpossibleTimes,
    NamesARate,
    PerhapsRates,
    PerhapsSeveralRanks,
    RatesReadAsTimes,
    RemainingTime,
    TimesReadAsRates,
)
from envkit.worker.user_command import clock
from envkit.worker.user_command.metric import NotMeasured, parse
from envkit.worker.user_command.readings import Readings

BEGUN_S = 100.0


def steps(count=60, *, mean_s=0.1, spread=0.1):
    """The seconds of made-up steps."""
    chance = random.Random(7)
    return [mean_s * (1 + spread * chance.uniform(-1, 1)) for _ in range(count)]


def checked(
    metric, seconds, text, *, unit="s", startup_s=3.0, ranks=1, processes=1, every=1, pause=None, held=False, warmup=0
):
    """Check the readings of a training whose steps take ``seconds`` each; ``text(second, number, since)`` is a line.

    ``every`` is after how many steps a line comes, ``pause`` a number of lines after which the training rests for a
    second; ``held`` has all lines come when it ends.
    """
    found = Readings(parse(metric, unit), warmup)
    now = BEGUN_S + startup_s
    end = now + sum(seconds) + 1
    for number, second in enumerate(seconds, 1):
        now += second
        if number % every == 0:
            for rank in range(ranks):
                found.take(text(second, number, now - BEGUN_S), end if held else now + 0.0001 * rank)
        if pause and number % pause == 0:
            now += 1.0
    found.split(warmup)
    return clock.check(found, BEGUN_S, processes)


def as_time(second, number, since):
    return f"step {number} value={second:.4f} at={since:.3f}"


def as_rate(second, number, since):
    return f"step {number} value={1 / second:.3f} at={since:.3f}"


def as_images(second, number, since):
    return f"step {number} value={64 / second:.1f}"


VALUE, AT = r"value=(\S+)", r"at=(\S+)"


# --- numbers that are no step times ---


@pytest.mark.parametrize("spread", [0.0, 0.1])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("text", [as_rate, as_images])
def test_a_rate_read_as_seconds_is_refused(text, held, spread):
    with pytest.raises(NotMeasured) as error:
        checked(VALUE, steps(spread=spread), text, held=held)
    said = error.value.message
    assert isinstance(said, ImpossibleTimes)
    assert (said.readings, said.metric, said.unit) == (60, VALUE, "s")
    assert said.total_s > said.elapsed_s > 0
    assert "--unit per-second" in rendered(said)


def test_the_unit_of_rates_is_known_where_steps_vary():
    with pytest.raises(NotMeasured) as error:
        checked(VALUE, steps(), as_images)
    assert error.value.message.fix == FallsAsRates()


@pytest.mark.parametrize("held", [False, True])
def test_a_metric_that_names_a_rate_is_told_so(held):
    """Although it was said to be of seconds."""
    with pytest.raises(NotMeasured) as error:
        checked(r"SPS: (\d+)", steps(spread=0.0), lambda second, *_: f"SPS: {int(64 / second)}", held=held)
    assert error.value.message.fix == NamesARate()


def test_a_rate_of_about_one_a_second_is_told_by_its_direction_alone():
    """Its sum is that of step times, too."""
    seconds = steps(mean_s=1.0)
    with pytest.raises(NotMeasured) as error:
        checked(VALUE, seconds, as_rate)
    assert error.value.message == RatesReadAsTimes(60, VALUE)
    assert checked(VALUE, seconds, as_rate, unit="per-second") == {}
    with pytest.raises(NotMeasured) as error:
        checked(VALUE, seconds, as_time, unit="per-second")
    assert error.value.message == TimesReadAsRates(60, VALUE, "s")


@pytest.mark.parametrize("held", [False, True])
def test_milliseconds_read_as_seconds_are_refused(held):
    with pytest.raises(NotMeasured) as error:
        checked(VALUE, steps(), lambda second, *_: f"value={1000 * second:.1f}", held=held)
    assert isinstance(error.value.message, ImpossibleTimes)
    assert error.value.message.fix == (PerhapsRates() if held else FitsUnits(("ms",), "ms"))


def test_times_read_as_rates_are_refused():
    with pytest.raises(NotMeasured) as error:
        checked(VALUE, steps(mean_s=0.01), as_time, unit="per-second")
    assert isinstance(error.value.message, ImpossibleTimes)
    assert (error.value.message.unit, error.value.message.fix) == ("per-second", FitsUnits(("s",), "s"))


@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 1), ("s", 1000)])
def test_the_time_since_the_start_is_refused(unit, scale):
    with pytest.raises(NotMeasured) as error:
        checked(AT, steps(), lambda _, __, since: f"at={scale * since:.2f}", unit=unit)
    assert error.value.message == ElapsedTime(60, AT)


def test_the_time_that_is_left_is_refused():
    with pytest.raises(NotMeasured) as error:
        checked(AT, steps(), lambda _, __, since: f"at={60 - since:.2f}")
    assert error.value.message == RemainingTime(60, AT)


def test_the_time_since_the_start_is_refused_if_lines_were_held_back():
    with pytest.raises(NotMeasured) as error:
        checked(AT, steps(), as_time, held=True)
    assert isinstance(error.value.message, ImpossibleTimes)


@pytest.mark.parametrize("rate", [1.6, 2.0, 2.5])
@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_a_rate_of_a_few_steps_a_second_is_refused_though_the_start_took_long(rate, spread):
    """All readings have room in the time since the command began, but not between their lines."""
    seconds = steps(16, mean_s=1 / rate, spread=spread)
    with pytest.raises(NotMeasured) as error:
        checked(VALUE, seconds, as_rate, startup_s=60.0)
    assert isinstance(error.value.message, ImpossibleTimes)
    assert error.value.message.readings == 7
    assert "--unit per-second" in rendered(error.value.message)
    assert checked(VALUE, seconds, as_rate, startup_s=60.0, unit="per-second") == {}


def test_averages_over_the_last_steps_are_refused_only_while_a_slow_start_is_in_them():
    seconds = [60.0, *steps(40)]

    def over(window):
        return lambda _, number, __: f"value={sum(seconds[max(0, number - window) : number]) / min(number, window):.4f}"

    assert checked(VALUE, seconds, over(10)) == {}
    with pytest.raises(NotMeasured) as error:
        checked(VALUE, seconds, over(35))
    assert error.value.message.fix == PerhapsSeveralRanks(PerhapsRates())
    assert checked(VALUE, seconds, over(35), warmup=35) == {}


# --- numbers that are ---


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"every": 10},
        {"held": True},
        {"pause": 7},
        {"startup_s": 300.0},
        {"startup_s": 0.0},
        {"ranks": 4, "processes": 4},
        {"ranks": 4, "processes": 5, "held": True},
        {"ranks": 2},  # a logger and print say the same
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("text", "unit"),
    [(as_time, "s"), (as_rate, "per-second"), (as_images, "per-second")],
    ids=["time", "rate", "images"],
)
def test_times_and_rates_pass(text, unit, how):
    assert checked(VALUE, steps(200), text, unit=unit, **how) == {}


def test_a_time_without_the_loading_of_data_passes():
    """The loader waits for less where the step took longer, so that all lines are as far apart."""
    chance = random.Random(3)
    found = Readings(parse(VALUE))
    for number in range(1, 101):
        found.take(f"value={0.05 + 0.04 * chance.random():.4f}", BEGUN_S + 0.1 * number + 0.001 * chance.random())
    found.split(0)
    assert clock.check(found, BEGUN_S, 1) == {}


def test_slow_and_quick_steps_in_turn_that_are_printed_a_line_late_pass():
    """Alone, the interval before each line would be longest where the number is smallest."""
    turns = [second * (0.5 + number % 2) for number, second in enumerate(steps(80))]
    found = Readings(parse(VALUE))
    now = BEGUN_S
    for before, second in pairwise(turns):
        now += second
        found.take(f"value={before:.4f}", now)
    found.split(0)
    assert clock.check(found, BEGUN_S, 1) == {}


def test_averages_since_the_start_pass_though_the_first_step_was_slow():
    seconds = [60.0, *steps(100)]
    averages = [sum(seconds[:number]) / number for number in range(1, len(seconds) + 1)]
    assert checked(VALUE, seconds, lambda _, number, __: f"value={averages[number - 1]:.4f}") == {}


def test_steps_that_grow_slower_and_slower_pass():
    assert checked(VALUE, [0.1 + 0.001 * number for number in range(100)], as_time) == {}


def test_one_number_for_the_whole_training_passes_and_is_none_if_it_is_longer():
    found = Readings(parse(r"runtime (\S+)"))
    found.take("runtime 12.5", BEGUN_S + 13)
    found.split(0)
    assert clock.check(found, BEGUN_S, 1) == {}
    with pytest.raises(NotMeasured) as error:
        clock.check(found, BEGUN_S + 12, 1)
    said = error.value.message
    assert (said.readings, said.total_s, said.unit, said.elapsed_s) == (1, 12.5, "s", 1)


def test_a_bar_that_names_its_unit_is_never_refused():
    """Ranks on other nodes may draw it too. The report says so."""
    found = checked(r"([\d.]+)s/it", steps(), lambda second, *_: f"| {second:.3f}s/it", ranks=64)
    assert found["readings_cover"]["sum_s"] > 10 * found["readings_cover"]["elapsed_s"]
    assert checked(r"([\d.]+)it/s", steps(), lambda second, *_: f"| {1 / second:.3f}it/s", unit="per-second") == {}


def test_a_clock_has_nothing_to_be_held_against():
    found = Readings(parse("step"))
    for number in range(5):
        found.take("step", BEGUN_S + number)
    found.split(0)
    assert clock.check(found, BEGUN_S, 1) == {}


# --- what is remarked ---


def test_readings_that_cover_little_of_the_run_are_remarked_with_the_unit_that_fits():
    cover = checked(VALUE, steps(), as_time, unit="ms")["readings_cover"]
    assert cover["fits"] == "s"
    assert cover["sum_s"] < 0.002 * cover["elapsed_s"]
    cover = checked(VALUE, steps(2000), as_time, every=100)["readings_cover"]
    assert cover["fits"] == ""
    assert cover["sum_s"] == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize(
    ("text", "share"),
    [("{:.1f}", 1.0), ("{:.2f}", 0.1), ("{:.3f}", None), ("{:.2e}", None)],
)
def test_coarse_digits_are_remarked(text, share):
    found = checked(VALUE, steps(mean_s=0.1, spread=0.04), lambda second, *_: f"value={text.format(second)}")
    assert found.get("readings_rounding") == (share if share is None else pytest.approx(share, rel=0.05))


@pytest.mark.parametrize("metric", [r"wps=(\S+)", r"value=(\S+)"])
def test_the_rate_of_batches_that_vary_in_size_passes(metric):
    """A step has a part that is the same for all, so that larger batches take longer and are faster by the item."""
    chance = random.Random(3)
    sizes = [chance.uniform(1000, 4000) for _ in range(60)]
    seconds = [0.05 + size / 20000 for size in sizes]
    rates = {second: size / second for size, second in zip(sizes, seconds, strict=True)}
    name = metric.partition("=")[0]
    assert checked(metric, seconds, lambda second, *_: f"{name}={rates[second]:.1f}", unit="per-second") == {}
