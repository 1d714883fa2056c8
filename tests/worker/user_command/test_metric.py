"""Step times from lines."""

from __future__ import annotations

import pytest
from envkit.worker.messages.captions import STEP_TIME
from envkit.worker.messages.metrics import (
    DecimalComma,
    ManyGroups,
    MatchesEverything,
    NoMatch,
    NotANumber,
    NotAPath,
    NotARegex,
    NothingPrinted,
    NoUnit,
    NumberCut,
    NumberWithUnit,
    PathWithoutKey,
    UnmatchedLines,
)
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
from envkit.worker.user_command.metric import MetricError, NotMeasured, parse
from envkit.worker.user_command.readings import Readings


def readings(metric, *lines, unit="s", every_s=0.5, left_out=0):
    """The step times of lines that come ``every_s`` apart."""
    found = Readings(parse(metric, unit), left_out)
    for number, line in enumerate(lines):
        found.take(line, 10 + number * every_s)
    return found


@pytest.mark.parametrize(
    ("metric", "unit", "line", "seconds"),
    [
        (r"time ([\d.]+) ms", "ms", "step 12 loss 0.31 time 8.3 ms", 0.0083),
        (r"time ([\d.]+)s", "s", "step 12 time 1.25s", 1.25),
        (r"(\d+) us", "us", "took 250 us", 0.00025),
        (r"([\d.]+)it/s", "per-second", "Epoch 0: 50%|##  | 20/40 [00:01<00:01, 12.50it/s]", 0.08),
        (r"(\S+) steps/s", "per-second", "1,250.0 steps/s", 0.0008),
        (r"(?:step|batch) time: (.*)", "s", "batch time: 2e-3", 0.002),
        ("$.step_time", "s", '{"step": 3, "step_time": 0.5}', 0.5),
        ("$.train.times[1].seconds", "s", '{"train": {"times": [1, {"seconds": 0.25}]}}', 0.25),
        ("$.rate", "per-second", '  {"rate": "4"}', 0.25),
        ("$['train/step_time']", "s", '{"train/step_time": 0.25}', 0.25),
        ('$.times["a.b"][0]', "s", '{"times": {"a.b": [0.25]}}', 0.25),
        (r"^([\d.]+)", "s", "0.25,123,7", 0.25),
        (r"([^,]+)$", "ms", "4,0.3410,128.4", 0.1284),
        (r"(\d+)$", "ms", "0,300,1284,250", 0.25),
        (r"([\d.]+)$", "s", "12,0.25", 0.25),
        (r",(\d+)$", "ms", "12,250", 0.25),
        (r"^(\d+),", "ms", "250,123", 0.25),
        (r"time (\d+)", "s", "\x1b[32mtime\x1b[0m \x1b[1m7\x1b[0m", 7),
    ],
)
def test_a_number_in_a_line(metric, unit, line, seconds):
    assert readings(metric, line, unit=unit).seconds == [pytest.approx(seconds)]


@pytest.mark.parametrize(
    ("metric", "line"),
    [
        (r"([\d.]+)it/s", "Epoch 0:  0%|    | 0/40 [00:00<?, ?it/s]"),
        (r"time (\d+)", "an epoch took 3 s"),
        (r"train(?:ed in (\d+) s)?", "training begins"),
        ("$.step_time", "step_time 0.5"),
        ("$.step_time", '{"step_time": 0.5'),
        ("$.step_time", '{"loss": 0.5}'),
        ("$.train.step_time", '{"train": 3}'),
        ("$.step_time", '{"step_time": null}'),
        ("$.times[2]", '{"times": [1, 2]}'),
        ("$.times.first", '{"times": [1, 2]}'),
        ("step", "   "),
    ],
)
def test_other_lines_are_no_readings(metric, line):
    assert readings(metric, line, line).seconds == []


BAR = "Epoch 0: 50%|##  | 20/40 [00:21<00:21,  {}]"
RATE, TIME = (r"([\d.]+)it/s", "per-second"), (r"([\d.]+)s/it", "s")


