"""Full trainings epoch by epoch, and the time to a target, from records."""

from __future__ import annotations

import pytest
from envkit.stats.verdict import Verdict

from tests.records import conclude
from tests.reports import events_of
from tests.simulation import STEADY, times

QUICK = [{"accuracy": accuracy} for accuracy in (0.5, 0.8, 0.82, 0.83)]
SLOW = [{"accuracy": accuracy} for accuracy in (0.4, 0.6, 0.7, 0.8)]


def full(until=None, blocks=1, mine=QUICK, baseline=SLOW, **study):
    """Trainings of four epochs; those of the baseline take a second for all, and of ``mine`` half of that."""
    study = {"epochs": 4, "until": until, "blocks": blocks, **study}
    return events_of(blocks, mine={"figures": mine}, baseline={"figures": baseline}, study=study)


def test_epochs_have_the_time_of_all_steps_so_far_without_tests():
    baseline, mine = conclude(full()).learning
    assert [one.number for one in baseline.epochs] == [1, 2, 3, 4]
    assert [one.training_s for one in baseline.epochs] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert [one.quality["accuracy"] for one in mine.epochs] == [0.5, 0.8, 0.82, 0.83]
    assert (baseline.epochs[0].loss, baseline.epochs[0].test_s, baseline.to_target) == (2.3, 0.25, None)


def test_the_time_to_a_target_is_compared_and_not_that_of_equally_many_epochs():
    result = conclude(full("accuracy=0.8"))
    baseline, mine = result.learning
    assert (baseline.to_target.seconds, baseline.to_target.epochs) == (pytest.approx(1.0), 4)
    assert (mine.to_target.seconds, mine.to_target.epochs) == (pytest.approx(0.4975 / 2), 2)
    (comparison,) = result.comparisons
    assert comparison.single_ratio == pytest.approx(1.0 / (0.4975 / 2))
    assert comparison.verdict == Verdict.ONE_RUN_EACH
    assert result.not_reached == []


def test_losses_are_compared_as_far_as_both_have_trained():
    events = full("accuracy=0.8")
    for event in events:
        if event.get("arm") == "baseline" and event["event"] == "sample":
            event["losses"] += [1.0, 0.9]
    losses = conclude(events).comparisons[0].losses
    assert (losses.steps, losses.agree) == (3, True)


@pytest.mark.parametrize("blocks", [1, 7])
@pytest.mark.parametrize(("until", "missed"), [("accuracy=0.81", ["baseline"]), ("accuracy=0.9", ["baseline", "mine"])])
def test_one_that_never_reached_it_gives_no_ratio(until, missed, blocks):
    result = conclude(full(until, blocks))
    (comparison,) = result.comparisons
    assert (comparison.verdict, comparison.single_ratio, comparison.speedup) == (Verdict.NOT_REACHED, None, None)
    assert [one.arm for one in result.not_reached] == missed
    assert {one.to_target.best for one in result.not_reached} <= {0.8, 0.83}


def test_several_trainings_have_medians_and_the_ratio_an_interval():
    result = conclude(full("accuracy=0.8", 7))
    baseline, mine = result.learning
    assert (baseline.samples, len(baseline.epochs)) == (7, 4)
    assert baseline.to_target.seconds == pytest.approx(sorted(STEADY)[3])
    assert mine.to_target.seconds == pytest.approx(sorted(times(0.5))[3] / 2)
    found = result.comparisons[0].speedup
    assert found.ratio == pytest.approx(4, rel=0.1)
    assert found.low < found.ratio < found.high


def test_trainings_of_one_arm_may_end_after_unlike_epochs():
    """Where rounding decides; one that never got there is enough for no time to it."""
    events = full("loss=2.1", 7)
    curves = [event["curve"] for event in events if event.get("arm") == "mine" and event["event"] == "sample"]
    assert {len(curve) for curve in curves} == {3}
    curves[0].append({**curves[0][-1], "loss": 2.0})
    curves[0][2]["loss"] = 2.2
    mine = conclude(events).learning[1]
    assert (mine.to_target.epochs, len(mine.epochs), mine.epochs[3].loss) == (4, 4, 2.0)
    curves[0][3]["loss"] = 2.2
    assert conclude(events).learning[1].to_target.seconds is None
