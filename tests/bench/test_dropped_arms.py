"""Profiles that can't be the fastest leave a run at a look, and their time goes to the others; with instant workers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from envkit.bench import decide
from envkit.bench.events import Dropped
from envkit.bench.run import Run
from envkit.common.codec import Misfit
from envkit.common.file_messages import OtherType
from envkit.report import certainty
from envkit.stats.sequential import may_stop

from tests import records
from tests.records import conclude, spent
from tests.reports import events_of, printed
from tests.simulation import times

BUDGET_S = 120.0
# How much longer than the baseline's workers those of each profile take.
FACTORS = {"fast": 0.5, "near": 0.51, "slow": 1.0}
NEVER_EARLY = ("--half-width", "0.1%")
MARGIN = 0.02


@pytest.fixture
def three(measure_several):
    """Measure three profiles."""
    return measure_several(FACTORS)


def place_of_dropped(events):
    return next(number for number, event in enumerate(events) if event["event"] == "dropped")


def test_a_profile_that_is_slower_leaves_and_the_others_get_its_time(three, events, samples):
    document = json.loads(three("--json", *NEVER_EARLY).stdout)
    (design,), (dropped,) = events("design"), events("dropped")
    (faster,) = dropped["arms"].values()
    assert dropped["arms"] == {"slow": faster}
    assert faster in ("fast", "near")
    assert dropped["block"] in design["looks"][:-1]
    assert dropped["planned_blocks"] == dropped["looks"][-1] > design["planned_blocks"]
    blocks = {name: [block for block, arm in samples() if arm == name] for name in ("baseline", *FACTORS)}
    assert sorted(blocks["slow"]) == [*range(dropped["block"])]
    for name in ("baseline", "fast", "near"):
        assert sorted(blocks[name]) == [*range(dropped["planned_blocks"])]
    assert 0.9 * BUDGET_S <= spent(events()) <= 1.15 * BUDGET_S
    of_arm = {comparison["arm"]: comparison for comparison in document["comparisons"]}
    assert document["dropped"] == {"slow": {"blocks": dropped["block"], "slower_than": faster}}
    assert of_arm["slow"]["speedup"]["blocks"] == dropped["block"]
    assert of_arm["fast"]["verdict"] == "faster"
    assert set(document["may_be_best"]) <= {"fast", "near"}
    # the decision follows from the record
    every = events()
    (recorded,) = Run.parse(every).all(Dropped)
    decision = decide.after_blocks(Run.parse(every[: place_of_dropped(every)]), recorded.block)
    assert isinstance(decision, Dropped)
    assert (decision.arms, decision.looks) == (recorded.arms, recorded.looks)


def test_all_can_be_measured_to_the_end(three, events, samples):
    assert three("--keep-arms", *NEVER_EARLY).returncode == 0
    assert events("dropped") == []
    assert len({sum(arm == name for _, arm in samples()) for name in FACTORS}) == 1


def test_a_number_of_blocks_that_was_ordered_has_no_look(three, events, samples):
    assert three(length=("--blocks", 12)).returncode == 0
    assert events("dropped") == []
    assert len(samples()) == 12 * 4


def test_report_and_progress_name_the_arms_that_left(three, events):
    result = three(*NEVER_EARLY)
    shown, (dropped,) = " ".join(result.stdout.split()), events("dropped")
    (faster,) = dropped["arms"].values()
    assert f"Dropped after {dropped['block']} blocks, as slower than {faster}: slow" in shown
    assert "profile samples speedup" in shown
    assert f"slow {dropped['block']} " in shown
    assert f"envkit: dropped after {dropped['block']} blocks, as slower: slow" in result.stderr


def test_a_run_that_was_interrupted_goes_on_without_them(three, cli, events, samples, run_folder):
    three(*NEVER_EARLY)
    every = events()
    at = place_of_dropped(every)
    for later in (0, 1, 6):
        records.write(run_folder, every[: at + 1 + later])
        assert cli("bench", "--resume", run_folder).returncode == 0, later
        (dropped,) = events("dropped")
        assert dropped == every[at], later
        assert sum(arm == "slow" for _, arm in samples()) == dropped["block"], later
        assert len(set(samples())) == len(samples()), later
        assert events()[-1]["reason"] in decide.ENDED, later
        after = events()[[event["event"] for event in events()].index("resume") :]
        assert [event["arm"] for event in after if event["event"] == "warm-up"] == ["baseline", "fast", "near"], later
    # a block that was begun before they left is completed
    last = max(number for number, event in enumerate(every[: place_of_dropped(every)]) if event["event"] == "sample")
    records.write(run_folder, every[:last])
    assert cli("bench", "--resume", run_folder).returncode == 0
    (dropped,) = events("dropped")
    assert min(sum(arm == name for _, arm in samples()) for name in FACTORS) == dropped["block"]


# --- what a record says ---


def dropped_at(time, name, block, looks=(8, 10, 12)):
    """Return the event of an arm that left after so many blocks, as slower than ``mine``."""
    return {"event": "dropped", "time": time, "block": block, "arms": {name: "mine"},
            "planned_blocks": looks[-1], "looks": [*looks]}  # fmt: skip


def with_dropped():
    """Return a run of 12 blocks in which ``slow`` left after 8."""
    others = {"slow": {"seconds": [1.0, 1.02]}, "same": {"seconds": [1.01, 0.99]}}
    events = events_of(12, others=others, looks=(8, 10, 12), study={"drop_arms": True})
    kept = [event for event in events if event.get("arm") != "slow" or event.get("block", 0) < 8]
    last = max(number for number, event in enumerate(kept) if event["event"] == "sample" and event["block"] == 7)
    return [*kept[: last + 1], dropped_at(kept[last]["time"], "slow", 8, (8, 11, 14)), *kept[last + 1 :]]


def test_the_looks_that_were_recorded_keep_their_share():
    design = Run.parse(with_dropped()).design
    assert (design.planned, design.looks) == (14, (8, 11, 14))
    assert design.shares == pytest.approx((8 / 12, 10 / 12, 1.0))


def test_blocks_without_them_are_whole():
    run = Run.parse(with_dropped())
    assert run.whole_blocks == 12
    assert {arm.name for arm in run.arms_of(7)} == {"baseline", "mine", "slow", "same"}
    assert {arm.name for arm in run.arms_of(8)} == {"baseline", "mine", "same"}


def test_the_first_line_never_names_one_that_left():
    """At its look it may have had a higher speedup than others have at the end."""
    others = {"left": {"seconds": [0.3, 0.31]}, "same": {}}
    events = events_of(12, others=others, looks=(8, 10, 12), study={"drop_arms": True})
    left = dropped_at(events[-1]["time"], "left", 12)
    first = " ".join(printed([*events[:-1], left, events[-1]]).split("\n\n")[0].split())
    assert "best mine: 2." in first


def interrupted():
    """Return the record of a run from which ``slow`` had left when it was interrupted."""
    return [*with_dropped()[:-1], {**with_dropped()[-1], "reason": decide.INTERRUPTED}]


def test_a_run_that_was_interrupted_says_who_had_left():
    result = conclude(interrupted())
    assert {name: (left.blocks, left.slower_than) for name, left in result.dropped.items()} == {"slow": (8, "mine")}
    assert result.to_json()["dropped"] == {"slow": {"blocks": 8, "slower_than": "mine"}}
    assert "Dropped   after 8 blocks, as slower than mine: slow" in printed(interrupted())


@pytest.mark.parametrize(
    "arms", [{"baseline": "mine"}, {"unheard": "mine"}, dict.fromkeys(("mine", "slow", "same"), "mine")]
)
def test_a_record_that_drops_what_no_run_drops_is_refused(arms):
    """Of no arm is left, a run that goes on would look for the next block for ever."""
    events = [{**event, "arms": arms} if event["event"] == "dropped" else event for event in with_dropped()]
    with pytest.raises(Misfit) as refused:
        Run.parse(events)
    assert refused.value.message == OtherType("arms")


def test_the_caution_on_a_gain_close_to_the_noise_is_about_the_leader():
    """One that left had a higher speedup, which nobody uses."""
    wide = {"seconds": [0.55, 0.95, 0.6, 0.9, 0.7, 0.8]}
    events = events_of(
        12, mine=wide, others={"left": {"seconds": [0.3, 0.31]}}, looks=(8, 10, 12), study={"drop_arms": True}
    )
    left = dropped_at(events[-1]["time"], "left", 12)
    shown = " ".join(printed([*events[:-1], left, events[-1]]).split())
    assert "the speedup of mine may be overstated" in shown


def test_an_interval_of_an_arm_that_left_asks_for_no_more_blocks():
    result = conclude(with_dropped())
    comparisons = {comparison.arm: comparison for comparison in result.comparisons}
    assert comparisons["slow"].spans_blocks
    assert not comparisons["mine"].spans_blocks
    assert not [row for row in certainty.rows(result) if isinstance(row.text, certainty.messages.SpansBlocks)]


# --- what a look decides ---


NOISY = [round(1.5 ** ((-1) ** number * (1 + number % 5) / 5), 3) for number in range(12)]


def three_arms(numerics="same", other_losses=()):
    """Return a run of 12 blocks: ``mine`` is 2x as fast, ``near`` 1.9x, and nobody can tell ``noisy`` from baseline.

    The arms of ``other_losses`` have losses that differ from the baseline's.
    """
    behaviours = {"mine": {"seconds": times(0.5)}, "near": {"seconds": times(0.526)}, "noisy": {"seconds": NOISY}}
    for name in other_losses:
        behaviours[name]["losses"] = [2.3, 1.3, 0.3]
    mine = behaviours.pop("mine")
    events = events_of(12, mine=mine, others=behaviours, looks=(8, 12, 20), study={"drop_arms": True}, ended=None)
    events[0]["environments"]["mine"]["numerics"] = numerics
    return Run.parse(events)


def test_a_run_may_stop_if_the_leader_is_known_and_no_other_can_be_faster():
    """The verdict on ``noisy`` is open, and changes nothing for a user who looks for the fastest."""
    run = three_arms()
    assert not may_stop(run.design, run.block_ratios(run.study.arm("noisy")), MARGIN, None)
    assert decide.precise_enough(run, run.design)
    kept = replace(run, study=replace(run.study, stopping=replace(run.study.stopping, drop_arms=False)))
    assert not decide.precise_enough(kept, kept.design)


def test_the_fastest_that_leaves_results_alone_stays_beside_one_that_may_change_them():
    """Reports recommend it first."""
    assert decide.slower_arms(three_arms(), three_arms().design) == {"near": "mine", "noisy": "mine"}
    changing = three_arms("may-differ")
    assert decide.slower_arms(changing, changing.design) == {"noisy": "near"}


def test_an_arm_with_other_losses_makes_no_other_leave():
    """The fastest is no answer as it is, so that the others are compared with the fastest of those that are."""
    run = three_arms(other_losses=["mine"])
    assert decide.slower_arms(run, run.design) == {"noisy": "near"}
    none_usable = three_arms(other_losses=["mine", "near", "noisy"])
    assert decide.slower_arms(none_usable, none_usable.design) == {}


def test_an_arm_with_other_losses_ends_no_run():
    """Whether the other one is faster is open, which is the question that is left."""
    others, study = {"noisy": {"seconds": NOISY}}, {"drop_arms": True}
    for losses, is_enough in ({}, True), ({"losses": [2.3, 1.3, 0.3]}, False):
        mine = {"seconds": times(0.5), **losses}
        run = Run.parse(events_of(12, mine=mine, others=others, looks=(8, 12, 20), study=study, ended=None))
        assert decide.precise_enough(run, run.design) is is_enough