@pytest.mark.parametrize("metric", [RATE, TIME])
@pytest.mark.parametrize(
    "shown", [["1.05it/s", "1.02s/it", "1.25it/s", "1.01s/it"], ["1.25it/s", "1.05it/s"], ["1.02s/it", "2.50s/it"]]
)
def test_a_bar_that_goes_to_and_fro_at_one_step_in_a_second_is_timed_by_all_of_its_lines(metric, shown):
    """Else it would be by its fast steps alone, or by its slow ones; and of two environments one has no other lines."""
    numbers = [(float(text[:4]), text.endswith("s/it")) for text in shown]
    warmup, steps = readings(metric[0], *map(BAR.format, shown), unit=metric[1]).split(1)
    assert [*warmup, *steps] == [pytest.approx(number if is_time else 1 / number) for number, is_time in numbers]
    assert len(warmup) == 1


OTHER_BAR = "Files: 50%|##  | 4/8 [00:21<00:21,  {}]"


@pytest.mark.parametrize(
    ("metric", "own", "others", "lines"),
    [
        (RATE, ["12.5it/s", "12.5it/s"], ["300.12s/it"], (1, 3, ("s/it",))),
        (TIME, ["3.0s/it"], ["1.6it/s", "1.6it/s"], (2, 3, ("it/s",))),
        (RATE, ["5it/s"], ["1e-05s/it"], (1, 2, ("s/it",))),
    ],
)
def test_bars_of_quite_another_length_are_not_taken_for_one(metric, own, others, lines):
    with pytest.raises(NotMeasured) as error:
        readings(metric[0], *map(BAR.format, own), *map(OTHER_BAR.format, others), unit=metric[1]).split(0)
    assert error.value.message == OtherLengths(*lines, metric[0])


@pytest.mark.parametrize(
    ("metric", "line", "part"),
    [
        (r"time=([\d.]+)", "time=9.5e-05", "9.5"),
        (r"time ([\d.]+)", "time 1,234.5 ms", "1"),
        (r"([\d.]+) ms", "took 1,234.5 ms", "234.5"),
        (r"(\d+) ms", "took 12.5 ms", "5"),
        (r"took (\d+)", "took 12.5 ms", "12"),
        (r"([\d.]+)s/it", "1e-05s/it", "05"),
        (r"([\d.]+) ms", "took 1,234,567.5 ms", "567.5"),
    ],
)
def test_a_part_of_a_number_is_no_reading(metric, line, part):
    with pytest.raises(NotMeasured) as error:
        readings(metric, line)
    assert error.value.message == NumberCut(STEP_TIME, metric, line, part)


def test_slow_steps_at_the_beginning_are_steps_too():
    metric, unit = RATE
    shown = [BAR.format(text) for text in ("5.02s/it", "1.50s/it", *["2.0it/s"] * 5)]
    assert readings(metric, *shown, unit=unit).split(0) == ([], [5.02, 1.5, *[0.5] * 5])
    assert readings(metric, *shown, unit=unit, left_out=2).split(2) == ([5.02, 1.5], [0.5] * 5)


def test_an_outer_bar_is_no_step():
    inner, outer = BAR.format("12.5it/s"), "Epochs:  10%|#  | 1/10 [05:00<45:00, 300.12s/it]"
    found = readings(r"([\d.]+)it/s", *[inner] * 20, outer, *[inner] * 20, outer, unit="per-second")
    assert found.split(0) == ([], [0.08] * 40)
    found = readings(r"Epoch .* ([\d.]+)it/s", inner, outer, outer, inner, unit="per-second")
    assert len(found.split(0)[1]) == 2


def test_without_a_group_the_time_between_matching_lines_counts():
    found = readings("^step", "loading", "step 1", "saving", "step 2", "step 3", "bye", every_s=0.25)
    assert found.seconds == [0.5, 0.25]
    assert found.lines == 6


