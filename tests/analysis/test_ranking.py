"""The report of many profiles: one line for each, the fastest first."""

from __future__ import annotations

import pytest
from envkit.analysis import ranking
from envkit.analysis.summary import summarise
from envkit.report import tables, wording

from tests.report.planted import NOT_IN_EFFECT, NOT_VERIFIED, OTHER_LOSSES, disturbed
from tests.reports import events_of, printed, said
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
    assert found[0].split()[1] == "2.000"
    assert [line.split()[5] for line in found if not line.startswith("baseline")] == ["FASTER"] * 3 + ["SLOWER"]
    assert found[3].split()[1:3] == ["1", "reference"]


def test_it_fits_a_screen_with_all_shipped_profiles():
    names = [f"a-profile-with-a-long-name-{number:02}"[-25:] for number in range(24)]
    noisy = [second + (0.04 if number % 2 else -0.04) for number, second in enumerate(STEADY)]
    text = printed(run(others={name: {"seconds": noisy} for name in names}))
    assert max(map(len, text.rstrip().splitlines()[:-3])) <= 80
    assert len(text.splitlines()) <= 50
    assert len(rows(text)) == 26


def test_a_few_profiles_are_told_one_by_one_as_they_were_named():
    few = events_of(blocks=12, others={name: OTHERS[name] for name in ("worst", "second")})
    assert [one.arm for one in ranking.ranked(summarise(few))] == ["mine", "worst", "second"]
    text = printed(few)
    assert text.count("Losses are equal") == 3
    assert "95% interval " in text


def test_without_intervals_the_order_is_that_of_the_run():
    text = printed(events_of(blocks=2, others=OTHERS))
    assert [line.split()[0] for line in rows(text)] == ["baseline", "mine", "third", "worst", "second"]
    assert "no speedups: an interval needs" in " ".join(text.split())


def test_losses_are_told_together():
    close = [2.3 * (1 + 1e-6), 2.299, 2.298]
    text = said(run({"losses": close}))
    assert "losses equal to the last bit over 3 steps: 3 of 4 profiles" not in text  # three are named
    assert "equal to the last bit over 3 steps: mine, worst, second" in text
    assert "differ by rounding, 1.0e-06 of their value at most: third" in text


def test_losses_that_differ_stand_out():
    text = said(run(OTHER_LOSSES))
    assert "losses of third: LOSSES DIFFER by more than rounding" in text
    assert "next find out why the losses of third differ, before you use it" in text
    assert "next use mine" in text


def test_a_profile_that_may_change_numerics_is_marked():
    events = run(OTHER_LOSSES, numerics="may-differ")
    assert rows(printed(events))[0].startswith("mine * ")
    text = said(events)
    assert "of third, which may change numerics (*), differ by" in text
    assert "LOSSES DIFFER" not in text


def test_one_that_is_not_in_effect_is_named_and_the_others_are_counted():
    text = said(run(NOT_IN_EFFECT))
    assert "third is NOT IN EFFECT: no speedup is worked out" in text
    assert "openmp.runtime: expected gnu, seen intel" in text
    assert "effect 4 profiles: what each expects was observed in all its samples" in text


def test_one_that_is_not_verified_is_named_and_not_counted():
    text = said(run(NOT_VERIFIED))
    assert "effect third: openmp.runtime is NOT VERIFIED: two answer for it" in text
    assert "effect 4 profiles: what each expects was observed in all its samples" in text


def test_only_the_best_has_an_advice():
    text = printed(run())
    assert text.count("next  ") == 1
    assert "use mine: envkit exec" in text


@pytest.mark.parametrize("show", [tables.all_arms, ranking.cells])
def test_all_tables_have_the_same_order(show):
    summary = summarise(run())
    assert [row[0] for row in show(summary)] == ["mine", "second", "third", "baseline", "worst"]
    assert [row.label for row in wording.verdicts(summary) if row.label] == ["mine", "second", "third", "worst"]


def test_what_disturbed_blocks_is_told_once():
    text = said(disturbed(events_of(blocks=16, others=OTHERS), 3))
    assert "1 of 16 blocks disturbed from outside" in text
    assert text.count("without them") == 1
    assert "without them all verdicts are the same" in text
