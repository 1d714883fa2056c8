from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from envkit.cli.argument_messages import COUNT, DATE, LIMIT, SHARE, TIME, NotCounts, NotOfForm, NoUnit
from envkit.cli.arguments import count, counts, duration, limit, moment, share
from envkit.cli.parser import BadValue


@pytest.mark.parametrize(("text", "seconds"), [("60s", 60), ("4m", 240), ("1h", 3600), ("0.5s", 0.5), (" 1.5m ", 90)])
def test_duration_in_seconds(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["0", "0s", "0.0m", "-5", "-5s", "", "s", "1d", "1 h", "4m30s", "soon", "1e3", "nan", 400 * "9"]
)
def test_duration_refuses_and_shows_examples(text):
    with pytest.raises(BadValue) as refused:
        duration(text)
    assert refused.value.problem == NotOfForm(text, TIME)


@pytest.mark.parametrize("text", ["3", " 1.5 "])
def test_duration_wants_a_unit(text):
    with pytest.raises(BadValue) as refused:
        duration(text)
    assert refused.value.problem == NoUnit(text.strip())


@pytest.mark.parametrize(("text", "value"), [("4%", 0.04), ("0.04", 0.04), ("12.5%", 0.125), ("99%", 0.99)])
def test_share_as_a_fraction(text, value):
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["0", "0%", "1", "100%", "4", "-4%", "four", "", "%"])
def test_share_refuses_and_shows_examples(text):
    with pytest.raises(BadValue) as refused:
        share(text)
    assert refused.value.problem == NotOfForm(text, SHARE)


@pytest.mark.parametrize(
    ("text", "value"), [("10%", 0.1), ("0.1", 0.1), ("0", 0.0), ("0%", 0.0), ("1", 1.0), ("150%", 1.5), (" 5% ", 0.05)]
)
def test_limit_as_a_share(text, value):
    assert limit(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["10", "1.5", "-1%", "-0.1", "512MiB", "much", "", "%", "nan", "inf", 400 * "9" + "%"])
def test_limit_refuses_and_shows_examples(text):
    with pytest.raises(BadValue) as refused:
        limit(text)
    assert refused.value.problem == NotOfForm(text, LIMIT)


def test_count():
    assert count("12") == 12


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "many", "1e3"])
def test_count_refuses(text):
    with pytest.raises(BadValue) as refused:
        count(text)
    assert refused.value.problem == NotOfForm(text, COUNT)


def test_moment_is_the_beginning_of_a_day():
    assert moment("2026-11-01") == datetime(2026, 11, 1)


@pytest.mark.parametrize(("text", "hours"), [("12h", 12), ("7d", 168), (" 2w ", 336)])
def test_moment_is_so_long_ago(text, hours):
    before = datetime.now()
    assert before <= moment(text) + timedelta(hours=hours) <= datetime.now()


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "01.11.2026", "-7d", "7", "7m", "999999h"])
def test_moment_refuses_and_shows_examples(text):
    with pytest.raises(BadValue) as refused:
        moment(text)
    assert refused.value.problem == NotOfForm(text, DATE)


def test_a_list_of_numbers_in_the_order_given_each_once():
    assert counts(0)("4,0,2,4") == (4, 0, 2)
    assert counts(1)("16") == (16,)


@pytest.mark.parametrize("text", ["", "1,", "0,2", "a", "1 2", "-1", "1.5"])
def test_a_list_refuses_and_shows_an_example(text):
    with pytest.raises(BadValue) as refused:
        counts(1)(text)
    assert refused.value.problem == NotCounts(text, 1)