def test_what_a_line_is_indented_by_counts():
    assert readings(r"^  t=(\d)$", "t=1", "  t=2  ", "    t=3").seconds == [2]
    assert readings(r"^t=(\d)", "  t=1", "t=2").seconds == [2]
    assert readings("$.t", '\t {"t": 3}  ').seconds == [3]


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        ("time (", NotARegex("missing ), unterminated subpattern", 6)),
        ("*", NotARegex("nothing to repeat", 1)),
        (r"(\d+) of (\d+)", ManyGroups(2, STEP_TIME)),
        (".*", MatchesEverything()),
        ("$", PathWithoutKey()),
        ("$.a..b", NotAPath(4, "..b")),
        ("$.a[x]", NotAPath(4, "[x]")),
        ("$step", NotAPath(2, "step")),
    ],
)
def test_what_is_no_metric(metric, problem):
    with pytest.raises(MetricError) as error:
        parse(metric)
    assert error.value.message == problem


@pytest.mark.parametrize(
    ("metric", "line", "value"),
    [
        (r"time (\S+)", "time nan", "'nan'"),
        (r"time (\S+)", "time inf", "'inf'"),
        (r"time (\S+)", "time 0.0", "'0.0'"),
        (r"time (\S+)", "time -3", "'-3'"),
        (r"time (\S+)", "time 8.3m", "'8.3m'"),
        ("$.t", '{"t": true}', "true"),
        ("$.t", '{"t": {"ms": 3}}', '{"ms": 3}'),
        ("$.t", '{"t": NaN}', "NaN"),
    ],
)
def test_a_reading_that_is_no_number(metric, line, value):
    with pytest.raises(NotMeasured) as error:
        readings(metric, line)
    assert error.value.message == NotANumber(STEP_TIME, value, line, "metric", 0)


def test_a_reading_of_0_is_one_among_those_that_are_left_out():
    for metric, unit, zero in (("t=(.*)", "s", "t=0.0"), ("t=(.*)", "per-second", "t=0"), ("$.t", "s", '{"t": 0}')):
        assert readings(metric, zero, zero, unit=unit, left_out=2).seconds == [0, 0]
        with pytest.raises(NotMeasured) as error:
            readings(metric, zero, zero, zero, unit=unit, left_out=2)
        assert isinstance(error.value.message, NotANumber)
        assert error.value.message.limit == 0
    for other in ("t=nan", "t=-1", "t="):
        with pytest.raises(NotMeasured) as error:
            readings("t=(.*)", other, left_out=2)
        assert error.value.message == NotANumber(STEP_TIME, repr(other[2:]), other, "metric", 0)


def test_the_first_readings_can_be_left_out():
    found = readings(r"t=(\d)", "t=9", "t=8", "t=1", "t=2")
    assert found.split(2) == ([9, 8], [1, 2])
    assert found.split(0) == ([], [9, 8, 1, 2])


@pytest.mark.parametrize(
    ("metric", "lines", "warmup", "problem"),
    [
        ("step", "", 0, NothingPrinted("step", "metric", "step")),
        ("epoch", "step 1,step 2", 0, NoMatch("step", "metric", "epoch", 2, "step 2")),
        ("1", "step 1,step 2", 0, OneMatch("1", 2, "step 2")),
        ("([0-9])", "step 1,step 2", 2, FewReadings(2, "([0-9])", needed=3, counted=1, left_out=2)),
        ("step", "step 1,step 2,step 3", 1, FewReadings(2, "step", needed=3, counted=2, left_out=1)),
        ("step", "step 1,step 2", 0, FewReadings(1, "step", needed=2, counted=2)),
    ],
)
def test_too_little_to_measure(metric, lines, warmup, problem):
    with pytest.raises(NotMeasured) as error:
        readings(metric, *lines.split(",")).split(warmup)
    assert error.value.message == problem


def test_a_number_for_the_whole_training_is_one_reading():
    line = "{'train_runtime': 12.5, 'train_samples_per_second': 640.0}"
    assert readings(r"'train_runtime': ([\d.]+)", "step 1", "step 2", line).split(0) == ([], [12.5])


