"""The report of many profiles: one line for each, the fastest first."""

from __future__ import annotations

import pytest
from envkit.analysis import ranking
from envkit.bench.arms import View
from envkit.report import tables, verdict

from tests.records import conclude
from tests.reports import events_of, printed
from tests.simulation import STEADY, times

OTHERS = {"third": {"seconds": times(0.9)}, "worst": {"seconds": times(2.0)}, "second": {"seconds": times(0.7)}}


def run(third=None, **options):
    others = {**OTHERS, **({"third": third} if third else {})}
    return events_of(blocks=12, **{"others": others, **options})


def rows(text):
    """The ranking's lines."""
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("profile "))
    return lines[begin + 1 : lines.index("", begin)]


def test_each_profile_has_one_line_and_the_fastest_is_first():
    found = rows(printed(run()))
    assert [line.split()[0] for line in found] == ["mine", "second", "third", "baseline", "worst"]
    assert found[0].split()[1] == "2.00x"
    assert [line.split()[5] for line in found if not line.startswith("baseline")] == ["faster"] * 3 + ["slower"]
    assert found[3].split()[1:3] == ["1", "reference"]


def test_it_fits_a_screen_with_all_shipped_profiles():
    names = [f"a-profile-with-a-long-name-{number:02}"[-25:] for number in range(24)]
    noisy = [second + (0.04 if number % 2 else -0.04) for number, second in enumerate(STEADY)]
    text = printed(run(others={name: {"seconds": noisy} for name in names}))
    assert max(map(len, text.rstrip().splitlines()[:-3])) <= 80
    assert len(text.splitlines()) <= 50
    assert len(rows(text)) == 26


def test_a_few_profiles_stay_as_they_were_named():
    few = events_of(blocks=12, others={name: OTHERS[name] for name in ("worst", "second")})
    assert [one.arm for one in ranking.ranked(conclude(few).comparisons, View.EFFECTS)] == ["mine", "worst", "second"]


def test_without_intervals_the_order_is_that_of_the_run():
    text = printed(events_of(blocks=2, others=OTHERS))
    assert [line.split()[0] for line in rows(text)] == ["baseline", "mine", "third", "worst", "second"]


def test_only_the_best_has_an_advice():
    text = printed(run())
    assert text.count("Use  ") == 1
    assert "envkit exec mine.yaml" in text


@pytest.mark.parametrize("show", [tables.all_arms, tables.ranked])
def test_all_tables_have_the_same_order(show):
    result = conclude(run())
    assert [row[0] for row in show(result)] == ["mine", "second", "third", "baseline", "worst"]
    assert [row.label for row in verdict.rows(result) if row.label] == ["mine", "second", "third", "worst"]
