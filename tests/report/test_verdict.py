"""The first line of a report: which verdict, of what, with which figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from envkit.analysis import messages as load
from envkit.bench.arms import Arm
from envkit.engines.messages import Killed
from envkit.rendering import text
from envkit.report import advice, verdict
from envkit.report.messages import verdicts as said
from envkit.worker.workloads.loader import Settings

from tests.plans import study_of
from tests.records import conclude
from tests.report import test_grid as grid
from tests.report import test_multi_workload as several
from tests.report.kinds import NOISY
from tests.report.planted import NOT_IN_EFFECT, NOT_VERIFIED, OTHER_LOSSES, busy, disturbed, failed, of_baseline
from tests.reports import events_of
from tests.simulation import times


def first(events):
    return verdict.headline(conclude(events)).text


# --- one comparison ---


@pytest.mark.parametrize(
    ("events", "kind", "weight"),
    [
        (events_of(), said.Faster, "good"),
        (events_of(mine={"seconds": times(1.25)}), said.Slower, "bad"),
        (events_of(mine={"seconds": times(1)}), said.Equivalent, "plain"),
        (events_of(mine=NOISY), said.NoDifferenceFound, "plain"),
        (events_of(60, mine={"seconds": times(0.995)}), said.Faster, "good"),
        (events_of(mine=OTHER_LOSSES), said.FasterLossesDiffer, "bad"),
        (events_of(mine=OTHER_LOSSES, numerics="may-differ"), said.FasterLossesDiffer, "bad"),
        (events_of(mine=NOT_VERIFIED), said.Faster, "good"),
        (disturbed(events_of(), *range(7)), said.FasterUnderLoad, "plain"),
        (busy(events_of(mine={"seconds": times(1.25)})), said.SlowerUnderLoad, "plain"),
        (busy(events_of(mine=NOISY)), said.NoDifferenceUnderLoad, "plain"),
        (failed(events_of()), said.WorkerFailed, "bad"),
        (events_of(mine=NOT_IN_EFFECT), said.NotInEffect, "bad"),
        (events_of(5), said.TooFewBlocks, "bad"),
        (events_of(ended=None), said.Unfinished, "bad"),
        (events_of(1, study={"epochs": 10}), said.OneRunEach, "plain"),
    ],
)
def test_one_comparison(events, kind, weight):
    found = verdict.headline(conclude(events))
    assert (type(found.text), found.label, found.weight) == (kind, "", weight)


def test_its_figures_are_those_of_the_interval():
    result = conclude(events_of())
    (one,) = result.comparisons
    found = verdict.of(result, one)
    assert (found.subject, found.reference) == ("mine", "baseline")
    assert (found.ratio, found.low, found.high) == (one.speedup.ratio, one.speedup.low, one.speedup.high)


@pytest.mark.parametrize("arm", ["mine", "baseline"])
def test_it_names_the_arm_that_was_not_in_effect(arm):
    assert first(events_of(**{arm: NOT_IN_EFFECT})) == said.NotInEffect(arm)


def test_a_load_is_named_in_the_first_line():
    stolen, beside = first(disturbed(events_of(), *range(7))), first(busy(events_of()))
    assert stolen.load == load.WhileStolen(2.0, 4.0)
    assert beside.load == load.BesideOtherPrograms(2.75, 4.0)
    assert text(beside).startswith("FASTER UNDER LOAD  mine: 2.00x baseline speed")
    assert text(beside).endswith("measured beside other programs that used 2.8 of 4 CPUs")


def test_losses_that_differ_come_before_a_load_which_is_said_too():
    found = first(busy(events_of(mine=OTHER_LOSSES)))
    assert (type(found), found.load) == (said.FasterLossesDiffer, load.BesideOtherPrograms(2.75, 4.0))
    assert text(found).startswith("FASTER, BUT LOSSES DIFFER  mine: 2.00x baseline speed")
    assert text(found).endswith("measured beside other programs that used 2.8 of 4 CPUs")


@pytest.mark.parametrize(("others", "kind"), [(1.2, said.Faster), (6.0, said.FasterUnderLoad)])
def test_a_load_that_disturbs_no_sample_is_none(others, kind):
    """A CPU or two of 128 are the background of such a machine; the first line, noise and advice agree on it."""
    events = events_of()
    for event in events:
        if event["event"] == "sample":
            usage = event["usage"]
            own_s = usage["user_s"] + usage["system_s"]
            usage |= {"worker_cpus": 128, "worker_cpus_busy_s": own_s + others * event["seconds"]}
    result = conclude(events)
    (one,) = result.comparisons
    assert isinstance(verdict.of(result, one), kind)
    assert (not result.interference, one.beside is None, advice.is_worth_it(one)) == (kind is said.Faster,) * 3


def test_other_programs_that_take_a_cpu_are_named_whatever_share_of_the_blocks_they_disturb():
    """Half of the blocks are left, which give a result without them."""
    events = events_of(14)
    for event in events:
        if event["event"] == "sample" and event["block"] < 8:
            event["usage"]["worker_cpus_busy_s"] = 4 * event["seconds"]
    result = conclude(events)
    (one,) = result.comparisons
    assert (one.load, one.without_interference is None) == (None, False)
    assert isinstance(verdict.of(result, one), said.FasterUnderLoad)
    less = events_of(14)
    for event in less:
        if event["event"] == "sample":
            event["usage"]["worker_cpus_busy_s"] = 2 * event["seconds"]  # 0.75 of them are of others
    assert conclude(less).comparisons[0].beside is None


def test_the_reference_alone():
    alone = of_baseline(events_of())
    assert first(alone) == said.NothingCompared("baseline")
    assert first(alone[:1]) == said.NothingMeasured()


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (of_baseline(failed(events_of(), "baseline")), said.WorkerFailed("baseline", Killed("SIGKILL"))),
        (of_baseline(events_of(baseline=NOT_IN_EFFECT)), said.NotInEffect("baseline")),
        (of_baseline(events_of(ended="interrupted")), said.Unfinished("baseline", 7)),
        (failed(grid.events()), said.WorkerFailed("mine", Killed("SIGKILL"))),
        (grid.events(ended=None), said.Unfinished("8 loader settings", 3)),
    ],
)
def test_a_run_that_compares_nothing_says_first_why_it_has_no_result(events, expected):
    found = verdict.headline(conclude(events))
    assert (found.text, found.weight) == (expected, "bad")


def test_an_earlier_failure_of_a_run_that_went_on_counts_for_nothing():
    begun, end = events_of()[:-1], events_of()[-1]
    problem = Killed("SIGKILL").to_json()
    failure = {"event": "failure", "time": end["time"], "block": 6, "arm": "baseline", "problem": problem, "stderr": ""}
    assert first(of_baseline([*begun, failure, end])) == said.NothingCompared("baseline")


def test_images_and_ranks_are_named():
    result = conclude(events_of())
    arms = tuple(Arm(name, "baseline", "docker", image=name) for name in ("old", "mine"))
    images = replace(result, study=study_of(arms))
    found = verdict.headline(images).text
    assert (found.subject, found.reference) == ("image mine", "image old")
    on_two = replace(result, study=replace(result.study, ranks=2))
    assert verdict.headline(on_two).text.subject == "mine on 2 ranks"


def test_a_calibration_is_of_the_baseline_against_itself():
    found = first(events_of(16, mine={"seconds": times(1)}, profile="baseline"))
    assert (type(found), found.subject) == (said.Equivalent, "baseline against itself")


# --- several ---


def test_of_many_the_best_and_how_many_came_to_what():
    others = {"slow": {"seconds": times(1.5)}, "quick": {"seconds": times(0.4)}, "same": {}, "noisy": NOISY,
              "bad": NOT_IN_EFFECT, "learns": OTHER_LOSSES}  # fmt: skip
    found = first(events_of(12, others=others))
    assert (type(found), found.number, found.of, found.best) == (said.SomeFaster, 2, 7, "quick")
    assert [(one.number, one.kind) for one in found.counts] == [
        (2, "faster"), (1, "slower"), (1, "within 2%"), (1, "with other losses"), (1, "without a difference found"),
        (1, "not in effect"),
    ]  # fmt: skip


@pytest.mark.parametrize("numerics", ["same", "may-differ"])
def test_one_whose_losses_differ_is_neither_counted_nor_the_best(numerics):
    quick = {"seconds": times(0.4), **OTHER_LOSSES}
    found = first(events_of(12, others={"quick": quick}, numerics=numerics))
    assert (type(found), found.number, found.of, found.best) == (said.SomeFaster, 1, 2, "mine")
    assert [(one.number, one.kind) for one in found.counts] == [(1, "faster"), (1, "with other losses")]
    assert found.losses_differ == 1
    loaded = first(busy(events_of(12, others={"quick": quick}, numerics=numerics)))
    assert (type(loaded), loaded.best, loaded.losses_differ) == (said.SomeFasterUnderLoad, "mine", 1)


@pytest.mark.parametrize("numerics", ["same", "may-differ"])
def test_if_the_losses_of_all_that_are_faster_differ_that_comes_first(numerics):
    result = conclude(events_of(12, mine=OTHER_LOSSES, others={"same": {}}, numerics=numerics))
    found = verdict.headline(result)
    assert (type(found.text), found.weight) == (said.SomeFasterLossesDiffer, "bad")
    assert (found.text.number, found.text.of, found.text.best) == (1, 2, "mine")
    assert text(found.text).startswith("FASTER, BUT LOSSES DIFFER  1 of 2 profiles, best mine: 2.00x baseline speed")


def test_where_none_is_faster_that_is_said():
    found = first(events_of(12, mine={"seconds": times(1.5)}, others={"same": {}}))
    assert (type(found), found.of, found.reference) == (said.NoneFaster, 2, "baseline")


def test_the_best_under_a_load_is_named_with_it():
    found = first(busy(events_of(12, others={"same": {}})))
    assert (type(found), found.best) == (said.SomeFasterUnderLoad, "mine")
    assert isinstance(found.load, load.BesideOtherPrograms)


def test_many_without_a_result():
    unfinished = first(events_of(ended=None, others={"other": {}}))
    assert (type(unfinished), unfinished.subject, unfinished.blocks) == (said.Unfinished, "2 profiles", 7)
    unlike = first(events_of(5, others={"other": NOT_IN_EFFECT}))
    assert [one.kind for one in unlike.counts] == ["without a result", "not in effect"]


def test_of_one_run_each_the_best():
    found = first(events_of(1, others={"other": {}}, study={"epochs": 1}))
    assert (type(found), found.subject) == (said.OneRunEach, "mine")


def test_on_several_workloads_it_is_said_where():
    found = first(several.events())
    assert (type(found), found.best, found.things) == (said.SomeFaster, "mine on cnn", "combinations")


def test_of_a_grid_the_fastest_and_how_far_it_is_from_the_slowest():
    best = Settings(2, 64, 8)
    found = first(grid.events({**grid.CELLS, best: 0.25}))
    assert (type(found), found.of, found.setting) == (
        said.FastestLoader, 8, "2 workers, batches of 64, prefetch_factor 8"
    )  # fmt: skip
    assert (round(found.seconds, 2), found.slowest, found.images) == (1.95, 10.0, 1000)
    assert first(grid.events()) == said.NoFastestLoader(4, 8, found.setting, pytest.approx(3.906, abs=1e-3), 1000)
    assert first(grid.events(blocks=0, ended=None)) == said.NothingMeasured()


# --- figures ---


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.6554, "1.66"), (2, "2.00"), (1.004, "1.004"), (0.9996, "0.9996"), (1, "1.00"), (12, "12.00")],
)
def test_a_ratio_has_as_many_digits_as_tell_it_from_one(ratio, shown):
    message = said.Found("mine", "baseline", ratio, ratio, ratio)
    assert text(message).startswith(f"mine: {shown}x baseline speed (95% CI {shown} to {shown})")