def test_a_long_line_is_cut_where_it_is_shown():
    with pytest.raises(NotMeasured) as error:
        readings("epoch", "x" * 5000).split(0)
    assert error.value.message.last == "x" * 119 + "…"


def test_lines_that_come_all_at_one_moment_tell_no_time():
    with pytest.raises(NotMeasured) as error:
        readings("step", *["step"] * 5, every_s=0).split(0)
    assert error.value.message == OutputHeldBack("step")


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        (r"([\d.]+) images/sec", "per-second"),
        (r"([\d.]+) (?:it|img)/s", "per-second"),
        (r"([\d.]+)\s*it/second", "per-second"),
        (r"'train_steps_per_second': (\S+)\}", "per-second"),
        ("$['throughput/samples']", "per-second"),
        (r"(\d+) fps", "per-second"),
        (r"time ([\d.]+)\s*ms", "ms"),
        (r"(\d+)us", "us"),
        (r"time ([\d.]+) s", None),
        (r"([\d.]+)s/step", None),
        ("$.seconds_per_step", None),
        (r"(\d+)", None),
        ("images/sec", None),  # whose lines are counted
    ],
)
def test_a_unit_that_a_metric_names_is_not_taken_for_seconds(metric, unit):
    assert parse(metric).looks_like == unit


@pytest.mark.parametrize(
    ("metric", "line", "given"),
    [
        (r"time ([0-9.]+)", "time 0,401", "0,401"),
        (r"time ([0-9.]+)", "time 12,5 ms", "12,5"),
        (r"([0-9.]+) ms", "took 0,401 ms", "0,401"),
        (r"time (\S+)", "time 0,401 s", "0,401"),
        (r"time (\S+)", "time 1,25", "1,25"),
    ],
)
def test_a_decimal_comma_is_named(metric, line, given):
    with pytest.raises(NotMeasured) as raised:
        readings(metric, line)
    assert raised.value.message.replace(column=None) == DecimalComma(STEP_TIME, given, line)


def test_lines_with_no_time_where_others_have_one_are_counted():
    lines = ["epoch 1", "step 1 time 0.5", "step 2 time nan", "step 3 time -1.5", "step 4 time 0.4", "loss 0.3"]
    assert readings(r"time ([0-9.]+)", *lines).unmatched_lines == (2, "step 2 time nan")


@pytest.mark.parametrize(
    ("metric", "lines"),
    [
        (r"time ([0-9.]+)", ["step 1 time 0.5", "loss nan", "done"]),
        (r"step \d*0 time ([0-9.]+)", ["step 10 time 0.5", "step 11 time 0.4"]),  # every tenth is meant
        (r"step", ["step 1 nan", "nan"]),
    ],
)
def test_lines_that_have_a_time_or_are_none_of_these_are_not_counted(metric, lines):
    assert readings(metric, *lines).unmatched_lines is None


def test_where_no_line_has_a_time_those_with_none_are_counted():
    with pytest.raises(NotMeasured) as error:
        readings(r"time ([0-9.]+)", "time nan", "time -1.5").split(0)
    assert error.value.message.alike == UnmatchedLines(2, "time nan")


def test_too_few_readings_beside_unmatched_lines():
    with pytest.raises(NotMeasured) as error:
        readings(r"time ([0-9.]+)", "time 0.5", "time nan").split(2)
    assert (error.value.message.alike, error.value.message.needed) == (UnmatchedLines(1, "time nan"), 3)


# --- units that change from line to line ---

SECONDS = [0.90, 1.10, 0.95, 1.05, 0.98, 1.30] * 4


def dora(second):
    return f"{second:.2f} sec/it" if second > 1 else f"{1000 * second:.1f} ms/it"


def keras(second):
    return f"{second:.2f}s/step" if second > 1 else f"{1000 * second:.0f}ms/step"


def scaled(second):
    return f"{1 / second:.4f}kit/s" if second < 1 else f"{1000 / second:.2f}it/s"


def minutes(second):
    whole = round(60 * second)
    return f"{whole // 60}:{whole % 60:02d}" if whole >= 60 else f"{whole}s"


