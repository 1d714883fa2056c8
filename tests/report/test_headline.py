"""The first line of a report: a verdict in plain English, whose percentages agree with the speedups below it."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from envkit.analysis.summary import summarise
from envkit.bench.plan import Arm
from envkit.report.headline import change, changed, headline, how_to_read, share

from tests.report import test_grid as grid
from tests.report import test_multi_workload as several
from tests.report.planted import NOT_IN_EFFECT, NOT_VERIFIED, OTHER_LOSSES, disturbed, failed
from tests.reports import events_of
from tests.simulation import times

NOISY = {"seconds": [1.2, 1.1, 0.8, 1.3, 0.9, 0.95, 1.05]}


def first(events):
    return headline(summarise(events)).text


# --- percentages ---


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.25, "25% faster"), (0.8, "25% slower"), (1.075, "7.5% faster"), (1 / 1.0996, "10% slower"), (2, "100% faster"),
     (21, "2,000% faster"), (1, "0.0% faster")],
)  # fmt: skip
def test_faster_is_more_steps_in_the_same_time_and_slower_is_more_time(ratio, words):
    assert change(ratio) == words


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((1.25, 1.2, 1.3), "25% faster than it (95% interval 20% to 30%)"),
        ((0.8, 0.75, 0.85), "25% slower than it (95% interval 18% to 33%)"),
        ((1.03, 0.98, 1.08), "3.0% faster than it (95% interval 2.0% slower to 8.0% faster)"),
        ((0.97, 0.9, 1.08), "3.1% slower than it (95% interval 8.0% faster to 11% slower)"),
    ],
)
def test_an_interval_has_directions_where_they_are_not_the_same(found, words):
    assert changed(*found, "it") == words


def test_how_to_read_them_is_said_where_there_are_any():
    (row,) = how_to_read(summarise(events_of()))
    assert row.text == "25% faster: 25% more steps per second; 25% slower: 25% more time a step"
    assert how_to_read(summarise(events_of(3))) == []


# --- one comparison ---


@pytest.mark.parametrize(
    ("events", "pattern", "weight"),
    [
        (events_of(), r"mine is 100% faster than the baseline here \(95% interval \d+% to \d+%\)", "good"),
        (events_of(mine={"seconds": times(1.25)}),
         r"mine is 25% slower than the baseline here \(95% interval 2\d% to 2\d%\)", "bad"),
        (events_of(mine={"seconds": times(1)}),
         r"no difference larger than 2% between mine and the baseline here: at most 0\.\d% either way "
         r"\(95% interval 0\.\d% slower to 0\.\d% faster\)", "plain"),
        (events_of(mine=NOISY),
         r"no difference found between mine and the baseline here: at most \d+% either way "
         r"\(95% interval \d+% slower to [\d.]+% faster\)", "plain"),
        (events_of(60, mine={"seconds": times(0.995)}),
         r"mine is 0\.5% faster than the baseline here \(95% interval 0\.\d% to 0\.\d%\), which is less than the 2% "
         "that matter", "good"),
        (events_of(mine=OTHER_LOSSES), r"mine is .*\), but its losses differ: it changes what is learnt", "bad"),
        (events_of(mine=NOT_VERIFIED), r"mine is .*\), though it could not be verified that it was in effect", "good"),
        (disturbed(events_of(), *range(7)),
         r"Only while the hypervisor withheld 2 of 4 CPUs: mine is 100% faster than the baseline here \(.*\)", "plain"),
        (failed(events_of()), "mine: no result: the worker of mine was killed", "bad"),
        (events_of(mine=NOT_IN_EFFECT),
         r"mine: no result: mine is NOT IN EFFECT \(openmp\.runtime: expected gnu, seen intel\)", "bad"),
        (events_of(baseline=NOT_IN_EFFECT),
         r"mine: no result: baseline is NOT IN EFFECT \(openmp\.runtime: expected gnu, seen intel\)", "bad"),
        (events_of(5), r"mine: no result: an interval needs 6 complete blocks \(raise --budget\)", "bad"),
        (events_of(ended=None), "mine: no result before the run has ended: go on with --resume", "bad"),
        (events_of(1, plan={"epochs": 10}),
         "mine was 101% faster than the baseline here, in one run each: no interval, no verdict", "plain"),
        (events_of(16, mine={"seconds": times(1)}, profile="baseline"),
         "no difference larger than 2% between the baseline again and the baseline here: .*", "plain"),
    ],
)  # fmt: skip
def test_one_comparison(events, pattern, weight):
    found = headline(summarise(events))
    assert re.fullmatch(pattern, found.text), found.text
    assert (found.label, found.weight) == ("", weight)


def test_the_reference_alone():
    events = events_of()
    events[0]["plan"]["arms"] = events[0]["plan"]["arms"][:1]
    alone = [event for event in events if event.get("arm") in (None, "baseline")]
    assert first(alone) == "Only baseline was measured: there is nothing to compare."
    assert first(alone[:1]) == "no result: no sample was measured"


def test_images_are_named():
    summary = summarise(events_of())
    arms = tuple(Arm(name, "baseline", "docker", image=name) for name in ("old", "mine"))
    images = replace(summary, plan=replace(summary.plan, arms=arms))
    assert headline(images).text.startswith("the image mine is 100% faster than the image old here (95% ")


def test_ranks_are_named():
    summary = summarise(events_of())
    on_two = replace(summary, plan=replace(summary.plan, ranks=2))
    assert headline(on_two).text.startswith("mine on 2 ranks is 100% faster than the baseline on 2 ranks here (95% ")


# --- several ---


def test_of_many_the_best_and_how_many_there_are_of_each():
    others = {"slow": {"seconds": times(1.5)}, "quick": {"seconds": times(0.4)}, "same": {}, "noisy": NOISY,
              "bad": NOT_IN_EFFECT, "learns": OTHER_LOSSES}  # fmt: skip
    text = first(events_of(12, others=others))
    assert re.match(r"best of 7 profiles: quick is 15\d% faster than the baseline here \(95% interval ", text), text
    counts = "2 faster, 1 slower, 1 equal within 2%, 1 with other losses, 1 undecided, 1 NOT IN EFFECT"
    assert text.endswith(f"); {counts}")


def test_where_none_is_faster_that_is_said():
    text = first(events_of(12, mine={"seconds": times(1.5)}, others={"same": {}}))
    assert text == "none of 2 profiles is known to be faster than the baseline here: 1 slower, 1 equal within 2%"


def test_many_without_a_result():
    assert first(events_of(ended=None, others={"other": {}})) == (
        "no result for any of 2 profiles before the run has ended: go on with --resume"
    )
    unlike = first(events_of(5, others={"other": NOT_IN_EFFECT}))
    assert unlike == "no result for any of 2 profiles: 1 without a result, 1 NOT IN EFFECT"


def test_of_one_run_each_the_best():
    text = first(events_of(1, others={"other": {}}, plan={"epochs": 1}))
    assert text == (
        "best of 2 profiles: mine was 101% faster than the baseline here, in one run each: no interval, no verdict"
    )


def test_on_several_workloads_it_is_said_where():
    text = first(several.events())
    assert re.match(r"best of 4 pairs of a profile and a workload: mine on cnn is \d+% faster than the baseline there ",
                    text), text  # fmt: skip
    assert text.endswith("; 1 faster, 2 slower, 1 equal within 2%")


def test_of_a_grid_the_fastest_and_how_far_it_is_from_the_slowest():
    assert first(grid.events()) == (
        "the fastest of 8 settings of the loader here: 2 workers, batches of 64, prefetch_factor 8, with 3.91 s per "
        "1,000 images, and the slowest takes 10.00"
    )
    assert first(grid.events(blocks=0, ended=None)) == "no result: no sample was measured"


def test_shares():
    assert [share(part) for part in (0, 0.0123, 0.09949, 0.0995, 0.456, math.e)] == [
        "0.0%", "1.2%", "9.9%", "10%", "46%", "272%",
    ]  # fmt: skip