def lines_of(text, *, before="step"):
    return [f"Train | {number}/24 | {before} {text(second)} | Loss 0.5" for number, second in enumerate(SECONDS, 1)]


@pytest.mark.parametrize(
    ("text", "metric", "unit", "scale"),
    [
        (dora, r"([0-9.]+) ms/it", "ms", 1),
        (dora, r"([0-9.]+) sec\/it", "s", 1),
        (dora, r"(\S+)\s+ms/it", "ms", 1),
        (dora, r"step ([0-9.]+) (?:ms|sec)", "s", 1),
        (dora, r"step ([0-9.]+)", "ms", 1),
        (dora, r"step ([0-9.]+)", "auto", 1),
        (dora, r"step (.*) \|", "auto", 1),
        (keras, r"([0-9.]+)ms/step", "ms", 1),
        (keras, r"([0-9.]+)m?s/step", "auto", 1),
        (keras, r"step (\S+)", "auto", 1),
        (scaled, r"([0-9.]+)it/s", "per-second", 0.001),
        (scaled, r"([0-9.]+)kit/s", "per-second", 0.001),
        (scaled, r"([0-9.]+)k?it/s", "auto", 0.001),
        (minutes, r"step (\d+)s", "s", 60),
        (minutes, r"step (\S+)", "auto", 60),
    ],
)
def test_a_unit_that_changes_with_the_speed_loses_no_step(text, metric, unit, scale):
    """Only the fast steps would be read otherwise, or only the slow ones."""
    (_, steps) = readings(metric, *lines_of(text), unit=unit, every_s=scale).split(0)
    assert steps == [pytest.approx(second * scale, rel=0.01) for second in SECONDS]


@pytest.mark.parametrize(
    ("text", "metric", "unit", "missed"),
    [
        (dora, r"([0-9.]+) (?=ms)", "ms", "sec/it"),
        (keras, r"step ([0-9.]+)(?:ms)/step", "ms", "s/step"),
        (scaled, r"step ([0-9.]+)[i]t/s", "per-second", "kit/s"),
        (minutes, r"step (\d+)[s]", "s", "1:05"),
    ],
)
def test_a_metric_that_reads_one_of_two_units_is_refused_with_one_that_reads_both(text, metric, unit, missed):
    lines = lines_of(text)
    with pytest.raises(NotMeasured) as error:
        readings(metric, *lines, unit=unit).split(0)
    said = error.value.message
    assert isinstance(said, OtherUnits)
    assert (said.lines, said.of, said.units, said.metric) == (12, 24, (missed,), metric)
    assert said.line in lines
    scale = {scaled: 0.001, minutes: 60}.get(text, 1)
    _, steps = readings(said.fix, *lines, unit="auto").split(0)
    assert steps == [pytest.approx(second * scale, rel=0.01) for second in SECONDS]


@pytest.mark.parametrize(
    ("metric", "unit", "lines"),
    [
        # a validation, a time of day, a total and a size are no steps
        (r"([0-9.]+) ms", "ms", ["step 1 8.5 ms", "valid 1 took 35.2 s", "12:30:05 saved"]),
        (r"step \d+ ([0-9.]+) ms", "ms", ["step 1 8.5 ms", "data 1 0.2 s", "12 files, 35.2 MB/s"]),
        (r"time ([0-9.]+)", "s", ["step 1 time 0.0085 min 0.0080 max 0.0090", "valid took 3 ms"]),
    ],
)
def test_other_lines_with_a_time_are_no_steps(metric, unit, lines):
    found = readings(metric, *lines * 10, unit=unit)
    assert found.split(0) == ([], [pytest.approx(0.0085)] * 10)


def test_a_total_in_the_words_of_a_step_is_no_step():
    """It contains the others, and the arrival of the lines shows that."""
    found = readings(r"took ([0-9.]+) ms", *["took 500 ms"] * 20, "took 10.0 s", unit="ms", every_s=0.5)
    assert found.split(0) == ([], [0.5] * 20)
    assert found.unmatched_lines[0] == 1
    slow = readings(r"took ([0-9.]+) ms", *["took 100 ms"] * 20, "took 1.2 s", unit="ms", every_s=1.3)
    assert slow.split(0)[1][-1] == 1.2


@pytest.mark.parametrize(
    ("unit", "line", "problem"),
    [
        ("s", "time 8.3 ms", WrongUnit(("ms",), r"time ([0-9.]+)", "s", "ms")),
        ("s", "bar time 8.3it/s", WrongUnit(("it/s",), r"time ([0-9.]+)", "s", "per-second")),
        ("per-second", "time 8.3 s", WrongUnit(("s",), r"time ([0-9.]+)", "per-second", "s")),
        ("ms", "time 8.3 ns", WrongUnit(("ns",), r"time ([0-9.]+)", "ms", "auto")),
        ("auto", "time 8.3", NoUnit("8.3", "time 8.3")),
    ],
)
def test_a_unit_that_the_lines_contradict_is_refused(unit, line, problem):
    with pytest.raises(NotMeasured) as error:
        readings(r"time ([0-9.]+)", line, line, unit=unit).split(0)
    assert error.value.message == problem


def test_rates_of_different_things_are_not_mixed():
    with pytest.raises(NotMeasured) as error:
        readings(r"([0-9.]+)", "12 it/s", "800 images/s", unit="auto").split(0)
    assert error.value.message == SeveralItems(("images", "it"), "([0-9.]+)")


def test_numbers_with_a_unit_in_json():
    found = readings("$.speed", '{"speed": "950 ms/it"}', '{"speed": "1.05 s/it"}', unit="auto")
    assert found.split(0)[1] == [pytest.approx(0.95), pytest.approx(1.05)]


def test_thousands_and_exponents_beside_a_unit_that_changes():
    lines = ["took 1,234.5 ms", "took 9.5e-1 s", "took 1.1 s"]
    assert readings(r"took (\S+) s", *lines).split(0)[1] == [pytest.approx(time) for time in (1.2345, 0.95, 1.1)]


def test_steps_without_a_number_are_refused_if_they_are_many():
    few = readings(r"time ([0-9.]+)", *["time 0.5"] * 9, "time nan")
    assert few.split(0) == ([], [0.5] * 9)
    assert few.unmatched_lines == (1, "time nan")
    with pytest.raises(NotMeasured) as error:
        readings(r"time ([0-9.]+)", *["time 0.5", "time inf"] * 6).split(0)
    assert error.value.message == StepsUnmatched("time ([0-9.]+)", 6, UnmatchedLines(6, "time inf"))


def test_a_number_with_its_unit_is_read_with_unit_auto():
    with pytest.raises(NotMeasured) as error:
        readings(r"time (\S+)", "time 8.3ms", unit="ms")
    assert error.value.message == NumberWithUnit(STEP_TIME, "8.3ms", "time 8.3ms")
    assert readings(r"time (\S+)", "time 8.3ms", unit="auto").split(0) == ([], [pytest.approx(0.0083)])


@pytest.mark.parametrize(
    ("metric", "lines", "steps"),
    [
        (r"step took ([0-9.]+) ms", ["step took 1.2 s"] * 3, 3),
        (r"([0-9.]+) ms/it", ["1.2 s/it"] * 3, 3),
        (r"([0-9.]+) ms", ["loaded in 1.2 s"] * 3, 0),
        (r"took ([0-9.]+) ms", ["loading took 1.2 s", "saving took 3 s"], 0),
    ],
)
def test_lines_that_all_have_another_unit_are_steps_if_the_metric_says_more_than_a_unit(metric, lines, steps):
    """One environment may have all of its steps on the other side of a second."""
    found = readings(metric, *lines, unit="ms")
    if steps:
        assert found.split(0) == ([], [1.2] * steps)
    else:
        with pytest.raises(NotMeasured) as error:
            found.split(0)
        assert isinstance(error.value.message, NoMatch)
